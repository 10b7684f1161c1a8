package hostfile_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pullet/pullet/apply/hostfile"
)

const ada, bob = 1001, 1002

// plant makes a tree in which ada and bob have homes: "PATH OWNER" is a directory, "PATH OWNER = TEXT" a file, "PATH
// OWNER -> TARGET" a link.
func plant(t *testing.T, entries ...string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("gives files to users, as only root can")
	}
	root := t.TempDir()
	owners := map[string]int{"root": 0, "ada": ada, "bob": bob}
	base := []string{"etc root", "etc/shadow root = secret", "home root", "home/ada ada", "home/bob bob", "home/bob/mine bob = bob", "tmp root"}
	for _, e := range append(base, entries...) {
		f := strings.SplitN(e, " ", 4)
		at := filepath.Join(root, f[0])
		var err error
		switch {
		case len(f) == 2:
			err = os.Mkdir(at, 0o755)
		case f[2] == "->":
			err = os.Symlink(f[3], at)
		default:
			err = os.WriteFile(at, []byte(f[3]), 0o600)
		}
		if err := errors.Join(err, os.Lchown(at, owners[f[1]], owners[f[1]])); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(root, "tmp"), 0o777|fs.ModeSticky); err != nil {
		t.Fatal(err)
	}
	return root
}

// TestFollow: which links lead where, and which are refused.
func TestFollow(t *testing.T) {
	for _, c := range []struct {
		name  string
		host  []string
		path  string
		leads string // "": it is refused
	}{
		{"no link", nil, "/etc/shadow", "/etc/shadow"},
		{"root's link", []string{"run root", "var root", "var/run root -> ../run"}, "/var/run/x", "/run/x"},
		{"root's absolute link", []string{"run root", "var root", "var/run root -> /run"}, "/var/run/a/b", "/run/a/b"},
		{"root's link into a home", []string{"srv root -> home/ada"}, "/srv/x", "/home/ada/x"},
		{"above the root", []string{"etc/up root -> ../../../etc/shadow"}, "/etc/up", "/etc/shadow"},
		{"the user's link to the user's", []string{"home/ada/real ada", "home/ada/l ada -> real"}, "/home/ada/l/x", "/home/ada/real/x"},
		{"at the end", []string{"home/ada/f ada = x", "home/ada/l ada -> f"}, "/home/ada/l", "/home/ada/f"},
		{"to nothing of the user's", []string{"home/ada/l ada -> none"}, "/home/ada/l", "/home/ada/none"},
		{"links of a link", []string{"home/ada/real ada", "home/ada/a ada -> b", "home/ada/b ada -> /home/ada/real"}, "/home/ada/a/x", "/home/ada/real/x"},
		{"root's link in the user's directory to the user's", []string{"home/ada/v1 ada", "home/ada/current root -> v1"}, "/home/ada/current/x", "/home/ada/v1/x"},
		{"the user's link to root's", []string{"home/ada/l ada -> /etc"}, "/home/ada/l/cron", ""},
		{"the user's link to root's, at the end", []string{"home/ada/l ada -> /etc/shadow"}, "/home/ada/l", ""},
		{"the user's link to nothing of root's", []string{"home/ada/l ada -> /etc/new"}, "/home/ada/l", ""},
		{"below nothing of root's", []string{"home/ada/l ada -> /etc/new/x"}, "/home/ada/l", ""},
		{"another's", []string{"home/ada/l ada -> /home/bob"}, "/home/ada/l/x", ""},
		{"a link of a link to root's", []string{"home/ada/a ada -> b", "home/ada/b ada -> /etc"}, "/home/ada/a/x", ""},
		{"root's link in the user's directory to root's", []string{"home/ada/l root -> /etc"}, "/home/ada/l/x", ""},
		{"root's link in root's directory in the user's", []string{"home/ada/r root", "home/ada/r/l root -> /etc"}, "/home/ada/r/l/x", ""},
		{"root's link where everybody writes", []string{"tmp/l root -> /etc"}, "/tmp/l/x", ""},
		{"ada's link where everybody writes", []string{"tmp/l ada -> /etc"}, "/tmp/l/x", ""},
		{"ada's link to ada's where everybody writes", []string{"tmp/l ada -> /home/ada"}, "/tmp/l/x", "/home/ada/x"},
		{"up and out", []string{"home/ada/l ada -> ../../etc"}, "/home/ada/l/x", ""},
		{"up to itself", []string{"home/ada/l ada -> ../ada"}, "/home/ada/l/x", "/home/ada/x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, err := hostfile.Root(plant(t, c.host...)).Follow(c.path)
			var refused *hostfile.LinkRefused
			switch {
			case c.leads == "" && !errors.As(err, &refused):
				t.Errorf("%v, want it refused", err)
			case c.leads != "" && (err != nil || e.Path() != c.leads):
				t.Errorf("%v %v, want %s", e, err, c.leads)
			}
			e.Close()
		})
	}
}

// TestRefusedText: the error says which link, where it leads, who can change it, and what helps.
func TestRefusedText(t *testing.T) {
	root := hostfile.Root(plant(t, "home/ada/l ada -> /etc", "home/ada/sub ada", "home/ada/pipe ada = x"))
	_, err := root.Entry("/home/ada/l/x")
	want := "/home/ada/l is a symbolic link to /etc and is not followed: uid 1001 can change it, and does not own what it leads to; " +
		"remove the link, or manage the path that it leads to"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	dir, err := root.Dir("/home/ada")
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	want = "/home/ada/l is a symbolic link to /etc and is not followed: a directory is expected there; remove the link"
	if _, err := dir.Entry("l/x"); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestHardLinks: a file that has a second name, and is not the directory's owner's, is neither read nor changed.
func TestHardLinks(t *testing.T) {
	dir := plant(t, "home/ada/own ada = x")
	for old, name := range map[string]string{"etc/shadow": "shadow", "home/bob/mine": "bob", "home/ada/own": "second"} {
		if err := os.Link(filepath.Join(dir, old), filepath.Join(dir, "home/ada", name)); err != nil {
			t.Fatal(err)
		}
	}
	sub := filepath.Join(dir, "home/ada/sub") // which was ada's before
	if err := errors.Join(os.Mkdir(sub, 0o755), os.Link(filepath.Join(dir, "etc/shadow"), filepath.Join(sub, "shadow")),
		os.Link(filepath.Join(dir, "etc/shadow"), filepath.Join(dir, "etc/shadow-")), os.Chown(filepath.Join(dir, "home/ada/own"), ada, ada)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		refused bool
	}{{"shadow", true}, {"bob", true}, {"second", false}, {"sub/shadow", true}, {"../../etc/shadow-", false}} { // the last one gives shadow to ada
		name, refused := c.name, c.refused
		e, err := hostfile.Root(dir).Entry("/home/ada/" + name)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		_, reading := e.ReadFile(100)
		f, writing := e.OpenWrite()
		if writing == nil {
			f.Close()
		}
		setting := e.Set(hostfile.Attributes{UID: ada, GID: ada, Mode: 0o644, SetMode: true})
		for what, err := range map[string]error{"reading": reading, "writing": writing, "setting": setting} {
			var r *hostfile.FileRefused
			if errors.As(err, &r) != refused || !refused && err != nil {
				t.Errorf("%s %s: %v, want refused %v", what, name, err, refused)
			}
		}
	}
}

// TestRegularOnly: a pipe is not waited for, and the size comes first.
func TestRegularOnly(t *testing.T) {
	dir := plant(t, "home/ada/big ada = x")
	if err := errors.Join(syscall.Mkfifo(filepath.Join(dir, "home/ada/pipe"), 0o600), os.Truncate(filepath.Join(dir, "home/ada/big"), 20<<30)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"pipe": "/home/ada/pipe is a named pipe, not a file; remove it",
		"big":  "/home/ada/big has 21474836480 bytes, more than the 100 that are read; remove it",
	} {
		e, err := hostfile.Root(dir).Entry("/home/ada/" + name)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		if _, err := e.ReadFile(100); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestSetuid: a content that a user can still write does not get another owner's rights.
func TestSetuid(t *testing.T) {
	dir := plant(t, "home/ada/tool ada = x")
	e, err := hostfile.Root(dir).Entry("/home/ada/tool")
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	err = e.Set(hostfile.Attributes{UID: 0, GID: 0, Mode: 0o755 | fs.ModeSetuid, SetMode: true})
	want := "/home/ada/tool belongs to uid 1001, and would run with the rights of another user; give its content in the same step, with the mode, so that it is written anew"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestPlace: what is made has the owner, mode and time that were set, and its parents too; what is removed takes no
// link along.
func TestPlace(t *testing.T) {
	dir := plant(t, "home/ada/out ada -> /etc")
	root := hostfile.Root(dir)
	e, err := root.Entry("/home/ada/a/b/f")
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if err := e.MakeParents(0o755); err != nil {
		t.Fatal(err)
	}
	c, err := e.Candidate()
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.WriteString("text")
	err = errors.Join(err, c.Set(hostfile.Attributes{UID: ada, GID: bob, Mode: 0o751 | fs.ModeSetgid, SetMode: true}), c.Place(), e.SyncDir())
	c.Drop()
	info, stat := e.Lstat()
	if err != nil || stat != nil || info.UID() != ada || info.Mode() != 0o751|fs.ModeSetgid || info.Size() != 4 {
		t.Errorf("%v %v %v", info.Mode(), err, stat)
	}
	home, err := root.Entry("/home/ada")
	if err != nil {
		t.Fatal(err)
	}
	defer home.Close()
	if err := home.RemoveAll(context.Background()); err != nil || home.Exists() {
		t.Error(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "etc/shadow")); string(text) != "secret" {
		t.Error(err)
	}
}

// TestNoRoot: a root that was forgotten is not "/".
func TestNoRoot(t *testing.T) {
	if e, err := hostfile.Root("").Entry("/etc/passwd"); err == nil {
		e.Close()
		t.Error("without a root, files of the machine are found")
	}
}
