package action_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action"
	"github.com/pullet/pullet/apply/action/actiontest"
	"github.com/pullet/pullet/render"
)

// pull is one of several on a host, of which each is an upgrade.
type pull struct {
	job, other, check string           // the steps of jobs a and b and of the validation, as they stand in their files
	sh                string           // is run below the root before the pull; STATE is the state directory
	fleet             actiontest.Fleet // the services that the fleet knows
	cut               string           // the pull is cut off when this step has ended
	again             bool             // of the version before
	back              bool             // to the first version
	plan              bool
	limit             time.Duration
}

// history is what several pulls make of a host.
type history struct {
	name  string
	host  []string // see newScene
	files map[string]string
	pulls []pull
	told  string            // what the last pull told; see told
	want  map[string]string // what is in a file afterwards, or gone
}

const gone = "(gone)"

// check runs a history. Where a pull is cut off it is told to stop, and in a second test it is killed: there is nothing
// afterwards but what was on disk at that moment.
func (c history) check(t *testing.T) {
	t.Helper()
	ways := map[string]bool{"": false}
	if slices.ContainsFunc(c.pulls, func(p pull) bool { return p.cut != "" }) {
		ways = map[string]bool{", told to stop": false, ", killed": true}
	}
	for how, kill := range ways {
		t.Run(c.name+how, func(t *testing.T) {
			s := actiontest.New(t, c.host...)
			for name, text := range c.files {
				s.Files[name] = text
			}
			var r *apply.Report
			version := 0
			for _, p := range c.pulls {
				if !p.again {
					version++
				}
				if p.back {
					version = 1
				}
				r = follow(s, fmt.Sprint("v", version), p, kill)
			}
			if got := told(r); got != c.told {
				t.Errorf("told %s\nwant %s\nwhy  %s", got, c.told, r.Why())
			}
			for name, want := range c.want {
				if got := content(s, name); got != want {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
		})
	}
}

// content is what is in a file, or gone.
func content(s *actiontest.Scene, name string) string {
	s.T.Helper()
	if _, err := os.Lstat(s.Path(name)); os.IsNotExist(err) {
		return gone
	}
	return s.Read(name)
}

// told is a report in one line: the steps, what is left on the host, and what could not be undone.
func told(r *apply.Report) string {
	out := []string{}
	for _, s := range r.Steps {
		out = append(out, s.Job+"/"+s.Step+" "+string(s.Outcome))
	}
	for _, l := range r.Leftovers {
		out = append(out, "left "+l.ID+": "+l.Why)
	}
	for _, id := range r.NotUndone {
		out = append(out, "not undone "+id)
	}
	return strings.Join(out, ", ")
}

// follow makes one pull.
func follow(s *actiontest.Scene, version string, p pull, kill bool) *apply.Report {
	s.T.Helper()
	if p.sh != "" {
		cmd := exec.Command("/bin/sh", "-ec", p.sh)
		cmd.Dir, cmd.Env = s.Root, append(os.Environ(), "STATE="+s.State)
		if out, err := cmd.CombinedOutput(); err != nil {
			s.T.Fatalf("%s: %v\n%s", p.sh, err, out)
		}
	}
	if s.Fleet = nil; p.fleet != nil {
		s.Fleet = &p.fleet
	}
	program := program(s, version, p)
	o := s.Options()
	o.Run, o.Keep = s.T.Name()+version, filepath.Join(s.State, "lastgood")
	if p.plan {
		return program.Plan(context.Background(), o)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if p.limit > 0 {
		ctx, cancel = context.WithTimeout(ctx, p.limit)
		defer cancel()
	}
	remains, seen := "", p.cut == ""
	o.Watch = func(r *apply.StepReport) {
		switch {
		case r.Step != p.cut || seen:
			return
		case kill:
			remains = copy(s)
		default:
			cancel()
		}
		seen = true
	}
	r, err := program.Run(ctx, o)
	if err != nil {
		s.T.Fatalf("run: %v", err)
	}
	if !seen {
		s.T.Fatalf("no step %q ended: %s %s", p.cut, told(r), r.Why())
	}
	if remains != "" {
		for _, dir := range []string{s.Root, s.State} {
			if err := errors.Join(os.RemoveAll(dir), os.Rename(filepath.Join(remains, filepath.Base(dir)), dir)); err != nil {
				s.T.Fatal(err)
			}
		}
	}
	return r
}

// copy is the host and its state directory as they are now.
func copy(s *actiontest.Scene) string {
	s.T.Helper()
	to := s.T.TempDir()
	if err := os.CopyFS(to, os.DirFS(filepath.Dir(s.Root))); err != nil {
		s.T.Fatal(err)
	}
	return to
}

// program is that of the pull's jobs.
func program(s *actiontest.Scene, version string, p pull) *apply.Program {
	s.T.Helper()
	m, base := fstest.MapFS{}, map[string]string{}
	for _, j := range []struct{ kind, name, text string }{{"jobs", "a", p.job}, {"jobs", "b", p.other}, {"validations", "check", p.check}} {
		if j.text != "" {
			base[j.kind] += "  - {name: " + j.name + "}\n"
			m["jobs/"+j.name+".yaml"] = &fstest.MapFile{Data: []byte(j.text)}
		}
	}
	text := ""
	for kind, list := range base {
		text += kind + ":\n  '*':\n" + list
	}
	m["base/jobs.yaml"] = &fstest.MapFile{Data: []byte(text)}
	for name, text := range s.Files {
		m["files/"+name] = &fstest.MapFile{Data: []byte(text)}
	}
	cat, err := render.Open(render.Layer{Name: "main", FS: m}).Compile(render.Input{Node: render.Node{Name: "n1"}, Facts: actiontest.Facts(), Version: version})
	if err != nil {
		s.T.Fatalf("compile: %v", err)
	}
	bound, err := apply.Bind(cat, action.All())
	if err != nil {
		s.T.Fatalf("bind: %v", err)
	}
	return bound
}

// text is the text of a job's file: what stands at its top, and its steps, each as a flow map.
func text(head string, steps ...string) string {
	if len(steps) == 0 {
		return head + "steps: []\n"
	}
	return head + "steps:\n- " + strings.Join(steps, "\n- ") + "\n"
}

const prunes, restores = "prune: true\n", "onFailure: restore\n"

// conf is a step that writes a file.
func conf(name, path, content string, more ...string) string {
	return fmt.Sprintf("{name: %s, action: file.managed, parameters: {name: '%s', content: '%s', makeDirs: true}%s}", name, path, content, rest(more))
}

// sh is a step that runs a command. One that reacts only has nothing to do by itself.
func sh(name, command string, more ...string) string {
	return fmt.Sprintf("{name: %s, action: cmd.run, parameters: {cmd: '%s'}%s}", name, command, rest(more))
}

func reacts(name, command string, more ...string) string {
	return fmt.Sprintf("{name: %s, action: cmd.run, parameters: {cmd: '%s', creates: /}%s}", name, command, rest(more))
}

func rest(more []string) string { return strings.Join(append([]string{""}, more...), ", ") }
