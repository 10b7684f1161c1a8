package action_test

import (
	"context"
	"testing"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/actiontest"
)

// TestLackedDirectory: a plan fails for a directory that is missing, unless a step before may make it.
func TestLackedDirectory(t *testing.T) {
	t.Parallel()
	for before, want := range map[string]apply.Outcome{
		"{name: b, action: test.change}": apply.Failed,
		"{name: b, action: http.request, parameters: {url: 'http://127.0.0.1:1/', method: POST}}":                apply.Failed,
		"{name: b, action: file.absent, parameters: {name: /a/b}}":                                               apply.Failed,
		"{name: b, action: file.directory, parameters: {name: /a}}":                                              apply.Failed,
		"{name: b, action: file.directory, parameters: {name: /d}}":                                              apply.Changed,
		"{name: b, action: cmd.run, parameters: {cmd: mkdir /d}}":                                                apply.Changed,
		"{name: b, action: cron.present, parameters: {name: b, schedule: '@daily', command: x, mode: \"0644\"}}": apply.Failed,
	} {
		s := actiontest.New(t, "f a/b 644 x", "d etc/cron.d 755")
		p, err := s.BindText("steps:\n- " + before + "\n- {name: it, action: file.managed, parameters: {name: /d/f, content: x}}\n")
		if err != nil {
			t.Fatalf("%s: %v", before, err)
		}
		r := p.Plan(context.Background(), s.Options())
		if len(r.Steps) != 2 || r.Steps[1].Outcome != want {
			t.Errorf("%s: %+v; want %s", before, r.Steps[1], want)
		}
	}
}
