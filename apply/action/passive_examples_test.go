package action_test

import (
	"maps"

	"github.com/pullet/pullet/apply/action/actiontest"
)

func init() {
	maps.Copy(examples, map[string][]actiontest.Example{
		"time.sleep": {
			{Name: "a moment", Params: "{time: 1ms}", Want: "wait 1ms"},
			{Name: "none", Params: "{time: 0s}", Want: "wait 0s"},
		},
		"time.sleep_rand": {
			{Name: "a moment", Params: "{time: 1ms}", Want: "wait up to 1ms"},
			{Name: "none", Params: "{time: 0s}", Want: "wait up to 0s"},
		},
		"system.reboot": {
			{Name: "below a root", Params: "{}"},
			{Name: "when a command says so", Params: "{onlyif: test -e /run/reboot-required}"},
		},
		"test.succeed": {
			{Name: "silent", Params: "{}"},
			{Name: "with a message", Params: "{name: x, message: fine}"},
		},
		"test.change": {
			{Name: "silent", Params: "{}", Want: "change", Unseen: true},
			{Name: "with a message", Params: "{message: fine}", Want: "change", Unseen: true},
		},
		"test.fail": {
			{Name: "silent", Params: "{}", Want: "fail", Fails: "test.fail always fails"},
			{Name: "with a message", Params: "{message: no way}", Want: "fail", Fails: "no way"},
		},
		"test.echo": {
			{Name: "silent", Params: "{}", Want: "say"},
			{Name: "with a message", Params: "{message: hello}", Want: "say"},
		},
		"template.expression": {
			{Name: "a text", Params: "{content: hello}", Want: "compute"},
			{Name: "a template", Params: "{content: '{{ server.name }}'}", Want: "compute"},
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
