package action_test

import (
	"maps"

	"github.com/pullet/pullet/apply/action/actiontest"
	"github.com/pullet/pullet/render"
)

func init() {
	db1 := render.Service{Name: "db", Node: "db1", Address: "192.0.2.1", Port: 5432, Tags: []string{"primary"}, Ready: true}
	db2 := render.Service{Name: "db", Node: "db2", Address: "192.0.2.2", Port: 5432}
	own := render.Service{Name: "db", Node: "n1", Address: "192.0.2.9", Port: 5432}
	maps.Copy(examples, map[string][]actiontest.Example{
		"service.publish": {
			{Name: "announce", Params: "{name: db, port: 5432, address: 192.0.2.9}", Fleet: actiontest.Fleet{db1}, Want: "announce 192.0.2.9:5432", Unseen: true},
			{Name: "announced already", Params: "{name: db, port: 5432, address: 192.0.2.9}", Fleet: actiontest.Fleet{db1, own}},
			{Name: "another port", Params: "{name: db, port: 5433, address: 192.0.2.9}", Fleet: actiontest.Fleet{own}, Want: "announce 192.0.2.9:5433 instead of 192.0.2.9:5432", Unseen: true},
			{Name: "of the default route", Params: "{name: db, tags: [a, b]}", Fleet: actiontest.Fleet{}, Want: "announce 192.0.2.7", Unseen: true},
			{Name: "of an interface", Params: "{name: db, interface: eth1}", Fleet: actiontest.Fleet{}, Want: "announce 198.51.100.7", Unseen: true},
			{Name: "of an interface without an address", Params: "{name: db, interface: eth9}", Fleet: actiontest.Fleet{}, Fails: "interface eth9 has no address on this host"},
		},
		"service.withdraw": {
			{Name: "not announced", Params: "{name: db}", Fleet: actiontest.Fleet{db1}},
			{Name: "announced", Params: "{name: db}", Fleet: actiontest.Fleet{db1, own}, Want: "withdraw 192.0.2.9:5432", Unseen: true},
		},
		"service.wait": {
			{Name: "enough", Params: "{name: db}", Fleet: actiontest.Fleet{db1}},
			{Name: "announced is enough", Params: "{name: db, kind: announced, count: 2}", Fleet: actiontest.Fleet{db1, db2}},
			{Name: "with a tag", Params: "{name: db, tag: primary}", Fleet: actiontest.Fleet{db1, db2}},
		},
	})
	mistakes = append(mistakes, []mistake{
		{"service.publish", "{name: 'a b'}", `jobs/a.yaml:4:22: name: "a b": a service is named with letters, digits and dashes`},
		{"service.publish", "{name: a, port: 70000}", "jobs/a.yaml:4:31: port: 70000 is no port"},
		{"service.publish", "{name: a, address: x, interface: y}", "jobs/a.yaml:4:48: interface: address and interface exclude each other"},
		{"service.withdraw", "{name: -a}", `jobs/a.yaml:4:22: name: "-a": a service is named with letters, digits and dashes`},
		{"service.wait", "{name: ''}", `jobs/a.yaml:4:22: name: "": a service is named`},
		{"service.wait", "{name: a, count: -1}", "jobs/a.yaml:4:32: count: -1 is no number of instances"},
		{"service.wait", "{name: a, path: /x}", "jobs/a.yaml:4:31: path: path is for reachable: http"},
		{"service.wait", "{name: a, kind: up}", `jobs/a.yaml:4:31: kind: expected announced or ready, found "up"`},
	}...)
}
