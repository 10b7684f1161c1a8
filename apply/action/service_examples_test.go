package action_test

import "maps"

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

// wholeUnit is a setup on a whole host: a unit of this name, stopped, that its [Service] section describes.
func wholeUnit(name, section string) string {
	path := "/etc/systemd/system/" + name
	return "systemctl disable -q --now " + name + " 2>/dev/null || true; printf '%s\\n' '[Service]' '" + section + "' '[Install]' WantedBy=multi-user.target >" + path + "; systemctl daemon-reload"
}

func init() {
	maps.Copy(examples, map[string][]example{
		"service.ensure": {
			{name: "enabled", params: "{name: web, enabled: true}", host: []string{target, webUnit}, want: enablesWeb},
			{name: "enabled, as a state", params: "{name: web, state: enabled}", host: []string{target, webUnit}, want: enablesWeb},
			{name: "enabled already", params: "{name: web.service, enabled: true}", host: []string{target, webUnit, webEnabled}},
			{name: "what runs is left to the boot", params: "{name: web, state: [started, enabled]}", host: []string{target, webUnit}, want: enablesWeb},
			{name: "only what runs", params: "{name: web, state: started}", host: []string{webUnit}},
			{name: "disabled", params: "{name: web, enabled: false}", host: []string{target, webUnit, webEnabled}, want: disablesWeb},
			{name: "disabled already", params: "{name: web, state: disabled}", host: []string{webUnit}},
			{name: "disabled, and not there", params: "{name: web, state: disabled}"},
			{name: "disabled by its alias", params: "{name: www, enabled: false}", host: []string{target, webUnit, webEnabled, webAlias}, want: disablesWeb},
			{name: "enabled by its alias", params: "{name: www, enabled: true}", host: []string{target, webUnit, webEnabled, webAlias}},
			{name: "an instance", params: "{name: app@one, enabled: true}", host: []string{target, appUnit}, want: "enable (multi-user.target)"},
			{name: "by another unit", params: "{name: front, enabled: true}", host: []string{target, webUnit, alsoUnit}, want: "enable web.service"},
			{name: "by another unit, enabled already", params: "{name: front, enabled: true}", host: []string{target, webUnit, alsoUnit, webEnabled}},
			{name: "by another unit, to be disabled", params: "{name: front, enabled: false}", host: []string{target, webUnit, alsoUnit, webEnabled}, want: "disable web.service"},
			{name: "masked", params: "{name: web, masked: true}", host: []string{webUnit}, want: "mask"},
			{name: "masked and disabled", params: "{name: web, state: [disabled, masked]}", host: []string{target, webUnit, webEnabled}, want: disablesWeb + ", mask"},
			{name: "masked before it is installed", params: "{name: web, masked: true}", host: []string{"d etc/systemd/system 755"}, want: "mask"},
			{name: "masked already", params: "{name: web, state: masked}", host: []string{webUnit, webMasked}},
			{name: "a masked template", params: "{name: app@.service, masked: true}", host: []string{appUnit}, want: "mask"},
			{name: "unmasked", params: "{name: web, masked: false}", host: []string{webUnit, webMasked}, want: "unmask"},
			{name: "unmasked and enabled", params: "{name: web, state: [unmasked, enabled]}", host: []string{target, webUnit, webMasked}, want: "unmask, enable"},
			{name: "masked, to be enabled", params: "{name: web, enabled: true}", host: []string{webUnit, webMasked}, fails: "web.service is masked by /etc/systemd/system/web.service -> /dev/null and cannot be enabled: add masked: false"},
			{name: "masked, its file in the way", params: "{name: own, masked: true}", host: []string{ownUnit}, fails: "own.service cannot be masked: its unit file is /etc/systemd/system/own.service, where the mask would be"},
			{name: "static", params: "{name: fixed, enabled: true}", host: []string{staticUnit}, fails: "fixed.service cannot be enabled: it is static"},
			{name: "static, disabled", params: "{name: fixed, enabled: false}", host: []string{staticUnit}},
			{name: "not there", params: "{name: wbe, enabled: true}", host: []string{webUnit}, want: "enable", fails: `there is no unit wbe.service on this host (did you mean "web"?)`},
			{name: "no such template", params: "{name: ap@one, enabled: true}", host: []string{appUnit}, want: "enable", fails: `there is no unit ap@one.service on this host (did you mean "app@one"?)`},
			{name: "nothing is there", params: "{name: web, enabled: true}", want: "enable", fails: "there is no unit web.service on this host: install what brings it"},

			{name: "started", params: "{name: c-web, state: started}", setup: wholeUnit("c-web.service", "ExecStart=/usr/bin/sleep 1d"), whole: true, want: "start", unseen: true},
			{name: "started and enabled", params: "{name: c-web, state: [started, enabled]}", setup: wholeUnit("c-web.service", "ExecStart=/usr/bin/sleep 1d"), whole: true, want: "enable (multi-user.target), start"},
			{name: "started already", params: "{name: c-web, state: started, enabled: true}", setup: wholeUnit("c-web.service", "ExecStart=/usr/bin/sleep 1d") + "; systemctl enable -q --now c-web", whole: true},
			{name: "stopped and disabled", params: "{name: c-web, state: stopped, enabled: false}", setup: wholeUnit("c-web.service", "ExecStart=/usr/bin/sleep 1d") + "; systemctl enable -q --now c-web", whole: true, want: "disable (multi-user.target), stop"},
			{name: "stopped already", params: "{name: c-web, state: stopped}", setup: wholeUnit("c-web.service", "ExecStart=/usr/bin/sleep 1d"), whole: true},
			{name: "without a check: restarted", params: "{name: c-web, state: restarted}", setup: wholeUnit("c-web.service", "ExecStart=/usr/bin/sleep 1d"), whole: true, want: "restart", unseen: true},
			{name: "without a check: reloaded", params: "{name: c-web, state: reloaded}", setup: wholeUnit("c-web.service", "ExecStart=/usr/bin/sleep 1d\nExecReload=/bin/true") + "; systemctl start c-web", whole: true, want: "reload", unseen: true},
			{name: "reloaded, which it cannot", params: "{name: c-web, state: reloaded}", setup: wholeUnit("c-web.service", "ExecStart=/usr/bin/sleep 1d") + "; systemctl start c-web", whole: true, want: "reload", fails: "c-web.service cannot reload: its unit has no ExecReload="},
			{name: "does not stay up", params: "{name: c-web, state: started}", setup: wholeUnit("c-web.service", "ExecStart=/bin/false"), whole: true, want: "start", fails: "c-web.service started and did not stay up: it is failed (failed), exit-code, exit status 1"},
			{name: "no such unit", params: "{name: c-wbe, state: started}", setup: wholeUnit("c-web.service", "ExecStart=/usr/bin/sleep 1d"), whole: true, want: "start", fails: `there is no unit c-wbe.service on this host (did you mean "c-web"?)`},
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
