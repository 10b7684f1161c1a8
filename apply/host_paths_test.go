package apply

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pullet/pullet/render"
)

// TestOnceInARun: it is done once for a key, and all who ask get its error.
func TestOnceInARun(t *testing.T) {
	h, bad := &Host{}, errors.New("no mirror")
	var did []string
	for _, key := range []string{"lists", "lists", "keys", "lists"} {
		err := h.Once(key, func() error {
			did = append(did, key)
			if key == "lists" {
				return bad
			}
			return nil
		})
		if want := map[string]error{"lists": bad}[key]; !errors.Is(err, want) {
			t.Errorf("%s: %v", key, err)
		}
	}
	if !slices.Equal(did, []string{"lists", "keys"}) {
		t.Errorf("did %q", did)
	}
}

// TestLaterOnce: what is left for the end of the run is done once, in order, all of it, and only once.
func TestLaterOnce(t *testing.T) {
	h, did := &Host{}, ""
	leave := func(what string, err error) {
		h.Later(what, func(context.Context) error { did += what + " "; return err })
	}
	leave("restart", errors.New("it is masked"))
	leave("reload", nil)
	leave("restart", nil)
	errs := h.DoLater(t.Context())
	if len(errs) != 1 || errs[0].Error() != "restart, left for the end of the run: it is masked" {
		t.Errorf("%v", errs)
	}
	if errs := h.DoLater(t.Context()); did != "restart reload " || len(errs) > 0 {
		t.Errorf("did %q, then %v", did, errs)
	}
}

// TestPathsOfAHost: paths are absolute and stay beneath the root; only what is used follows its last link.
func TestPathsOfAHost(t *testing.T) {
	root := t.TempDir()
	h := &Host{Root: root}
	if err := errors.Join(os.Mkdir(filepath.Join(root, "etc"), 0o755), os.Symlink("etc", filepath.Join(root, "link")),
		os.Symlink("loop", filepath.Join(root, "loop"))); err != nil {
		t.Fatal(err)
	}
	entry := func(open func(string) error) func(string) (string, error) {
		return func(path string) (string, error) { return "", open(path) }
	}
	open := map[string]func(string) (string, error){
		"Path": h.Path, "Resolve": h.Resolve,
		"Entry": entry(func(path string) error {
			at, err := h.Entry(path)
			if err == nil {
				at.Close()
			}
			return err
		}),
		"Follow": entry(func(path string) error {
			at, err := h.Follow(path)
			if err == nil {
				at.Close()
			}
			return err
		}),
	}
	for name, of := range open {
		if _, err := of("etc/x"); err == nil || err.Error() != `"etc/x" is not an absolute path` {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := of("/loop/x"); err == nil || !strings.Contains(err.Error(), "/loop") {
			t.Errorf("%s of a loop: %v", name, err)
		}
	}
	for path, want := range map[string][2]string{
		"/etc/../etc/x": {"etc/x", "etc/x"}, "/link": {"link", "etc"}, "/link/x": {"etc/x", "etc/x"}, "/../../x": {"x", "x"},
	} {
		stands, err := h.Path(path)
		used, err2 := h.Resolve(path)
		if err != nil || err2 != nil || stands != filepath.Join(root, want[0]) || used != filepath.Join(root, want[1]) {
			t.Errorf("%s: stands %s %v, used %s %v", path, stands, err, used, err2)
		}
	}
	at, err := h.Follow("/link")
	if err != nil {
		t.Fatal(err)
	}
	defer at.Close()
	if info, err := at.Lstat(); err != nil || !info.IsDir() {
		t.Errorf("what a link leads to: %v %v", info, err)
	}
	for path, want := range map[string]string{"/x": "", "x": `name: "x" is not an absolute path`, "/x\x00y": "name: a path cannot contain a zero byte"} {
		if err := AbsPath("name", path); err != nil && err.Error() != want || err == nil && want != "" {
			t.Errorf("%q: %v", path, err)
		}
	}
}

// TestGoesInAPlan: a path that a run would have removed, however it is written.
func TestGoesInAPlan(t *testing.T) {
	h := &Host{}
	if h.Goes("/a") {
		t.Error("nothing goes yet")
	}
	h.goes([]string{"/a/", "/b"})
	h.goes([]string{"/c"})
	for path, want := range map[string]bool{"/a": true, "/x/../a": true, "/b/": true, "/c": true, "/d": false} {
		if h.Goes(path) != want {
			t.Errorf("%s goes: %v", path, !want)
		}
	}
}

// TestEnvironment: commands see a clean environment, the fence of the claim under which they run, and what the command
// says wins.
func TestEnvironment(t *testing.T) {
	fence := int64(0)
	for _, c := range []struct {
		fence func() int64
		now   int64
		want  string
	}{{nil, 0, ""}, {func() int64 { return fence }, 0, ""}, {func() int64 { return fence }, 7, "PULLET_FENCE=7"}} {
		h := &Host{Root: "/r", Fence: c.fence, Env: map[string]string{"A": "host", "B": "host"}}
		fence = c.now
		env := h.environment("/home/x", map[string]string{"B": "own"})
		want := []string{"A=host", "B=own", "HOME=/home/x", "LANG=C.UTF-8", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "PULLET_ROOT=/r"}
		if c.want != "" {
			want = append(want, c.want)
		}
		slices.Sort(want)
		if slices.Sort(env); !slices.Equal(env, want) {
			t.Errorf("got %q, want %q", env, want)
		}
	}
}

// TestSharedHands: a path is in users' hands where another user than root can write beside it, or in it where the step
// works on everything in it.
func TestSharedHands(t *testing.T) {
	h := &Host{Root: t.TempDir()}
	for dir, mode := range map[string]os.FileMode{"own": 0o755, "all": 0o777} {
		at := filepath.Join(h.Root, dir)
		if err := errors.Join(os.Mkdir(at, 0o755), os.Chmod(at, mode)); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]bool{
		"/own/x": false, "/all/x": true, "all/x": false, "/all": false, "/all/": true, "/own/": false, "": false,
	} {
		s := worksOn(path)
		if s.inUsersHands(h) != want {
			t.Errorf("%s: %v", path, !want)
		}
		for outcome, fault := range map[Outcome]Fault{Failed: map[bool]Fault{true: HostFault, false: UnknownFault}[want], OK: ""} {
			r := &StepReport{Outcome: outcome, Fault: UnknownFault}
			if r.assignFault(s, h); r.Fault != fault {
				t.Errorf("%s, %s: %q, want %q", path, outcome, r.Fault, fault)
			}
		}
		r := &StepReport{Outcome: Failed, Fault: CommitFault}
		if r.assignFault(s, h); r.Fault != CommitFault {
			t.Errorf("%s: %q of a commit's", path, r.Fault)
		}
	}
}

// located is an action that works on one path.
type located struct {
	named
	path string
}

func (a *located) Paths(*Host) []string { return []string{a.path} }

// worksOn is a step of an action that works on a path.
func worksOn(path string) *boundStep {
	return &boundStep{Step: &render.Step{}, job: &render.Job{}, act: &located{path: path}}
}
