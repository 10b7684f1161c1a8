package render

import (
	"strings"
	"testing"
)

const described = "apiVersion: v1alpha\nkind: Config\nname: object-name\nlabels: {my-label-1: my-label-1-value}\nannotations: {a: b}\nuuid: 5acfcdce-be46-4f34-81be-9fd6980c2224\n"

// TestMetadataAtTop: the fields of metadata may stand at the top of each kind of file, and do not become variables or
// macros.
func TestMetadataAtTop(t *testing.T) {
	cat := compile(t, map[string]string{
		"pullet.yaml":      described + "rollout: {rollingRules: {global: 3}}\n",
		"nodes/hosts.yaml": described + "nodes: {web1: {labels: {role: web}}}\n",
		"base/vars.yaml":   described + "files: {'*': [{name: site}, {name: bare}, {name: own}]}\n",
		"base/macros.yaml": described + "macros: {'*': [{name: all}]}\n",
		"base/jobs.yaml":   described + "jobs: {'*': [{name: site}]}\n",
		"vars/site.yaml":   described + "spec: {variables: {port: 80}}\n",
		"vars/bare.yaml":   described,
		"vars/own.yaml":    "name: a variable\nkind: another\n",
		"macros/all.yaml":  described + "hello: {template.expression: [{content: hello}]}\n",
		"jobs/site.yaml":   described + "steps: [{name: a, action: test.echo, parameters: {text: '{{ vars.port }} {{ vars.name }} {{ macro \"hello\" }}'}}]\n",
	})
	if got := cat.Jobs[0].Steps[0].Params.Text("text"); got != "80 a variable hello" {
		t.Errorf("the step says %q", got)
	}
	if cat.Vars["uuid"] != nil || cat.Vars["spec"] != nil || cat.Vars["kind"] != "another" {
		t.Errorf("variables: %v", cat.Vars)
	}
	if n, _ := cat.Fleet.Rollout.RollingRules.Global.Of(9); n != 3 {
		t.Errorf("the rules were not read: %+v", cat.Fleet)
	}
}

// TestUUIDs: what is no UUID is a mistake in every kind of file.
func TestUUIDs(t *testing.T) {
	good := map[string]string{
		"pullet.yaml": "rollout: {}\n", "nodes/hosts.yaml": "nodes: {web1: {labels: {role: web}}}\n",
		"base/vars.yaml": "files: {'*': [{name: site}]}\n", "base/macros.yaml": "macros: {'*': [{name: all}]}\n",
		"base/jobs.yaml": "jobs: {'*': [{name: site}]}\n", "vars/site.yaml": "spec: {variables: {port: 80}}\n",
		"macros/all.yaml": "hello: {template.expression: [{content: hello}]}\n", "jobs/site.yaml": "steps: []\n",
	}
	for name, text := range good {
		for _, head := range []string{"metadata: {apiVersion: v1, kind: K, uuid: not-a-uuid}\n", "apiVersion: v1\nkind: K\nuuid: not-a-uuid\n"} {
			files := map[string]string{}
			for other, text := range good {
				files[other] = text
			}
			files[name] = head + text
			_, err := repo(files).Compile(web1)
			if err == nil || !strings.Contains(err.Error(), name+":") || !strings.Contains(err.Error(), `"not-a-uuid" is not a UUID (a UUID reads`) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
