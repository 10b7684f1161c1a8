package render

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
)

// TestRequisites: a requisite is a step's name or one thing of a module; what is null is none, and everything else is a
// mistake.
func TestRequisites(t *testing.T) {
	for text, want := range map[string]string{
		"a":                         "[{require  a}]",
		"[a, ~, {file: /etc/motd}]": "[{require  a} {require file /etc/motd}]",
		"{file: /etc/motd}":         "[{require file /etc/motd}]",
		"~":                         "[]",
		"{file: a, pkg: b}":         "jobs/a.yaml:2:46: require: expected a step's name or a map such as {file: /etc/motd}, found a map",
		"{}":                        "found a map",
		"{file: [a]}":               "found a map",
		"[[a, b]]":                  "jobs/a.yaml:2:47: require: expected a step's name or a map such as {file: /etc/motd}, found a list",
	} {
		files := fstest.MapFS{
			"base/jobs.yaml": {Data: []byte("jobs: {'*': [{name: a}]}\n")},
			"jobs/a.yaml":    {Data: []byte("steps:\n- {name: b, action: x, parameters: {require: " + text + "}}\n")},
		}
		cat, err := Open(Layer{Name: "main", FS: files}).Compile(Input{Node: Node{Name: "n1"}})
		got := fmt.Sprint(err)
		if err == nil {
			var all []string
			for _, r := range cat.Jobs[0].Steps[0].Requisites {
				all = append(all, fmt.Sprintf("{%s %s %s}", r.Kind, r.Module, r.Name))
			}
			got = fmt.Sprint(all)
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
