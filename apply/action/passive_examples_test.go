package action_test

import "maps"

func init() {
	maps.Copy(examples, map[string][]example{
		"time.sleep": {
			{name: "a moment", params: "{time: 1ms}", want: "wait 1ms"},
			{name: "none", params: "{time: 0s}", want: "wait 0s"},
		},
		"time.sleep_rand": {
			{name: "a moment", params: "{time: 1ms}", want: "wait up to 1ms"},
			{name: "none", params: "{time: 0s}", want: "wait up to 0s"},
		},
		"system.reboot": {
			{name: "below a root", params: "{}"},
			{name: "when a command says so", params: "{onlyif: test -e /run/reboot-required}"},
		},
		"test.succeed": {
			{name: "silent", params: "{}"},
			{name: "with a message", params: "{name: x, message: fine}"},
		},
		"test.change": {
			{name: "silent", params: "{}", want: "change", unseen: true},
			{name: "with a message", params: "{message: fine}", want: "change", unseen: true},
		},
		"test.fail": {
			{name: "silent", params: "{}", want: "fail", fails: "told to fail"},
			{name: "with a message", params: "{message: no way}", want: "fail", fails: "no way"},
		},
		"test.echo": {
			{name: "silent", params: "{}", want: "say"},
			{name: "with a message", params: "{message: hello}", want: "say"},
		},
		"template.expression": {
			{name: "a text", params: "{content: hello}", want: "compute"},
			{name: "a template", params: "{content: '{{ server.name }}'}", want: "compute"},
		},
	})
	mistakes = append(mistakes, []mistake{
		{"time.sleep", "{time: later}", `jobs/a.yaml:4:22: "later" is not a duration`},
		{"time.sleep", "{}", `jobs/a.yaml:2:3: parameters: "time" is missing`},
		{"template.expression", "{}", `jobs/a.yaml:2:3: parameters: "content" is missing`},
		{"template.expression", "{content: [a]}", "jobs/a.yaml:4:25: content: expected a text, found a list"},
		{"file.manged", "{}", `jobs/a.yaml:3:11: there is no action "file.manged" (did you mean "file.managed"?)`},
	}...)
}
