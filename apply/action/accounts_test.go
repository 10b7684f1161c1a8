package action_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/apply"
)

// TestAccountFiles: what stands in the files after users and groups were made and changed.
func TestAccountFiles(t *testing.T) {
	needRoot(t)
	for _, c := range []struct {
		action, params, file, want string
	}{
		{"user.present", "{name: bob, uid: 1700}", "passwd", "bob:x:1700:1700::/home/bob:"},
		{"user.present", "{name: bob, uid: 1700}", "group", "bob:x:1700:"},
		{"user.present", "{name: bob}", "shadow", "bob:!:"},
		{"user.present", "{name: bob, password: '*'}", "shadow", "bob:*:"},
		{"user.present", "{name: bob, password: '" + hash + "'}", "shadow", "bob:" + hash + ":"},
		{"user.present", "{name: bob, password: '" + hash + "', locked: true}", "shadow", "bob:!" + hash + ":"},
		{"user.present", "{name: bob, password: '!" + hash + "'}", "shadow", "bob:!" + hash + ":"},
		{"user.present", "{name: docker}", "passwd", "docker:x:1501:11::"},
		{"user.present", "{name: bob, group: users, groups: [wheel, '11']}", "group", "wheel:x:10:alice,bob\ndocker:x:11:alice,bob\n"},
		{"user.present", "{name: alice, locked: true}", "shadow", "alice:!" + hash + ":19000:"},
		{"user.present", "{name: alice, password: '" + other + "'}", "shadow", "alice:" + other + ":"},
		{"user.present", "{name: alice, expires: 2030-01-01}", "shadow", ":99999:7::21915:"},
		{"user.present", "{name: alice, uid: 1600, groups: [users]}", "group", "wheel:x:10:alice\ndocker:x:11:alice\nusers:x:100:alice\n"},
		{"user.present", "{name: alice, groups: [users], appendGroups: false}", "group", "wheel:x:10:\ndocker:x:11:\nusers:x:100:alice\n"},
		{"user.absent", "{name: alice}", "group", "wheel:x:10:\ndocker:x:11:\nusers:x:100:\n"},
		{"group.present", "{name: alice, gid: 1501}", "passwd", "alice:x:1500:1501:"},
		{"group.present", "{name: wheel, members: [root]}", "group", "wheel:x:10:alice,root\n"},
		{"group.present", "{name: wheel, members: [root]}", "gshadow", "wheel:!::alice,root\n"},
	} {
		s := newScene(t, people(home)...)
		s.mustRun(c.action, c.params)
		if have := s.read("etc/" + c.file); !strings.Contains(have, c.want) {
			t.Errorf("%s %s: %s is\n%swant %q in it", c.action, c.params, c.file, have, c.want)
		}
	}
}

// TestLockOfAnAdministrator: a password that somebody locked stays locked when its hash changes, unless the step says
// otherwise.
func TestLockOfAnAdministrator(t *testing.T) {
	needRoot(t)
	for params, want := range map[string]string{
		"password: '" + other + "'":                "alice:!" + other + ":",
		"password: '" + other + "', locked: false": "alice:" + other + ":",
		"password: '*'":                            "alice:!*:",
		"password: '!'":                            "alice:!:",
	} {
		s := newScene(t, append(people(home), "f etc/shadow 640 alice:!"+hash+":19000:0:99999:7:::\n")...)
		s.mustRun("user.present", "{name: alice, "+params+"}")
		if have := s.read("etc/shadow"); !strings.HasPrefix(have, want) {
			t.Errorf("%s: %swant %s", params, have, want)
		}
	}
}

// TestHomes: a home is made with the files of the root's own skel, and is the user's with all that is in it.
func TestHomes(t *testing.T) {
	needRoot(t)
	skel := []string{"f etc/skel/.rc 640 hello", "f etc/skel/bin/x 755 x", "l etc/skel/link .rc", "f etc/login.defs 644 # HOME_MODE 0777\nUMASK 027\nHOME_MODE 0711\n"}
	for name, uid := range map[string]int{"bob": 1501, "alice": 1500} { // one is new
		s := newScene(t, people(skel...)...)
		s.mustRun("user.present", "{name: "+name+"}")
		for path, mode := range map[string]string{"": "drwx--x--x", ".rc": "-rw-r-----", "bin": "drwxr-xr-x", "bin/x": "-rwxr-xr-x", "link": "Lrwxrwxrwx"} {
			info, err := os.Lstat(s.path("home/" + name + "/" + path))
			if err != nil {
				t.Fatal(err)
			}
			u, g := ownerOf(t, s.path("home/"+name+"/"+path))
			if info.Mode().String() != mode || u != uid || g != uid {
				t.Errorf("%s/%s: %s %d:%d, want %s %d", name, path, info.Mode(), u, g, mode, uid)
			}
		}
		if s.read("home/"+name+"/.rc") != "hello" {
			t.Errorf("%s: .rc is %q", name, s.read("home/"+name+"/.rc"))
		}
		if left, err := filepath.Glob(s.path("home/.pullet*")); err != nil || len(left) > 0 {
			t.Errorf("left: %v %v", left, err)
		}
	}
}

// TestUIDTakesItsHome: files in the home follow a new number, files of others in it do not.
func TestUIDTakesItsHome(t *testing.T) {
	needRoot(t)
	s := newScene(t, people("f home/alice/mine 600 x", "f home/alice/theirs 600 x", "f srv/mine 600 x")...)
	for _, name := range []string{"home/alice", "home/alice/mine", "srv/mine"} {
		if err := os.Chown(s.path(name), 1500, 1500); err != nil {
			t.Fatal(err)
		}
	}
	s.mustRun("user.present", "{name: alice, uid: 1600}")
	for name, want := range map[string]int{"home/alice": 1600, "home/alice/mine": 1600, "home/alice/theirs": 0, "srv/mine": 1500} {
		if uid, _ := ownerOf(t, s.path(name)); uid != want {
			t.Errorf("%s belongs to %d, want %d", name, uid, want)
		}
	}
}

// TestMovedHome: the files of the old home are in the new one; without moveHome the old one stays.
func TestMovedHome(t *testing.T) {
	needRoot(t)
	for move, where := range map[string]string{"true": "srv/al/f", "false": "home/alice/f"} {
		s := newScene(t, people("f home/alice/f 600 x", "d srv 755")...)
		s.mustRun("user.present", "{name: alice, home: /srv/al, moveHome: "+move+"}")
		if s.read(where) != "x" {
			t.Errorf("moveHome: %s: no file at %s", move, where)
		}
		if _, err := os.Stat(s.path("srv/al")); err != nil {
			t.Error(err)
		}
	}
}

// TestRemovedHome: the home goes when that is asked for.
func TestRemovedHome(t *testing.T) {
	needRoot(t)
	for remove, left := range map[string]int{"true": 0, "false": 1} {
		s := newScene(t, people("f home/alice/f 600 x")...)
		if err := os.Chown(s.path("home/alice"), 1500, 1500); err != nil {
			t.Fatal(err)
		}
		s.mustRun("user.absent", "{name: alice, removeHome: "+remove+"}")
		if have, err := filepath.Glob(s.path("home/*")); err != nil || len(have) != left {
			t.Errorf("removeHome: %s: left %v, %v", remove, have, err)
		}
	}
}

// TestOwnUserStays: the agent does not remove the user that it runs as.
func TestOwnUserStays(t *testing.T) {
	s := newScene(t, fmt.Sprintf("f etc/passwd 644 me:x:%d:1::/:/bin/sh\n", max(os.Geteuid(), 0)))
	if r := s.plan(s.mustBind("user.absent", "{name: me}")); r.Outcome != apply.Failed || !strings.Contains(r.Reason, "is not removed") {
		t.Errorf("%s %s", r.Outcome, r.Reason)
	}
}

// TestPasswordsAreNotSeen: a hash stands neither among the arguments of a program, where ps shows it, nor in a report,
// nor in what is said about a bad one.
func TestPasswordsAreNotSeen(t *testing.T) {
	needRoot(t)
	s := newScene(t, people(home)...)
	o, log := s.loggedTools()
	for _, params := range []string{"{name: bob, password: '" + hash + "'}", "{name: alice, password: '" + other + "', shell: /bin/bash}"} {
		report, err := s.mustBind("user.present", params).Run(context.Background(), o)
		if err != nil || report.Steps[0].Outcome != apply.Changed {
			t.Fatalf("%v %+v", err, report.Steps)
		}
		seen, err := os.ReadFile(log)
		if err != nil || !strings.Contains(string(seen), "chpasswd --root "+s.root+" -e\n") {
			t.Errorf("the tools ran as %s %v", seen, err)
		}
		for _, text := range []string{string(seen), fmt.Sprintf("%+v %+v", report, report.Steps[0])} {
			if strings.Contains(text, hash[:12]) || strings.Contains(text, other[:12]) {
				t.Errorf("a hash is seen: %s", text)
			}
		}
	}
	if _, err := s.bind("user.present", "{name: bob, password: sEcret}"); err == nil || strings.Contains(err.Error(), "sEcret") {
		t.Errorf("the mistake shows the password: %v", err)
	}
}

// loggedTools are options with which each tool for accounts logs its command line before it runs.
func (s *scene) loggedTools() (o apply.Options, log string) {
	s.t.Helper()
	bin := s.t.TempDir()
	log = filepath.Join(bin, "log")
	for _, tool := range []string{"useradd", "usermod", "chpasswd"} {
		real, err := exec.LookPath(tool)
		if err != nil {
			s.t.Fatal(err)
		}
		script := fmt.Sprintf("#!/bin/sh\necho %s \"$@\" >> %s\nexec %s \"$@\"\n", tool, log, real)
		if err := os.WriteFile(filepath.Join(bin, tool), []byte(script), 0o755); err != nil {
			s.t.Fatal(err)
		}
	}
	o = s.options()
	o.Host.Env = map[string]string{"PATH": bin + ":/usr/sbin:/usr/bin:/sbin:/bin"}
	return o, log
}

// TestToolsOfAChange: a change runs only the tools that it needs.
func TestToolsOfAChange(t *testing.T) {
	needRoot(t)
	for params, want := range map[string]string{
		"{name: bob, group: users, createHome: false}": "useradd --root %s -g users -M bob\n",
		"{name: alice, password: '" + other + "'}":     "chpasswd --root %s -e\n",
		"{name: alice, locked: true}":                  "usermod --root %s -L alice\n",
	} {
		s := newScene(t, people(home)...)
		want = fmt.Sprintf(want, s.root)
		o, log := s.loggedTools()
		if _, err := s.mustBind("user.present", params).Run(context.Background(), o); err != nil {
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
	needRoot(t)
	lock := fmt.Sprintf("f etc/passwd.lock 600 %d", os.Getpid())
	s := newScene(t, people(lock)...)
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	r := s.only(s.runAll(ctx, s.mustBind("user.present", "{name: bob}")))
	if r.Outcome != apply.Failed || !strings.Contains(r.Reason, "passwd.lock") {
		t.Errorf("held: %s %s", r.Outcome, r.Reason)
	}
	if strings.Contains(s.read("etc/passwd"), "bob") {
		t.Error("the lock was not respected")
	}

	bin := t.TempDir() // the holder lets go when a tool has failed for the first time
	script := "#!/bin/sh\n/usr/sbin/useradd \"$@\" && exit\ncode=$?\nrm -f " + s.path("etc/passwd.lock") + "\nexit $code\n"
	if err := os.WriteFile(filepath.Join(bin, "useradd"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	o := s.options()
	o.Host.Env = map[string]string{"PATH": bin + ":/usr/sbin:/usr/bin:/sbin:/bin"}
	report, err := s.mustBind("user.present", "{name: bob}").Run(context.Background(), o)
	if err != nil || report.Steps[0].Outcome != apply.Changed || !strings.Contains(s.read("etc/passwd"), "bob") {
		t.Errorf("released: %v %+v", err, report.Steps[0])
	}
}

// TestNoTools: what is missing is named with the package that has it.
func TestNoTools(t *testing.T) {
	s := newScene(t, people()...)
	o := s.options()
	o.Host.Env = map[string]string{"PATH": t.TempDir()}
	report, err := s.mustBind("group.present", "{name: ops}").Run(context.Background(), o)
	if err != nil || !strings.Contains(report.Steps[0].Reason, "install the package passwd") {
		t.Errorf("%v %+v", err, report.Steps[0])
	}
}

// TestImpliedOrder: in genius order a step comes after what it obviously needs: its groups, its user, its directory,
// its package.
func TestImpliedOrder(t *testing.T) {
	p, err := newScene(t).bindText(`runOptions: {ordering: genius}
steps:
- {name: cron, action: cron.present, parameters: {name: a, schedule: '@daily', user: bob, command: x}}
- {name: key, action: ssh.authorized_key, parameters: {user: bob, key: ` + key1 + `}}
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
	needRoot(t)
	s := newScene(t, append(people(home), "d root 700", "d etc/ssh 755")...)
	job, want := "runOptions: {ordering: justdoit}\nsteps:\n", 0
	for i := range 8 {
		key := key1
		if i%2 == 1 {
			key = key2
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
	p, err := s.bindText(job)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range s.runAll(context.Background(), p).Steps {
		if r.Outcome == apply.Failed {
			t.Errorf("%s: %s", r.Step, r.Reason)
		}
	}
	again := s.runAll(context.Background(), p)
	for _, r := range again.Steps {
		if r.Outcome != apply.OK {
			t.Errorf("then %s: %s %s %s", r.Step, r.Outcome, r.Summary, r.Reason)
		}
	}
	if len(again.Steps) != want {
		t.Errorf("%d steps, want %d", len(again.Steps), want)
	}
}
