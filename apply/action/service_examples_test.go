package action_test

import (
	"maps"

	"github.com/pullet/pullet/apply/action/actiontest"
)

// Unit files that examples plant: below a root they lie where packages put them.
const (
	webUnit     = "f usr/lib/systemd/system/web.service 644 [Service]\nExecStart=/usr/bin/sleep 1d\n[Install]\nWantedBy=multi-user.target\nAlias=www.service\n"
	staticUnit  = "f usr/lib/systemd/system/fixed.service 644 [Service]\nExecStart=/usr/bin/sleep 1d\n"
	appUnit     = "f usr/lib/systemd/system/app@.service 644 [Service]\nExecStart=/usr/bin/sleep 1d\n[Install]\nWantedBy=multi-user.target\n"
	alsoUnit    = "f usr/lib/systemd/system/front.service 644 [Service]\nExecStart=/usr/bin/sleep 1d\n[Install]\nAlso=web.service\n"
	ownUnit     = "f etc/systemd/system/own.service 644 [Service]\nExecStart=/usr/bin/sleep 1d\n[Install]\nWantedBy=multi-user.target\n"
	webEnabled  = "l etc/systemd/system/multi-user.target.wants/web.service /usr/lib/systemd/system/web.service"
	webAlias    = "l etc/systemd/system/www.service /usr/lib/systemd/system/web.service"
	webMasked   = "l etc/systemd/system/web.service /dev/null"
	target      = "f usr/lib/systemd/system/multi-user.target 644 [Unit]\n"
	enablesWeb  = "enable (multi-user.target, www.service)"
	disablesWeb = "disable (multi-user.target)"
)

func init() {
	maps.Copy(examples, map[string][]actiontest.Example{
		"service.ensure": {
			{Name: "enabled", Params: "{name: web, enabled: true}", Host: []string{target, webUnit}, Want: enablesWeb},
			{Name: "enabled, as a state", Params: "{name: web, state: enabled}", Host: []string{target, webUnit}, Want: enablesWeb},
			{Name: "enabled already", Params: "{name: web.service, enabled: true}", Host: []string{target, webUnit, webEnabled}},
			{Name: "what runs is left to the boot", Params: "{name: web, state: [started, enabled]}", Host: []string{target, webUnit}, Want: enablesWeb},
			{Name: "only what runs", Params: "{name: web, state: started}", Host: []string{webUnit}},
			{Name: "disabled", Params: "{name: web, enabled: false}", Host: []string{target, webUnit, webEnabled}, Want: disablesWeb},
			{Name: "disabled already", Params: "{name: web, state: disabled}", Host: []string{webUnit}},
			{Name: "disabled, and not there", Params: "{name: web, state: disabled}"},
			{Name: "disabled by its alias", Params: "{name: www, enabled: false}", Host: []string{target, webUnit, webEnabled, webAlias}, Want: disablesWeb},
			{Name: "enabled by its alias", Params: "{name: www, enabled: true}", Host: []string{target, webUnit, webEnabled, webAlias}},
			{Name: "an instance", Params: "{name: app@one, enabled: true}", Host: []string{target, appUnit}, Want: "enable (multi-user.target)"},
			{Name: "by another unit", Params: "{name: front, enabled: true}", Host: []string{target, webUnit, alsoUnit}, Want: "enable web.service"},
			{Name: "by another unit, enabled already", Params: "{name: front, enabled: true}", Host: []string{target, webUnit, alsoUnit, webEnabled}},
			{Name: "by another unit, to be disabled", Params: "{name: front, enabled: false}", Host: []string{target, webUnit, alsoUnit, webEnabled}, Want: "disable web.service"},
			{Name: "masked", Params: "{name: web, masked: true}", Host: []string{webUnit}, Want: "mask"},
			{Name: "masked and disabled", Params: "{name: web, state: [disabled, masked]}", Host: []string{target, webUnit, webEnabled}, Want: disablesWeb + ", mask"},
			{Name: "masked before it is installed", Params: "{name: web, masked: true}", Host: []string{"d etc/systemd/system 755"}, Want: "mask"},
			{Name: "masked already", Params: "{name: web, state: masked}", Host: []string{webUnit, webMasked}},
			{Name: "a masked template", Params: "{name: app@.service, masked: true}", Host: []string{appUnit}, Want: "mask"},
			{Name: "unmasked", Params: "{name: web, masked: false}", Host: []string{webUnit, webMasked}, Want: "unmask"},
			{Name: "unmasked and enabled", Params: "{name: web, state: [unmasked, enabled]}", Host: []string{target, webUnit, webMasked}, Want: "unmask, enable"},
			{Name: "masked, to be enabled", Params: "{name: web, enabled: true}", Host: []string{webUnit, webMasked}, Fails: "web.service is masked by /etc/systemd/system/web.service -> /dev/null and cannot be enabled: add masked: false"},
			{Name: "masked, its file in the way", Params: "{name: own, masked: true}", Host: []string{ownUnit}, Fails: "own.service cannot be masked: its unit file is /etc/systemd/system/own.service, where the mask would be"},
			{Name: "static", Params: "{name: fixed, enabled: true}", Host: []string{staticUnit}, Fails: "fixed.service cannot be enabled: it is static"},
			{Name: "static, disabled", Params: "{name: fixed, enabled: false}", Host: []string{staticUnit}},
			{Name: "not there", Params: "{name: wbe, enabled: true}", Host: []string{webUnit}, Want: "enable", Fails: `there is no unit wbe.service on this host (did you mean "web"?)`},
			{Name: "no such template", Params: "{name: ap@one, enabled: true}", Host: []string{appUnit}, Want: "enable", Fails: `there is no unit ap@one.service on this host (did you mean "app@one"?)`},
			{Name: "nothing is there", Params: "{name: web, enabled: true}", Want: "enable", Fails: "there is no unit web.service on this host: install what brings it"},

			{Name: "started", Params: "{name: c-web, state: started}", Setup: actiontest.WholeUnit("c-web.service", "ExecStart=/usr/bin/sleep 1d"), Whole: true, Want: "start", Unseen: true},
			{Name: "started and enabled", Params: "{name: c-web, state: [started, enabled]}", Setup: actiontest.WholeUnit("c-web.service", "ExecStart=/usr/bin/sleep 1d"), Whole: true, Want: "enable (multi-user.target), start"},
			{Name: "started already", Params: "{name: c-web, state: started, enabled: true}", Setup: actiontest.WholeUnit("c-web.service", "ExecStart=/usr/bin/sleep 1d") + "; systemctl enable -q --now c-web", Whole: true},
			{Name: "stopped and disabled", Params: "{name: c-web, state: stopped, enabled: false}", Setup: actiontest.WholeUnit("c-web.service", "ExecStart=/usr/bin/sleep 1d") + "; systemctl enable -q --now c-web", Whole: true, Want: "disable (multi-user.target), stop"},
			{Name: "stopped already", Params: "{name: c-web, state: stopped}", Setup: actiontest.WholeUnit("c-web.service", "ExecStart=/usr/bin/sleep 1d"), Whole: true},
			{Name: "without a check: restarted", Params: "{name: c-web, state: restarted}", Setup: actiontest.WholeUnit("c-web.service", "ExecStart=/usr/bin/sleep 1d"), Whole: true, Want: "restart", Unseen: true},
			{Name: "without a check: reloaded", Params: "{name: c-web, state: reloaded}", Setup: actiontest.WholeUnit("c-web.service", "ExecStart=/usr/bin/sleep 1d\nExecReload=/bin/true") + "; systemctl start c-web", Whole: true, Want: "reload", Unseen: true},
			{Name: "reloaded, which it cannot", Params: "{name: c-web, state: reloaded}", Setup: actiontest.WholeUnit("c-web.service", "ExecStart=/usr/bin/sleep 1d") + "; systemctl start c-web", Whole: true, Want: "reload", Fails: "c-web.service cannot reload: its unit has no ExecReload="},
			{Name: "does not stay up", Params: "{name: c-web, state: started}", Setup: actiontest.WholeUnit("c-web.service", "ExecStart=/bin/false"), Whole: true, Want: "start", Fails: "c-web.service started and did not stay up: it is failed (failed), exit-code, exit status 1"},
			{Name: "no such unit", Params: "{name: c-wbe, state: started}", Setup: actiontest.WholeUnit("c-web.service", "ExecStart=/usr/bin/sleep 1d"), Whole: true, Want: "start", Fails: `there is no unit c-wbe.service on this host (did you mean "c-web"?)`},
		},
	})
	mistakes = append(mistakes, []mistake{
		{"service.ensure", "{state: started}", `jobs/a.yaml:2:3: parameters: "name" is missing`},
		{"service.ensure", "{name: web}", "jobs/a.yaml:4:22: name: nothing is asked of web.service: give state (such as started), enabled or masked"},
		{"service.ensure", "{name: /etc/web, state: started}", `jobs/a.yaml:4:22: name: "/etc/web.service" is not the name of a unit`},
		{"service.ensure", "{name: 'web*', state: started}", `jobs/a.yaml:4:22: name: "web*.service" is not the name of a unit`},
		{"service.ensure", "{name: app@.service, state: started}", "jobs/a.yaml:4:22: name: app@.service is a template: name an instance of it, such as app@one.service"},
		{"service.ensure", "{name: web, state: running}", `jobs/a.yaml:4:34: state: "running" is not a state: here it is started`},
		{"service.ensure", "{name: web, state: start}", `jobs/a.yaml:4:34: state: "start" is not a state: it is one of started, stopped, restarted, reloaded, enabled, disabled, masked, unmasked`},
		{"service.ensure", "{name: web, state: [started, stopped]}", "jobs/a.yaml:4:34: state: started and stopped exclude each other"},
		{"service.ensure", "{name: web, state: disabled, enabled: true}", "jobs/a.yaml:4:34: state: disabled and enabled: true contradict each other"},
		{"service.ensure", "{name: web, state: [masked, unmasked]}", "jobs/a.yaml:4:34: state: unmasked and masked: true contradict each other"},
		{"service.ensure", "{name: web, state: started, masked: true}", "jobs/a.yaml:4:34: state: a masked unit cannot be started: keep one of the two"},
		{"service.ensure", "{name: web, state: [enabled, masked]}", "jobs/a.yaml:4:34: state: a unit cannot be both enabled and masked"},
		{"service.ensure", "{name: web, state: restarted, reload: true}", "jobs/a.yaml:4:53: reload: the state restarted and reload: true exclude each other"},
		{"service.ensure", "{name: web, state: started, settle: soon}", `jobs/a.yaml:4:51: "soon" is not a duration`},
	}...)
}
