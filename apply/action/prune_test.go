package action_test

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/pullet/pullet/apply/action/actiontest"
)

// TestPrune: what is still declared is never removed, by whatever name; what is not is, also when a run that failed or
// was cut off brought it.
func TestPrune(t *testing.T) {
	t.Parallel()
	none := text(prunes)
	tree := "{name: f, action: file.managed, parameters: {name: /etc/app, source: tree, recurse: true, template: true, makeDirs: true}%s}"
	late := func(value, more string) string {
		return text(prunes, "{name: x, action: template.expression, parameters: {content: "+value+"}}", strings.Replace(tree, "%s", more, 1))
	}
	read := map[string]string{"tree/a.conf": "{{ (step `x`).StdOut }}"}
	waits := func(content string) string {
		return text(prunes, "{name: x, action: template.expression, parameters: {content: live}}", conf("f", "/etc/app/{{ (step `x`).StdOut }}.conf", content))
	}
	for _, c := range []history{
		{name: "a file by another path", host: []string{"d /usr/lib 0755", "l /lib usr/lib"},
			pulls: []pull{{job: text(prunes, conf("u", "/lib/app/u.conf", "x"))}, {job: text(prunes, conf("u", "/usr/lib/app/u.conf", "x"))}},
			told:  "a/u ok", want: map[string]string{"usr/lib/app/u.conf": "x"}},
		{name: "a file that had a path before", host: []string{"d /usr/lib 0755", "l /lib usr/lib"},
			pulls: []pull{{job: text(prunes, conf("u", "/lib/app/u.conf", "x"))}, {job: text(prunes, conf("u", "/usr/lib/app/u.conf", "x"))}, {job: none}},
			told:  "a/prune file /usr/lib/app/u.conf changed", want: map[string]string{"usr/lib/app/u.conf": gone}},
		{name: "parts of what is a whole file now", host: []string{"f /etc/hosts 0644 127.0.0.1 localhost\n"},
			pulls: []pull{
				{job: text(prunes, "{name: h, action: host.present, parameters: {ip: 192.0.2.1, names: [db]}}", "{name: l, action: file.line, parameters: {name: /etc/hosts, line: 192.0.2.3 web}}")},
				{job: text(prunes, `{name: h, action: file.managed, parameters: {name: /etc/hosts, content: "192.0.2.1 db\n192.0.2.3 web\n"}}`)}},
			told: "a/h changed", want: map[string]string{"etc/hosts": "192.0.2.1 db\n192.0.2.3 web\n"}},
		{name: "a file that an archive brings now", host: []string{"d /opt 0755"}, files: map[string]string{"app.tar": archive(t, "config", "new")},
			pulls: []pull{
				{job: text(prunes, conf("f", "/opt/app/config", "x"))},
				{job: text(prunes, "{name: f, action: archive.extracted, parameters: {name: /opt/app, source: app.tar}}")},
				{job: text(prunes, "{name: f, action: archive.extracted, parameters: {name: /opt/app, source: app.tar}}"), again: true}},
			told: "a/f ok", want: map[string]string{"opt/app/config": "new"}},
		{name: "a line that replaced another", host: []string{"f /etc/app.conf 0644 Port 22\n"},
			pulls: []pull{{job: text(prunes, "{name: l, action: file.line, parameters: {name: /etc/app.conf, line: Port 2222, match: ^Port }}")}, {job: none}},
			told:  "left file /etc/app.conf: line Port 2222: nothing removes it by itself: a step has to", want: map[string]string{"etc/app.conf": "Port 2222\n"}},
		{name: "a directory and what is in it", host: []string{"d /etc 0755"},
			pulls: []pull{{job: text(prunes, "{name: d, action: file.directory, parameters: {name: /etc/app}}", conf("f", "/etc/app/a.conf", "x"))}, {job: none}},
			told:  "a/prune file /etc/app/a.conf changed, a/prune file /etc/app changed", want: map[string]string{"etc/app": gone}},
		{name: "a name that is known when the step runs",
			pulls: []pull{{job: waits("one")}, {job: none}},
			told:  "a/prune file /etc/app/live.conf changed", want: map[string]string{"etc/app/live.conf": gone}},
		{name: "such a name, cut off behind it",
			pulls: []pull{{job: waits("one")}, {job: waits("two"), cut: "f"}, {job: waits("two"), again: true}},
			told:  "a/x ok, a/f changed", want: map[string]string{"etc/app/live.conf": "two"}},
		{name: "a tree that is known when the step runs, cut off behind it", files: read,
			pulls: []pull{{job: late("one", "")}, {job: late("two", ""), cut: "f"}, {job: late("two", ""), again: true}, {job: late("two", ""), again: true}},
			told:  "a/x ok, a/f ok", want: map[string]string{"etc/app/a.conf": "two"}},
		{name: "such a tree, skipped", files: read,
			pulls: []pull{{job: late("one", "")}, {job: late("one", ", conditions: {when: {condition: 'false'}}")}},
			told:  "a/x ok, a/f skipped", want: map[string]string{"etc/app/a.conf": "one"}},
		{name: "such a tree, in a plan", files: read,
			pulls: []pull{{job: text(prunes, sh("x", "echo -n one"), strings.Replace(tree, "%s", "", 1))}, {job: text(prunes, sh("x", "echo -n two"), strings.Replace(tree, "%s", "", 1)), plan: true}},
			told:  "a/x changed, a/f changed", want: map[string]string{"etc/app/a.conf": "one"}},
		{name: "brought by a step that failed",
			pulls: []pull{
				{job: text(prunes, conf("f", "/etc/app/a.conf", "x", "conditions: {success: {condition: 'false'}}"))},
				{job: text(prunes, conf("f", "/etc/app/a.conf", "x"))}, {job: none}},
			told: "a/prune file /etc/app/a.conf changed", want: map[string]string{"etc/app/a.conf": gone}},
		{name: "brought by a run that was cut off and another version came",
			pulls: []pull{{job: none}, {job: text(prunes, conf("f", "/etc/app/a.conf", "x"), sh("g", "true")), cut: "f"}, {job: none}},
			told:  "a/prune file /etc/app/a.conf changed", want: map[string]string{"etc/app/a.conf": gone}},
		{name: "brought by a run that was cut off and the version before came back",
			pulls: []pull{{job: none}, {job: text(prunes, conf("f", "/etc/app/a.conf", "x"), sh("g", "true")), cut: "f"}, {job: none, back: true}},
			told:  "a/prune file /etc/app/a.conf changed", want: map[string]string{"etc/app/a.conf": gone}},
		{name: "put back to nothing, and made by hand since", host: []string{"d /etc/app 0755"},
			pulls: []pull{
				{job: text(prunes+restores, conf("n", "/etc/app/new.conf", "x"), "{name: w, action: service.wait, parameters: {name: db, timeout: 1ms, interval: 1ms}}"), fleet: actiontest.Fleet{}},
				{job: text(prunes+restores, conf("n", "/etc/app/new.conf", "x"), sh("bad", "false"))},
				{job: none, sh: "test ! -e etc/app/new.conf; printf hand >etc/app/new.conf"}},
			told: "", want: map[string]string{"etc/app/new.conf": "hand"}},
		{name: "what replaces it failed its validation",
			pulls: []pull{
				{job: text(prunes+restores, conf("old", "/etc/old.conf", "good")), check: text("", sh("c", "test ! -e etc/new.conf"))},
				{job: text(prunes+restores, conf("new", "/etc/new.conf", "bad")), check: text("", sh("c", "test ! -e etc/new.conf"))}},
			told: "a/new changed, check/c failed, a/restore /etc/new.conf changed, left file /etc/old.conf: this run did not succeed",
			want: map[string]string{"etc/old.conf": "good", "etc/new.conf": gone}},
	} {
		c.check(t)
	}
}

func archive(t *testing.T, name, content string) string {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestPruneSensitive: neither what is left nor what is removed is told with the text of a sensitive step.
func TestPruneSensitive(t *testing.T) {
	t.Parallel()
	s := actiontest.New(t, "f /etc/app.conf 0600 # x\n")
	follow(s, "v1", pull{job: text(prunes,
		"{name: l, sensitive: true, action: file.line, parameters: {name: /etc/app.conf, line: password=hunter2}}",
		"{name: b, sensitive: true, action: file.block, parameters: {name: /etc/app.conf, content: token=hunter2}}")}, false)
	left := follow(s, "v2", pull{job: text("")}, false)
	removed := follow(s, "v3", pull{job: text(prunes)}, false)
	shown, err := json.Marshal([]any{left, removed})
	if err != nil || len(left.Leftovers) != 2 || len(removed.Steps) != 2 || strings.Contains(string(shown), "hunter2") {
		t.Errorf("%v: %s", err, shown)
	}
	if got := s.Read("etc/app.conf"); got != "# x\n" {
		t.Errorf("left in the file: %q", got)
	}
}
