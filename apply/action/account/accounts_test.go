package account_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/actiontest"
	"github.com/pullet/pullet/internal/patience"
)

// TestAccountFiles: what stands in the files after users and groups were made and changed.
func TestAccountFiles(t *testing.T) {
	t.Parallel()
	actiontest.NeedRoot(t)
	for _, c := range []struct {
		action, params, file, want string
	}{
		{"user.present", "{name: bob, uid: 1700}", "passwd", "bob:x:1700:1700::/home/bob:"},
		{"user.present", "{name: bob, uid: 1700}", "group", "bob:x:1700:"},
		{"user.present", "{name: bob}", "shadow", "bob:!:"},
		{"user.present", "{name: bob, password: '*'}", "shadow", "bob:*:"},
		{"user.present", "{name: bob, password: '" + actiontest.Hash + "'}", "shadow", "bob:" + actiontest.Hash + ":"},
		{"user.present", "{name: bob, password: '" + actiontest.Hash + "', locked: true}", "shadow", "bob:!" + actiontest.Hash + ":"},
		{"user.present", "{name: bob, password: '!" + actiontest.Hash + "'}", "shadow", "bob:!" + actiontest.Hash + ":"},
		{"user.present", "{name: docker}", "passwd", "docker:x:1501:11::"},
		{"user.present", "{name: bob, group: users, groups: [wheel, '11']}", "group", "wheel:x:10:alice,bob\ndocker:x:11:alice,bob\n"},
		{"user.present", "{name: alice, locked: true}", "shadow", "alice:!" + actiontest.Hash + ":19000:"},
		{"user.present", "{name: alice, password: '" + actiontest.OtherHash + "'}", "shadow", "alice:" + actiontest.OtherHash + ":"},
		{"user.present", "{name: alice, expires: 2030-01-01}", "shadow", ":99999:7::21915:"},
		{"user.present", "{name: alice, uid: 1600, groups: [users]}", "group", "wheel:x:10:alice\ndocker:x:11:alice\nusers:x:100:alice\n"},
		{"user.present", "{name: alice, groups: [users], appendGroups: false}", "group", "wheel:x:10:\ndocker:x:11:\nusers:x:100:alice\n"},
		{"user.absent", "{name: alice}", "group", "wheel:x:10:\ndocker:x:11:\nusers:x:100:\n"},
		{"group.present", "{name: alice, gid: 1501}", "passwd", "alice:x:1500:1501:"},
		{"group.present", "{name: wheel, members: [root]}", "group", "wheel:x:10:alice,root\n"},
		{"group.present", "{name: wheel, members: [root]}", "gshadow", "wheel:!::alice,root\n"},
	} {
		s := actiontest.New(t, actiontest.People(actiontest.Home)...)
		s.MustRun(c.action, c.params)
		if have := s.Read("etc/" + c.file); !strings.Contains(have, c.want) {
			t.Errorf("%s %s: %s is\n%swant %q in it", c.action, c.params, c.file, have, c.want)
		}
	}
}

// TestLockOfAnAdministrator: a password that somebody locked stays locked when its hash changes, unless the step says
// otherwise.
func TestLockOfAnAdministrator(t *testing.T) {
	t.Parallel()
	actiontest.NeedRoot(t)
	for params, want := range map[string]string{
		"password: '" + actiontest.OtherHash + "'":                "alice:!" + actiontest.OtherHash + ":",
		"password: '" + actiontest.OtherHash + "', locked: false": "alice:" + actiontest.OtherHash + ":",
		"password: '*'": "alice:!*:",
		"password: '!'": "alice:!:",
	} {
		s := actiontest.New(t, append(actiontest.People(actiontest.Home), "f etc/shadow 640 alice:!"+actiontest.Hash+":19000:0:99999:7:::\n")...)
		s.MustRun("user.present", "{name: alice, "+params+"}")
		if have := s.Read("etc/shadow"); !strings.HasPrefix(have, want) {
			t.Errorf("%s: %swant %s", params, have, want)
		}
	}
}

// TestHomes: a home is made with the files of the root's own skel, and is the user's with all that is in it.
func TestHomes(t *testing.T) {
	t.Parallel()
	actiontest.NeedRoot(t)
	skel := []string{"f etc/skel/.rc 640 hello", "f etc/skel/bin/x 755 x", "l etc/skel/link .rc", "f etc/login.defs 644 # HOME_MODE 0777\nUMASK 027\nHOME_MODE 0711\n"}
	for name, uid := range map[string]int{"bob": 1501, "alice": 1500} { // one is new
		s := actiontest.New(t, actiontest.People(skel...)...)
		s.MustRun("user.present", "{name: "+name+", createHome: true}")
		for path, mode := range map[string]string{"": "drwx--x--x", ".rc": "-rw-r-----", "bin": "drwxr-xr-x", "bin/x": "-rwxr-xr-x", "link": "Lrwxrwxrwx"} {
			info, err := os.Lstat(s.Path("home/" + name + "/" + path))
			if err != nil {
				t.Fatal(err)
			}
			u, g := actiontest.OwnerOf(t, s.Path("home/"+name+"/"+path))
			if info.Mode().String() != mode || u != uid || g != uid {
				t.Errorf("%s/%s: %s %d:%d, want %s %d", name, path, info.Mode(), u, g, mode, uid)
			}
		}
		if s.Read("home/"+name+"/.rc") != "hello" {
			t.Errorf("%s: .rc is %q", name, s.Read("home/"+name+"/.rc"))
		}
		if left, err := filepath.Glob(s.Path("home/.pullet*")); err != nil || len(left) > 0 {
			t.Errorf("left: %v %v", left, err)
		}
	}
}

// TestUIDTakesItsHome: files in the home follow a new number, files of others in it do not.
func TestUIDTakesItsHome(t *testing.T) {
	t.Parallel()
	actiontest.NeedRoot(t)
	s := actiontest.New(t, actiontest.People("f home/alice/mine 600 x", "f home/alice/theirs 600 x", "f srv/mine 600 x")...)
	for _, name := range []string{"home/alice", "home/alice/mine", "srv/mine"} {
		if err := os.Chown(s.Path(name), 1500, 1500); err != nil {
			t.Fatal(err)
		}
	}
	s.MustRun("user.present", "{name: alice, uid: 1600}")
	for name, want := range map[string]int{"home/alice": 1600, "home/alice/mine": 1600, "home/alice/theirs": 0, "srv/mine": 1500} {
		if uid, _ := actiontest.OwnerOf(t, s.Path(name)); uid != want {
			t.Errorf("%s belongs to %d, want %d", name, uid, want)
		}
	}
}

// TestMovedHome: the files of the old home are in the new one; without moveHome the old one stays.
func TestMovedHome(t *testing.T) {
	t.Parallel()
	actiontest.NeedRoot(t)
	for move, where := range map[string]string{"true": "srv/al/f", "false": "home/alice/f"} {
		s := actiontest.New(t, actiontest.People("f home/alice/f 600 x", "d srv 755")...)
		s.MustRun("user.present", "{name: alice, home: /srv/al, moveHome: "+move+"}")
		if s.Read(where) != "x" {
			t.Errorf("moveHome: %s: no file at %s", move, where)
		}
		if _, err := os.Stat(s.Path("srv/al")); err != nil {
			t.Error(err)
		}
	}
}

// TestRemovedHome: the home goes when that is asked for.
func TestRemovedHome(t *testing.T) {
	t.Parallel()
	actiontest.NeedRoot(t)
	for remove, left := range map[string]int{"true": 0, "false": 1} {
		s := actiontest.New(t, actiontest.People("f home/alice/f 600 x")...)
		if err := os.Chown(s.Path("home/alice"), 1500, 1500); err != nil {
			t.Fatal(err)
		}
		s.MustRun("user.absent", "{name: alice, removeHome: "+remove+"}")
		if have, err := filepath.Glob(s.Path("home/*")); err != nil || len(have) != left {
			t.Errorf("removeHome: %s: left %v, %v", remove, have, err)
		}
	}
}

// TestOwnUserStays: the agent does not remove the user that it runs as.
func TestOwnUserStays(t *testing.T) {
	t.Parallel()
	s := actiontest.New(t, fmt.Sprintf("f etc/passwd 644 me:x:%d:1::/:/bin/sh\n", max(os.Geteuid(), 0)))
	if r := s.Plan(s.MustBind("user.absent", "{name: me}")); r.Outcome != apply.Failed || !strings.Contains(r.Reason, "is not removed") {
		t.Errorf("%s %s", r.Outcome, r.Reason)
	}
}

// TestPasswordsAreNotSeen: a hash stands neither among the arguments of a program, where ps shows it, nor in a report,
// nor in what is said about a bad one.
func TestPasswordsAreNotSeen(t *testing.T) {
	actiontest.NeedRoot(t)
	s := actiontest.New(t, actiontest.People(actiontest.Home)...)
	o, log := loggedTools(s)
	for _, params := range []string{"{name: bob, password: '" + actiontest.Hash + "'}", "{name: alice, password: '" + actiontest.OtherHash + "', shell: /bin/bash}"} {
		report, err := s.MustBind("user.present", params).Run(context.Background(), o)
		if err != nil || report.Steps[0].Outcome != apply.Changed {
			t.Fatalf("%v %+v", err, report.Steps)
		}
		seen, err := os.ReadFile(log)
		if err != nil || !strings.Contains(string(seen), "chpasswd --root "+s.Root+" -e\n") {
			t.Errorf("the tools ran as %s %v", seen, err)
		}
		for _, text := range []string{string(seen), fmt.Sprintf("%+v %+v", report, report.Steps[0])} {
			if strings.Contains(text, actiontest.Hash[:12]) || strings.Contains(text, actiontest.OtherHash[:12]) {
				t.Errorf("a hash is seen: %s", text)
			}
		}
	}
	if _, err := s.Bind("user.present", "{name: bob, password: sEcret}"); err == nil || strings.Contains(err.Error(), "sEcret") {
		t.Errorf("the mistake shows the password: %v", err)
	}
}

// loggedTools are options with which each tool for accounts logs its command line before it runs.
func loggedTools(s *actiontest.Scene) (o apply.Options, log string) {
	s.T.Helper()
	bin := s.T.TempDir()
	log = filepath.Join(bin, "log")
	for _, tool := range []string{"useradd", "usermod", "chpasswd"} {
		real, err := exec.LookPath(tool)
		if err != nil {
			s.T.Fatal(err)
		}
		script := fmt.Sprintf("#!/bin/sh\necho %s \"$@\" >> %s\nexec %s \"$@\"\n", tool, log, real)
		if err := os.WriteFile(filepath.Join(bin, tool), []byte(script), 0o755); err != nil {
			s.T.Fatal(err)
		}
	}
	o = s.Options()
	o.Host.Env = map[string]string{"PATH": bin + ":/usr/sbin:/usr/bin:/sbin:/bin"}
	return o, log
}

// TestToolsOfAChange: a change runs only the tools that it needs.
func TestToolsOfAChange(t *testing.T) {
	actiontest.NeedRoot(t)
	for params, want := range map[string]string{
		"{name: bob, group: users, createHome: false}":            "useradd --root %s -g users -M bob\n",
		"{name: alice, password: '" + actiontest.OtherHash + "'}": "chpasswd --root %s -e\n",
		"{name: alice, locked: true}":                             "usermod --root %s -L alice\n",
	} {
		s := actiontest.New(t, actiontest.People(actiontest.Home)...)
		want = fmt.Sprintf(want, s.Root)
		o, log := loggedTools(s)
		if _, err := s.MustBind("user.present", params).Run(context.Background(), o); err != nil {
			t.Fatal(err)
		}
		if ran, err := os.ReadFile(log); string(ran) != want {
			t.Errorf("%s: the tools ran as %q, want %q %v", params, ran, want, err)
		}
	}
}

// TestLockedAccounts: while another program holds the account files, a step waits, and says for what when its time is
// over.
func TestLockedAccounts(t *testing.T) {
	actiontest.NeedRoot(t)
	lock := fmt.Sprintf("f etc/passwd.lock 600 %d", os.Getpid())
	s := actiontest.New(t, actiontest.People(lock)...)
	bin, again := t.TempDir(), s.Path("again")
	o := s.Options()
	o.Host.Env = map[string]string{"PATH": bin + ":/usr/sbin:/usr/bin:/sbin:/bin"}
	useradd := func(script string) {
		if err := os.WriteFile(filepath.Join(bin, "useradd"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
			t.Fatal(err)
		}
	}

	// The time ends while the tool is tried again.
	useradd("test ! -e " + again + " || exec sleep 600\ntouch " + again + "\nexec /usr/sbin/useradd \"$@\"\n")
	ctx, cancel := context.WithTimeout(context.Background(), patience.Stretch(2*time.Second)) // useradd has to fail before
	defer cancel()
	report, err := s.MustBind("user.present", "{name: bob}").Run(ctx, o)
	if r := report.Steps[0]; r.Outcome != apply.Failed || !strings.Contains(r.Reason, "passwd.lock") {
		t.Errorf("held: %s %s (%v)", r.Outcome, r.Reason, err)
	}
	if strings.Contains(s.Read("etc/passwd"), "bob") {
		t.Error("the lock was not respected")
	}

	// The holder lets go when a tool has failed for the first time.
	useradd("/usr/sbin/useradd \"$@\" && exit\ncode=$?\nrm -f " + s.Path("etc/passwd.lock") + "\nexit $code\n")
	report, err = s.MustBind("user.present", "{name: bob}").Run(context.Background(), o)
	if err != nil || report.Steps[0].Outcome != apply.Changed || !strings.Contains(s.Read("etc/passwd"), "bob") {
		t.Errorf("released: %v %+v", err, report.Steps[0])
	}
}

// TestNoTools: what is missing is named with the package that has it.
func TestNoTools(t *testing.T) {
	s := actiontest.New(t, actiontest.People()...)
	o := s.Options()
	o.Host.Env = map[string]string{"PATH": t.TempDir()}
	report, err := s.MustBind("group.present", "{name: ops}").Run(context.Background(), o)
	if err != nil || !strings.Contains(report.Steps[0].Reason, "install the package passwd") {
		t.Errorf("%v %+v", err, report.Steps[0])
	}
}
