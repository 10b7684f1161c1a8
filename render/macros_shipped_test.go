package render

import "testing"

// TestServersByLabel: the value of the shipped macro is a list: it is counted, walked through and indexed, in templates
// and expressions.
func TestServersByLabel(t *testing.T) {
	in := web1
	in.View = View{Nodes: map[string]Node{
		"db1": {Name: "db1", Labels: map[string]string{"role": "db"}}, "db2": {Name: "db2", Labels: map[string]string{"role": "db"}},
	}}
	cat, err := repo(map[string]string{
		"base/jobs.yaml": "jobs:\n  '*': [{name: a}]\n",
		"jobs/a.yaml":    "steps: [{name: a, action: x, conditions: {when: {condition: \"len(macros['servers_get_by_label']('role=db')) == 2\"}}}]\n",
	}).Compile(in)
	if err != nil {
		t.Fatal(err)
	}
	if yes, err := cat.Eval(cat.Jobs[0].Steps[0].Conditions.When.Expression, Judged{}); err != nil || !yes {
		t.Errorf("the condition is %v, %v", yes, err)
	}
	for text, want := range map[string]string{
		`{{ macro "servers_get_by_label" "role=db" | length }}`:               "2",
		`{{ macro "servers_get_by_label" "role=none" | length }}`:             "0",
		`{{ macro "servers_get_by_label" "role=db" | join "," }}`:             "db1,db2",
		`{{ range macro "servers_get_by_label" "role=db" }}<{{ . }}>{{ end}}`: "<db1><db2>",
		`{{ index (macro "servers_get_by_label" "role=db") 1 }}`:              "db2",
		`{{ len (macro "servers_get_by_label" "role=db") }}`:                  "2",
	} {
		if got, err := cat.Value(text); err != nil || got != want {
			t.Errorf("%s: got %v, %v, want %s", text, got, err, want)
		}
	}
}
