package action_test

import (
	"maps"
	"strings"

	"github.com/pullet/pullet/apply/action/actiontest"
)

func init() {
	const (
		passwd = "f etc/passwd 644 root:x:0:0::/root:/bin/sh\n"
		hosts  = "f etc/hosts 644 # ours\n127.0.0.1\tlocalhost\n::1 localhost ip6-localhost # both\n\n10.0.0.5  db   olddb\t# the database\n10.0.0.6 Web"
	)
	cron := []string{passwd, "d etc/cron.d 755"}
	maps.Copy(examples, map[string][]actiontest.Example{
		"cron.present": {
			{Name: "create", Params: "{name: backup, schedule: '*/5 * * * *', command: /bin/true}", Host: cron, Want: "create", Root: true},
			{Name: "by fields", Params: "{name: backup, minute: '0,30', hour: 8-18/2, month: jan-jun, dayOfWeek: mon, command: 'date +\\%F'}", Host: cron, Want: "create", Root: true},
			{Name: "with variables", Params: `{name: backup, schedule: '@daily', command: x, env: {MAILTO: a@b, A: " it's "}, mode: 0600}`, Host: cron, Want: "create, mode 0600", Root: true},
			{Name: "right already", Params: "{name: b, schedule: '@daily', command: x}", Root: true,
				Host: append(cron, "f etc/cron.d/b 644 # Managed by pullet: changes are overwritten.\n@daily root x\n")},
			{Name: "another time", Params: "{name: b, schedule: '@hourly', command: x}", Want: "content, mode 0600 -> 0644", Root: true,
				Host: append(cron, "f etc/cron.d/b 600 # Managed by pullet: changes are overwritten.\n@daily root x\n")},
			{Name: "no cron", Params: "{name: b, schedule: '@daily', command: x}", Fails: "there is no directory /etc/cron.d: install cron"},
			{Name: "no such user", Params: "{name: b, schedule: '@daily', command: x, user: bob}", Host: cron, Want: "create", Fails: `there is no user "bob" on this host`},
		},
		"cron.absent": {
			{Name: "not there", Params: "{name: b}"},
			{Name: "remove", Params: "{name: b}", Host: []string{"f etc/cron.d/b 644 x"}, Want: "remove"},
		},
		"host.present": {
			{Name: "no file", Params: "{ip: 10.0.0.5, names: [db]}", Host: []string{"d etc 755"}, Want: "10.0.0.5 db"},
			{Name: "a new address", Params: "{ip: fd00::5, names: [db.example.org, db]}", Host: []string{hosts}, Want: "fd00::5 db.example.org db"},
			{Name: "right already", Params: "{ip: 10.0.0.5, names: [OLDDB, db]}", Host: []string{hosts}},
			{Name: "the same address, written otherwise", Params: "{ip: '0:0:0:0:0:0:0:1', names: [localhost]}", Host: []string{hosts}},
			{Name: "one more name", Params: "{ip: 10.0.0.5, names: [db.example.org, db]}", Host: []string{hosts}, Want: "10.0.0.5 db.example.org db"},
			{Name: "these names only", Params: "{ip: 10.0.0.5, names: [db.example.org, db], exact: true}", Host: []string{hosts}, Want: "10.0.0.5 db.example.org db"},
			{Name: "moved", Params: "{ip: 10.0.0.7, names: [web, db], unique: true}", Host: []string{hosts}, Want: "10.0.0.7 web db"},
			{Name: "a link", Params: "{ip: 10.0.0.7, names: [x]}", Host: []string{"f etc/hosts.site 644 127.0.0.1 localhost\n", "l etc/hosts hosts.site"}, Want: "10.0.0.7 x"},
			{Name: "no etc", Params: "{ip: 10.0.0.7, names: [x]}", Want: "10.0.0.7 x"},
		},
		"host.absent": {
			{Name: "not there", Params: "{names: [nope]}", Host: []string{hosts}},
			{Name: "no file", Params: "{names: [nope]}"},
			{Name: "a name", Params: "{names: [DB]}", Host: []string{hosts}, Want: "remove DB"},
			{Name: "the last name of a line", Params: "{names: [web]}", Host: []string{hosts}, Want: "remove web"},
			{Name: "an address", Params: "{ip: 10.0.0.5}", Host: []string{hosts}, Want: "remove 10.0.0.5"},
			{Name: "a name at one address", Params: "{ip: '::1', names: [localhost]}", Host: []string{hosts}, Want: "remove localhost ::1"},
		},
	})
	cronMistakes := map[string]string{
		"schedule: '* * * *'":                       `schedule: "* * * *" is no schedule: write five words`,
		"schedule: '*  * * * *'":                    `is no schedule`,
		"schedule: '@often'":                        `schedule: "@often" is none of @reboot`,
		"schedule: '60 * * * *'":                    `schedule: "60": "60" is no minute: 0 to 59`,
		"schedule: '* * 0 * *'":                     `"0" is no dayOfMonth: 1 to 31`,
		"schedule: '* * * 13 *'":                    `"13" is no month`,
		"schedule: '* * * * mo'":                    `"mo" is no dayOfWeek`,
		"schedule: '*/0 * * * *'":                   `the step "0" of the minute is no number from 1 to 59`,
		"schedule: '*/5- * * * *'":                  `the step "5-" of the minute`,
		"schedule: '30-10 * * * *'":                 `the range 30-10 of the minute ends before it begins`,
		"schedule: '5/10 * * * *'":                  `a step needs a range: write 5-59/10`,
		"schedule: '+5 * * * *'":                    `"+5" is no minute`,
		"schedule: '1, * * * *'":                    `"" is no minute`,
		"hour: 24":                                  `hour: "24": "24" is no hour: 0 to 23`,
		"user: root":                                "schedule: is missing",
		"schedule: '@daily', hour: 1":               "hour: schedule and hour exclude each other",
		"schedule: '@daily', user: 'a b'":           `user: "a b" is no name`,
		"schedule: '@daily', mode: rw":              `mode: "rw" is not a mode`,
		"schedule: '@daily', env: {A B: x}":         `env: "A B" is no name of a variable`,
		`schedule: '@daily', env: {A: "x\ny"}`:      "env: A has a line break",
		`schedule: '@daily', env: {A: "'\""}`:       "env: A has a line break, or both kinds of quotes",
		`schedule: '@daily', command: "a\nb"`:       "command: has several lines",
		`schedule: '@daily', command: 'date +%F'`:   `command: cron ends a command at %: write \% for the character itself`,
		`schedule: '@daily', command: '%x'`:         `command: cron ends a command at %`,
		`schedule: '@daily', command: ' '`:          "command: is empty",
		"schedule: '@daily', command: " + long(999): "command: has 1000 characters, and cron reads 999",
	}
	for params, want := range cronMistakes {
		if !strings.Contains(params, "command:") {
			params += ", command: x"
		}
		mistakes = append(mistakes, mistake{"cron.present", "{name: b, " + params + "}", want})
	}
	mistakes = append(mistakes, []mistake{
		{"cron.present", "{name: b.sh, schedule: '@daily', command: x}", `jobs/a.yaml:4:22: name: "b.sh" is no name for a file in /etc/cron.d`},
		{"cron.absent", "{name: ../x}", `jobs/a.yaml:4:22: name: "../x" is no name for a file in /etc/cron.d`},
		{"host.present", "{ip: 10.0.0, names: [a]}", `jobs/a.yaml:4:20: ip: "10.0.0" is no address`},
		{"host.present", "{ip: 10.0.0.1, names: []}", "jobs/a.yaml:4:37: names: is empty"},
		{"host.present", "{ip: 10.0.0.1, names: ['a b']}", `jobs/a.yaml:4:37: names: "a b" is no name of a host`},
		{"host.present", "{ip: 10.0.0.1, names: ['a#']}", `names: "a#" is no name of a host`},
		{"host.absent", "{}", "jobs/a.yaml:2:3: names: is missing: give names, an ip, or both"},
		{"host.absent", "{ip: x}", `jobs/a.yaml:4:20: ip: "x" is no address`},
		{"host.absent", "{names: ['-a']}", `names: "-a" is no name of a host`},
	}...)
}

// long is a command of a character more than this.
func long(n int) string { return strings.Repeat("x", n+1) }
