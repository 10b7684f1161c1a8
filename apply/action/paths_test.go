package action_test

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action"
	"github.com/pullet/pullet/apply/action/actiontest"
)

// noFiles are the actions that work on no files of their own, each with what they work on instead.
var noFiles = map[string]string{
	"pkg.installed": "the package manager's database", "pkg.latest": "the package manager's database",
	"pkg.removed": "the package manager's database", "pkg.uptodate": "the package manager's database",
	"service.ensure": "systemd", "service.publish": "the fleet's record", "service.withdraw": "the fleet's record",
	"service.wait": "the fleet's record", "event.emit": "the fleet's record", "system.reboot": "the host",
	"time.sleep": "nothing", "time.sleep_rand": "nothing", "template.expression": "nothing",
	"test.change": "nothing", "test.echo": "nothing", "test.fail": "nothing", "test.succeed": "nothing",
}

// TestPaths: every action names the paths that it works on. What a step changes on the host of an example is one of
// them, lies beside one or in one that ends in /, or is a directory on the way to one.
func TestPaths(t *testing.T) {
	for _, spec := range action.All() {
		_, located := spec.New().(apply.Located)
		if none := noFiles[spec.Name]; located == (none != "") {
			t.Errorf("%s: located %v, and in the list of those that are not: %q", spec.Name, located, none)
		}
		for _, c := range examples[spec.Name] {
			if !located || c.Whole || strings.HasPrefix(spec.Name, "cmd.") {
				continue // what a command does is not known
			}
			t.Run(spec.Name+"/"+c.Name, func(t *testing.T) {
				t.Parallel()
				s := c.Scene(t)
				bound := s.Watch(spec)
				p := s.MustBind(spec.Name, c.Params)
				paths := (*bound).(apply.Located).Paths(s.Host())
				before := s.Tree()
				s.Run(p)
				for _, d := range actiontest.Differences(before, s.Tree()) {
					name, _, _ := strings.Cut(strings.TrimPrefix(d, s.Root), ": ")
					concerned := func(p string) bool { return concerns(s, before, p, path.Join("/", name)) }
					if !slices.ContainsFunc(paths, concerned) {
						t.Errorf("changed outside of %q: %s", paths, d)
					}
				}
			})
		}
	}
}

// concerns reports whether a change of name is expected of a step that works on a path, in a tree as it was before.
// What lies in a new directory is the directory's.
func concerns(s *actiontest.Scene, before map[string]string, worksOn, name string) bool {
	if !path.IsAbs(worksOn) {
		return false
	}
	at, err := s.Host().Resolve(worksOn)
	if err != nil {
		return false
	}
	for _, on := range []string{worksOn, strings.TrimPrefix(at, s.Root)} {
		on = path.Clean(on)
		if name == on || path.Dir(name) == path.Dir(on) || strings.HasPrefix(on, strings.TrimSuffix(name, "/")+"/") ||
			(strings.HasSuffix(worksOn, "/") || before[s.Path(on)] == "") && strings.HasPrefix(name, on+"/") {
			return true
		}
	}
	return false
}

// inTheWay are what a user can make of the paths in the user's own home.
var inTheWay = map[string]func(at string) error{
	"link":                        func(at string) error { return os.Symlink("elsewhere", at) },
	"link to a directory of root": func(at string) error { return os.Symlink("/etc", at) },
	"loop":                        func(at string) error { return os.Symlink(filepath.Base(at), at) },
	"pipe":                        func(at string) error { return unix.Mkfifo(at, 0o644) },
	"directory":                   func(at string) error { return os.MkdirAll(filepath.Join(at, "full"), 0o755) },
	"file":                        func(at string) error { return os.WriteFile(at, []byte("mine\x00\xff"), 0o600) },
	"second name": func(at string) error {
		if err := os.WriteFile(at, []byte("mine\n"), 0o600); err != nil {
			return err
		}
		return os.Link(at, at+"-second")
	},
	"unreadable": func(at string) error { return os.WriteFile(at, nil, 0) },
	"giant": func(at string) error {
		f, err := os.Create(at)
		if err != nil {
			return err
		}
		defer f.Close()
		return f.Truncate(20 << 30)
	},
}

// TestUsersOwnFaults: whatever a user makes of the paths in the user's home, a step that fails for it is a fault of the
// host, and does not stop the others of its role.
func TestUsersOwnFaults(t *testing.T) {
	actiontest.NeedRoot(t)
	cases := append(hostileCases(),
		hostileCase{"known host", "ssh.known_host", []string{"{user: ada, host: h, key: " + actiontest.Key1 + "}"}},
		hostileCase{"moved", "user.present", []string{"{name: ada, home: /home/ada/d, moveHome: true}"}},
		hostileCase{"run", "cmd.run", []string{"{cmd: 'true', cwd: /home/ada/d}", "{cmd: 'true', creates: /home/ada/d/f}"}},
		hostileCase{"script", "cmd.script", []string{"{script: 'true', cwd: /home/ada/d}"}},
		hostileCase{"credentials", "http.request", []string{"{url: 'http://127.0.0.1:1/', headersFile: /home/ada/f}"}},
		hostileCase{"mount", "mount.mounted", []string{"{name: /home/ada/d, device: tmpfs, fstype: tmpfs}"}},
	)
	for _, spec := range action.All() {
		if noFiles[spec.Name] == "" && !onlyOfRoot[spec.Name] &&
			!slices.ContainsFunc(cases, func(c hostileCase) bool { return c.action == spec.Name }) {
			t.Errorf("%s has no case: add one that works in a home", spec.Name)
		}
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			failed := 0
			for how, put := range inTheWay {
				for _, at := range atRisk(c) {
					s := hostileScene(t, c, "").Scene
					replaceInHome(s, at, put)
					for _, params := range c.params {
						r := s.Run(s.MustBind(c.action, params))
						if r.Outcome != apply.Failed {
							continue
						}
						failed++
						if r.Fault != apply.HostFault {
							t.Errorf("%s, where %s is a %s: the fault is %s: %s", params, at, how, r.Fault, r.Reason)
						}
					}
				}
			}
			if failed == 0 {
				t.Error("nothing made it fail")
			}
		})
	}
}

// onlyOfRoot are the actions whose files lie in directories of root, or whose tools take what lies in a home.
var onlyOfRoot = map[string]bool{
	"cron.absent": true, "cron.present": true, "group.absent": true, "group.present": true, "host.absent": true,
	"host.present": true, "kmod.absent": true, "kmod.present": true, "mount.unmounted": true, "pkgrepo.absent": true,
	"pkgrepo.managed": true, "sysctl.present": true, "system.hostname": true, "system.timezone": true,
	"user.absent": true,
}

// atRisk returns the paths in the home that a case works on.
func atRisk(c hostileCase) []string {
	switch c.action {
	case "ssh.authorized_key":
		return []string{".ssh", ".ssh/authorized_keys"}
	case "ssh.known_host":
		return []string{".ssh", ".ssh/known_hosts"}
	}
	return []string{"f", "d", "d/sub"}
}

// replaceInHome gives ada a home in which one path is what put makes of it.
func replaceInHome(s *actiontest.Scene, at string, put func(string) error) {
	s.T.Helper()
	home := s.Path("home/ada")
	err := errors.Join(
		os.Mkdir(filepath.Join(home, "d"), 0o755), os.Mkdir(filepath.Join(home, ".ssh"), 0o700),
		os.RemoveAll(filepath.Join(home, at)), put(filepath.Join(home, at)),
		filepath.WalkDir(home, func(name string, _ fs.DirEntry, err error) error {
			return errors.Join(err, os.Lchown(name, hostileUID, hostileUID))
		}))
	if err != nil {
		s.T.Fatal(err)
	}
}
