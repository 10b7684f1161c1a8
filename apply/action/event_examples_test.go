package action_test

import (
	"maps"

	"github.com/pullet/pullet/apply/action/actiontest"
)

func init() {
	maps.Copy(examples, map[string][]actiontest.Example{
		"event.emit": {
			{Name: "a name", Params: "{name: backup/wanted}", Want: "tell backup/wanted", Unseen: true},
			{Name: "with data", Params: "{name: backup/wanted, data: {a: [1, x]}, dedupe: d, hosts: [web1, 192.0.2.1]}", Want: "tell backup/wanted", Unseen: true},
		},
	})
	mistakes = append(mistakes, []mistake{
		{"event.emit", "{}", `jobs/a.yaml:2:3: parameters: "name" is missing`},
		{"event.emit", "{name: /a}", `jobs/a.yaml:4:22: name: "/a" is no name of an event: write a path such as backup/failed`},
		{"event.emit", "{name: a, hosts: ['a b']}", `hosts: "a b" is neither a name nor an address of a host`},
		{"event.emit", `{name: a, dedupe: "a\nb"}`, "dedupe: is not one line of 200 bytes at most"},
		{"event.emit", "{name: a, data: {a: '{{ \"x\" | repeat 17000 }}'}}", "data: has 17008 bytes, of 16384 at most"},
	}...)
}
