package file_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/actiontest"
	"github.com/pullet/pullet/apply/action/file"
	"golang.org/x/sys/unix"
)

// TestKeptAttributes: the users' attributes and the access list of a file outlive its content, and a new one has none
// of its directory.
func TestKeptAttributes(t *testing.T) {
	t.Parallel()
	s := actiontest.New(t, "f d/f 640 old", "f d/plain 640 old")
	entry := func(tag, perm uint16, id uint32) []byte {
		return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint16(binary.LittleEndian.AppendUint16(nil, tag), perm), id)
	}
	const none = ^uint32(0)
	acl := []byte{2, 0, 0, 0}
	for _, e := range [][]byte{entry(1, 6, none), entry(2, 6, 4711), entry(4, 4, none), entry(0x10, 6, none), entry(0x20, 0, none)} {
		acl = append(acl, e...)
	}
	for _, a := range []struct {
		path, name string
		value      []byte
	}{{"d/f", "user.origin", []byte("by hand")}, {"d/f", "system.posix_acl_access", acl}, {"d", "system.posix_acl_default", acl}} {
		if err := unix.Setxattr(s.Path(a.path), a.name, a.value, 0); errors.Is(err, unix.EOPNOTSUPP) {
			t.Skipf("needs a file system with %s: the one of %s has none", a.name, s.Root)
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []string{"file.managed {name: /d/f, content: new}", "file.line {name: /d/f, line: more}", "file.managed {name: /d/plain, content: new}"} {
		act, params, _ := strings.Cut(step, " ")
		s.MustRun(act, params)
	}
	get := func(path, name string) string {
		buf := make([]byte, 200)
		n, err := unix.Getxattr(s.Path(path), name, buf)
		if err != nil {
			return err.Error()
		}
		return string(buf[:n])
	}
	if got := get("d/f", "user.origin"); got != "by hand" {
		t.Errorf("user.origin: %q", got)
	}
	if got := get("d/f", "system.posix_acl_access"); got != string(acl) {
		t.Errorf("access list: %x, want %x", got, acl)
	}
	if got := get("d/plain", "system.posix_acl_access"); got != unix.ENODATA.Error() {
		t.Errorf("a file without an access list got one of its directory: %x", got)
	}
}

// TestCapabilities: what a file may do outlives its content, as its setuid bit does.
func TestCapabilities(t *testing.T) {
	t.Parallel()
	actiontest.NeedRoot(t)
	s := actiontest.New(t, "f f 755 old")
	ping := []byte{1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	if err := unix.Setxattr(s.Path("f"), "security.capability", ping, 0); err != nil {
		t.Skipf("needs a file system with capabilities: %v", err)
	}
	s.MustRun("file.managed", "{name: /f, content: new, owner: '4711'}")
	buf := make([]byte, 100)
	if n, err := unix.Getxattr(s.Path("f"), "security.capability", buf); err != nil || string(buf[:n]) != string(ping) {
		t.Errorf("%x %v", buf[:n], err)
	}
}

// TestUnreadable: what cannot be read is an error, and never taken for something else.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	actiontest.NeedRoot(t)
	s := actiontest.New(t, "f f 600 secret", "f d/f 644 x")
	for _, err := range []error{os.Chmod(s.Path("d"), 0o700), os.Chmod(filepath.Dir(s.Root), 0o755), os.Chmod(filepath.Dir(filepath.Dir(s.Root)), 0o755)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	content := "x"
	whole, below := &file.Managed{Name: "/f", Content: &content, Replace: true}, &file.Managed{Name: "/d/f", Content: &content, Replace: true}
	line := &file.Line{Editing: file.Editing{Name: "/f"}, Line: "x"}
	for _, err := range []error{whole.Bind(apply.Binding{}), below.Bind(apply.Binding{}), line.Bind(apply.Binding{})} {
		if err != nil {
			t.Fatal(err)
		}
	}
	type checked interface {
		Check(context.Context, *apply.Host) (apply.Change, error)
	}
	done := make(chan struct{})
	go func() { // as another user, on a thread that ends with it
		defer close(done)
		runtime.LockOSThread()
		if err := syscall.Setfsuid(65534); err != nil {
			t.Error(err)
		}
		for _, a := range []checked{whole, below, line, &file.Absent{Name: "/d/f"}} {
			if c, err := a.Check(context.Background(), s.Host()); !errors.Is(err, fs.ErrPermission) {
				t.Errorf("%T: %q %v, want permission denied", a, c.Summary, err)
			}
		}
	}()
	<-done
}

// TestLeftCandidate: what a killed run left beside a file is removed by the next, whatever it is, and not followed.
func TestLeftCandidate(t *testing.T) {
	t.Parallel()
	for _, left := range []string{"f d/.f.pullet 644 left", "l d/.f.pullet /precious"} {
		s := actiontest.New(t, "f d/f 644 old", "f precious 644 mine", left)
		s.MustRun("file.managed", "{name: /d/f, content: new}")
		justOne(s, "d", "new")
		if s.Read("precious") != "mine" {
			t.Error("a link was followed")
		}
	}
	s := actiontest.New(t, "d d 755")
	s.MustRun("file.managed", "{name: /d/"+strings.Repeat("x", 250)+".conf, content: new}")
}

// TestValidateName: a check that goes by a name sees the one that the file has.
func TestValidateName(t *testing.T) {
	t.Parallel()
	s := actiontest.New(t)
	s.MustRun("file.managed", "{name: /app.service, content: x, validate: 'echo %s > seen'}")
	if seen := strings.TrimSpace(s.Read("seen")); filepath.Base(seen) != "app.service" {
		t.Errorf("the command saw %q", seen)
	}
}
