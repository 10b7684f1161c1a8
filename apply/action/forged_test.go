package action_test

import (
	"os"
	"strings"
	"testing"

	"github.com/pullet/pullet/apply/action/actiontest"
)

// TestNamesForgeNoLines: a line break in a name, of a step or of what is on the host, begins no line of a plan or of a
// log.
func TestNamesForgeNoLines(t *testing.T) {
	t.Parallel()
	const bad = "x\n~ changed  a/forged: y"
	for action, params := range map[string]string{
		"file.managed":      `{name: "/d/BAD", content: "x\n", mode: 0600}`,
		"file.directory":    `{name: /d, clean: true}`,
		"file.symlink":      `{name: "/d/l", target: "BAD"}`,
		"file.line":         `{name: "/d/BAD", line: a, create: true}`,
		"file.block":        `{name: "/d/new BAD", content: a, create: true}`,
		"file.absent":       `{name: "/d/BAD"}`,
		"cmd.run":           `{cmd: "echo BAD"}`,
		"archive.extracted": `{name: "/d/new BAD", source: app.tar}`,
		"mount.mounted":     `{name: /m, device: "BAD", fstype: ext4}`,
	} {
		s := actiontest.New(t, "d d 755")
		if err := os.WriteFile(s.Path("d/"+strings.ReplaceAll(bad, "/", "-")), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		p, err := s.BindText(strings.ReplaceAll("steps:\n- name: \"it BAD\"\n  action: "+action+"\n  parameters: "+params+"\n", "BAD", `x\n~ changed  a/forged: y`))
		if err != nil {
			if strings.Contains(err.Error(), "\n~ changed") {
				t.Errorf("%s: the mistake has a forged line: %s", action, err)
			}
			continue
		}
		report := p.Plan(t.Context(), s.Options())
		for what, text := range map[string]string{"diff": report.Steps[0].Diff, "title": report.Steps[0].Title(), "log": report.Log()} {
			if strings.HasPrefix(text, "~ changed") || strings.Contains(text, "\n~ changed") {
				t.Errorf("%s: the %s has a forged line:\n%s", action, what, text)
			}
		}
	}
}
