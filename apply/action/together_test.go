package action_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/actiontest"
)

// TestImpliedOrder: in genius order a step comes after what it obviously needs: its groups, its user, its directory,
// its package.
func TestImpliedOrder(t *testing.T) {
	t.Parallel()
	p, err := actiontest.New(t).BindText(`runOptions: {ordering: genius}
steps:
- {name: cron, action: cron.present, parameters: {name: a, schedule: '@daily', user: bob, command: x}}
- {name: key, action: ssh.authorized_key, parameters: {user: bob, key: ` + actiontest.Key1 + `}}
- {name: ops, action: group.present, parameters: {name: ops, members: [bob]}}
- {name: bob, action: user.present, parameters: {name: bob, group: main, groups: [wheel]}}
- {name: wheel, action: group.present, parameters: {name: wheel}}
- {name: main, action: group.present, parameters: {name: main}}
- {name: unit, action: service.ensure, parameters: {name: web, enabled: true}}
- {name: offer, action: service.publish, parameters: {name: db}}
- {name: file, action: file.managed, parameters: {name: /d/e/f, content: x, owner: bob, group: wheel}}
- {name: web, action: pkg.installed, parameters: {name: web}}
- {name: more, action: pkg.latest, parameters: {pkgs: [db]}}
- {name: all, action: pkg.uptodate}
- {name: repo, action: pkgrepo.managed, parameters: {name: x, url: 'https://example.org', trusted: true, suites: ./}}
- {name: dir, action: file.directory, parameters: {name: /d/}}
`)
	if err != nil {
		t.Fatal(err)
	}
	order, _ := p.Graph()
	for _, pair := range [][2]string{
		{"bob", "cron"}, {"bob", "key"}, {"bob", "ops"}, {"wheel", "bob"}, {"main", "bob"}, {"web", "unit"}, {"more", "offer"},
		{"bob", "file"}, {"wheel", "file"}, {"dir", "file"}, {"repo", "web"}, {"repo", "more"}, {"repo", "all"},
	} {
		if slices.Index(order, "a/"+pair[0]) > slices.Index(order, "a/"+pair[1]) {
			t.Errorf("%s comes before %s: %v", pair[1], pair[0], order)
		}
	}
}

// TestEditsAtTheSameTime: steps that run at once and edit one file lose nothing of each other's.
func TestEditsAtTheSameTime(t *testing.T) {
	t.Parallel()
	actiontest.NeedRoot(t)
	s := actiontest.New(t, append(actiontest.People(actiontest.Home), "d root 700", "d etc/ssh 755")...)
	job, want := "runOptions: {ordering: justdoit}\nsteps:\n", 0
	for i := range 8 {
		key := actiontest.Key1
		if i%2 == 1 {
			key = actiontest.Key2
		}
		for action, params := range map[string]string{
			"host.present":       fmt.Sprintf("{ip: 10.0.0.%d, names: [n%d]}", i, i),
			"group.present":      fmt.Sprintf("{name: wheel, members: [u%d]}", i),
			"user.present":       fmt.Sprintf("{name: u%d, groups: [docker]}", i),
			"ssh.authorized_key": "{user: root, key: " + key + "}",
			"ssh.known_host":     fmt.Sprintf("{host: h%d, key: %s}", i, key),
		} {
			job += fmt.Sprintf("- {name: %s %d, action: %s, parameters: %s", action, i, action, params)
			if action == "group.present" {
				job += fmt.Sprintf(", require: [user.present %d]", i)
			}
			job += "}\n"
			want++
		}
	}
	p, err := s.BindText(job)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range s.RunAll(context.Background(), p).Steps {
		if r.Outcome == apply.Failed {
			t.Errorf("%s: %s", r.Step, r.Reason)
		}
	}
	again := s.RunAll(context.Background(), p)
	for _, r := range again.Steps {
		if r.Outcome != apply.OK {
			t.Errorf("then %s: %s %s %s", r.Step, r.Outcome, r.Summary, r.Reason)
		}
	}
	if len(again.Steps) != want {
		t.Errorf("%d steps, want %d", len(again.Steps), want)
	}
}

// TestManyEditors: steps that edit one file at the same time lose nothing of each other.
func TestManyEditors(t *testing.T) {
	t.Parallel()
	s := actiontest.New(t, "f etc/fstab 644 # ours\n", "f etc/sysctl.d/50-a.conf 644 # ours\n")
	job := strings.Builder{}
	job.WriteString("runOptions: {ordering: justdoit}\nsteps:\n")
	const many = 20
	for i := range many {
		fmt.Fprintf(&job, "- {name: m%d, action: mount.mounted, parameters: {name: /srv/m%d, device: /dev/d%d}}\n", i, i, i)
		fmt.Fprintf(&job, "- {name: s%d, action: sysctl.present, parameters: {name: kernel.p%d, value: 1, file: /etc/sysctl.d/50-a.conf}}\n", i, i)
	}
	p, err := s.BindText(job.String())
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range s.RunAll(t.Context(), p).Steps {
		if step.Outcome != apply.Changed {
			t.Errorf("%s: %s %s", step.Step, step.Outcome, step.Reason)
		}
	}
	for file, want := range map[string]string{"etc/fstab": "\n/dev/d%d\t/srv/m%d\tauto\tdefaults\t0\t0\n", "etc/sysctl.d/50-a.conf": "\nkernel.p%d = 1\n"} {
		text := s.Read(file)
		for i := range many {
			if line := strings.ReplaceAll(want, "%d", fmt.Sprint(i)); strings.Count(text, line) != 1 {
				t.Errorf("%s: want one %q in\n%s", file, line, text)
			}
		}
		if n := strings.Count(text, "\n"); n != many+1 {
			t.Errorf("%s has %d lines", file, n)
		}
	}
}
