package account_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/actiontest"
	"github.com/pullet/pullet/internal/patience"
)

// TestAuthorizedKeysFile: what stands in the file, that all of it is the user's, and that OpenSSH reads it.
func TestAuthorizedKeysFile(t *testing.T) {
	t.Parallel()
	actiontest.NeedRoot(t)
	s := actiontest.New(t, actiontest.KeysOf("")[0], "d home/alice 755")
	s.MustRun("ssh.authorized_key", "{user: alice, key: "+actiontest.Key1+" a b}")
	s.MustRun("ssh.authorized_key", "{user: alice, key: "+actiontest.Key2+", options: [no-pty, 'command=\"x, y\"'], comment: c}")
	const file = "home/alice/.ssh/authorized_keys"
	if want, have := actiontest.Key1+" a b\nno-pty,command=\"x, y\" "+actiontest.Key2+" c\n", s.Read(file); have != want {
		t.Errorf("have\n%swant\n%s", have, want)
	}
	for path, mode := range map[string]string{"home/alice/.ssh": "drwx------", file: "-rw-------"} {
		info, err := os.Lstat(s.Path(path))
		if err != nil {
			t.Fatal(err)
		}
		if uid, gid := actiontest.OwnerOf(t, s.Path(path)); uid != 1500 || gid != 1500 || info.Mode().String() != mode {
			t.Errorf("%s: %s %d:%d", path, info.Mode(), uid, gid)
		}
	}
	if out, err := exec.Command("ssh-keygen", "-lf", s.Path(file)).CombinedOutput(); err != nil || strings.Count(string(out), "ED25519") != 2 {
		t.Errorf("ssh-keygen: %v %s", err, out)
	}
	for path, links := range map[string]int{"home/alice": 0, "home/alice/.ssh": 0} {
		entries, err := os.ReadDir(s.Path(path))
		if err != nil || len(entries) != 1+links {
			t.Errorf("%s has %v, %v", path, entries, err)
		}
	}
}

// TestForeignFiles: a file that is also another's, or another's altogether, is neither read nor replaced.
func TestForeignFiles(t *testing.T) {
	t.Parallel()
	actiontest.NeedRoot(t)
	const file = "home/alice/.ssh/authorized_keys"
	for name, c := range map[string]struct {
		plant func(s *actiontest.Scene) error
		want  string
	}{
		"a hard link": {func(s *actiontest.Scene) error { return os.Link(s.Path("etc/passwd"), s.Path(file)) }, "has 2 names (hard links)"},
		"another's": {func(s *actiontest.Scene) error {
			s.Plant("f " + file + " 600 x")
			return os.Chown(s.Path(file), 1501, 1501)
		}, "belongs to uid 1501"},
		"too large": {func(s *actiontest.Scene) error {
			s.Plant("f " + file + " 600 x")
			return errors.Join(os.Chown(s.Path(file), 1500, 1500), os.Truncate(s.Path(file), 4<<20+1))
		}, "has 4194305 bytes, more than the 4194304 that are read"},
		"a home of another's":       {func(s *actiontest.Scene) error { return os.Chown(s.Path("home/alice"), 1501, 1501) }, "/home/alice, the home of alice, belongs to uid 1501"},
		"a home where others write": {func(s *actiontest.Scene) error { return os.Chmod(s.Path("home"), 0o777) }, "/home/alice, the home of alice, belongs to uid 0"},
	} {
		s := actiontest.New(t, actiontest.KeysOf("")[0], "d home/alice 755", "d home/alice/.ssh 700")
		if err := os.Chown(s.Path("home/alice/.ssh"), 1500, 1500); err != nil {
			t.Fatal(err)
		}
		if err := c.plant(s); err != nil {
			t.Fatal(err)
		}
		before := s.Tree()
		r := s.Run(s.MustBind("ssh.authorized_key", "{user: alice, key: "+actiontest.Key1+"}"))
		if r.Outcome != apply.Failed || !strings.Contains(r.Reason, c.want) || strings.Contains(r.Diff, "root:x") {
			t.Errorf("%s: %s %s %s", name, r.Outcome, r.Reason, r.Diff)
		}
		if d := actiontest.Differences(before, s.Tree()); len(d) > 0 {
			t.Errorf("%s: it changed %v", name, d)
		}
	}
}

// TestLinksAtAnyMoment: a user who swaps .ssh and the file for links while the agent works does not get a file
// elsewhere written, nor the owner of a directory changed.
func TestLinksAtAnyMoment(t *testing.T) {
	actiontest.NeedRoot(t)
	s := actiontest.New(t, actiontest.KeysOf("")[0], "d victim 700", "f victim/authorized_keys 600 mine\n", "d home/alice/spare 700")
	for _, dir := range []string{"home/alice", "home/alice/spare"} {
		if err := os.Chown(s.Path(dir), 1500, 1500); err != nil {
			t.Fatal(err)
		}
	}
	victim := actiontest.Tree(t, s.Path("victim"))
	stop, done := make(chan struct{}), make(chan struct{})
	var swaps atomic.Int64
	go func() { // what only changes names in a directory of the user's, the user could do
		defer close(done)
		for ; ; swaps.Add(1) {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.Remove(s.Path("home/alice/.ssh"))
			_ = os.Symlink(s.Path("victim"), s.Path("home/alice/.ssh"))
			_ = os.Remove(s.Path("home/alice/.ssh"))
			_ = os.Symlink("../../../victim", s.Path("home/alice/.ssh"))
			_ = os.Remove(s.Path("home/alice/.ssh"))
			_ = os.Rename(s.Path("home/alice/spare"), s.Path("home/alice/.ssh"))
			_ = os.Remove(s.Path("home/alice/.ssh/authorized_keys"))
			_ = os.Symlink(s.Path("victim/authorized_keys"), s.Path("home/alice/.ssh/authorized_keys"))
			_ = os.Remove(s.Path("home/alice/.ssh/authorized_keys"))
			_ = os.Rename(s.Path("home/alice/.ssh"), s.Path("home/alice/spare"))
		}
	}()
	p := s.MustBind("ssh.authorized_key", "{user: alice, key: "+actiontest.Key1+"}")
	outcomes := map[apply.Outcome]int{}
	deadline := time.Now().Add(patience.Stretch(time.Minute))
	enough := func() bool { return swaps.Load() > 500 && outcomes[apply.Changed] > 0 && outcomes[apply.Failed] > 100 }
	for !enough() && time.Now().Before(deadline) {
		outcomes[s.Run(p).Outcome]++
	}
	close(stop)
	<-done
	if !enough() {
		t.Errorf("%d swaps, outcomes %v: the race was not run", swaps.Load(), outcomes)
	}
	for _, d := range actiontest.Differences(victim, actiontest.Tree(t, s.Path("victim"))) {
		t.Errorf("the victim: %s", d)
	}
}

// TestOnlyDirectory: a user's pipe in the place of a directory is not waited for, by the open itself: it may come there
// at any moment.
func TestOnlyDirectory(t *testing.T) {
	home := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(home, ".ssh"), 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(home)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	opened := make(chan error, 2)
	go func() {
		_, err := root.OpenRoot(".ssh/.")
		opened <- err
		_, err = os.OpenRoot(filepath.Join(home, ".ssh") + "/.")
		opened <- err
	}()
	for range 2 {
		select {
		case err := <-opened:
			if !errors.Is(err, syscall.ENOTDIR) {
				t.Error(err)
			}
		case <-time.After(patience.Stretch(10 * time.Second)):
			t.Fatal("it waits for a writer")
		}
	}
}
