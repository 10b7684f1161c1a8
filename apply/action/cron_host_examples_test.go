package action_test

import (
	"maps"
	"strings"
)

func init() {
	const (
		passwd = "f etc/passwd 644 root:x:0:0::/root:/bin/sh\n"
		hosts  = "f etc/hosts 644 # ours\n127.0.0.1\tlocalhost\n::1 localhost ip6-localhost # both\n\n10.0.0.5  db   olddb\t# the database\n10.0.0.6 Web"
	)
	cron := []string{passwd, "d etc/cron.d 755"}
	maps.Copy(examples, map[string][]example{
		"cron.present": {
			{name: "create", params: "{name: backup, schedule: '*/5 * * * *', command: /bin/true}", host: cron, want: "create", root: true},
			{name: "by fields", params: "{name: backup, minute: '0,30', hour: 8-18/2, month: jan-jun, dayOfWeek: mon, command: 'date +\\%F'}", host: cron, want: "create", root: true},
			{name: "with variables", params: `{name: backup, schedule: '@daily', command: x, env: {MAILTO: a@b, A: " it's "}, mode: 0600}`, host: cron, want: "create", root: true},
			{name: "right already", params: "{name: b, schedule: '@daily', command: x}", root: true,
				host: append(cron, "f etc/cron.d/b 644 # Managed by pullet: changes are overwritten.\n@daily root x\n")},
			{name: "another time", params: "{name: b, schedule: '@hourly', command: x}", want: "content, mode 0600 -> 0644", root: true,
				host: append(cron, "f etc/cron.d/b 600 # Managed by pullet: changes are overwritten.\n@daily root x\n")},
			{name: "no cron", params: "{name: b, schedule: '@daily', command: x}", fails: "there is no directory /etc/cron.d: install cron"},
			{name: "no such user", params: "{name: b, schedule: '@daily', command: x, user: bob}", host: cron, want: "create", fails: `there is no user "bob" on this host`},
		},
		"cron.absent": {
			{name: "not there", params: "{name: b}"},
			{name: "remove", params: "{name: b}", host: []string{"f etc/cron.d/b 644 x"}, want: "remove"},
		},
		"host.present": {
			{name: "no file", params: "{ip: 10.0.0.5, names: [db]}", host: []string{"d etc 755"}, want: "10.0.0.5 db"},
			{name: "a new address", params: "{ip: fd00::5, names: [db.example.org, db]}", host: []string{hosts}, want: "fd00::5 db.example.org db"},
			{name: "right already", params: "{ip: 10.0.0.5, names: [OLDDB, db]}", host: []string{hosts}},
			{name: "the same address, written otherwise", params: "{ip: '0:0:0:0:0:0:0:1', names: [localhost]}", host: []string{hosts}},
			{name: "one more name", params: "{ip: 10.0.0.5, names: [db.example.org, db]}", host: []string{hosts}, want: "10.0.0.5 db.example.org db"},
			{name: "these names only", params: "{ip: 10.0.0.5, names: [db.example.org, db], exact: true}", host: []string{hosts}, want: "10.0.0.5 db.example.org db"},
			{name: "moved", params: "{ip: 10.0.0.7, names: [web, db], unique: true}", host: []string{hosts}, want: "10.0.0.7 web db"},
			{name: "a link", params: "{ip: 10.0.0.7, names: [x]}", host: []string{"f etc/hosts.site 644 127.0.0.1 localhost\n", "l etc/hosts hosts.site"}, want: "10.0.0.7 x"},
			{name: "no etc", params: "{ip: 10.0.0.7, names: [x]}", want: "10.0.0.7 x"},
		},
		"host.absent": {
			{name: "not there", params: "{names: [nope]}", host: []string{hosts}},
			{name: "no file", params: "{names: [nope]}"},
			{name: "a name", params: "{names: [DB]}", host: []string{hosts}, want: "remove DB"},
			{name: "the last name of a line", params: "{names: [web]}", host: []string{hosts}, want: "remove web"},
			{name: "an address", params: "{ip: 10.0.0.5}", host: []string{hosts}, want: "remove 10.0.0.5"},
			{name: "a name at one address", params: "{ip: '::1', names: [localhost]}", host: []string{hosts}, want: "remove localhost ::1"},
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
