package action_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/actiontest"
	"github.com/pullet/pullet/internal/tier"
	"golang.org/x/sys/unix"
)

// hostileUID is a user who is nobody on this machine.
const hostileUID = 61234

// canary is the content of files that are root's alone.
const canary = "CANARY-7c1f: nobody but root reads this"

// hostileDir and hostileKind tell the test binary, in the environment, to be the user.
const (
	hostileDir  = "PULLET_TEST_HOSTILE_DIR"
	hostileKind = "PULLET_TEST_HOSTILE_KIND"
)

// hostileCase is an action on something in a user's directory. Its parameters alternate, so that there is always
// something to do.
type hostileCase struct {
	name, action string
	params       []string
}

func hostileCases() []hostileCase {
	owned := fmt.Sprintf("owner: '%d', group: '%d'", hostileUID, hostileUID)
	return []hostileCase{
		{"managed", "file.managed", []string{"{name: /home/ada/f, content: one, mode: 0644, " + owned + "}", "{name: /home/ada/f, content: two, mode: 0600, owner: '0'}"}},
		{"kept", "file.managed", []string{"{name: /home/ada/f, mode: 0644, " + owned + "}", "{name: /home/ada/f, mode: 0604, owner: '0'}"}},
		{"backup", "file.managed", []string{"{name: /home/ada/f, content: one, backup: true}", "{name: /home/ada/f, content: two, backup: true}"}},
		{"validated", "file.managed", []string{"{name: /home/ada/f, content: one, validate: 'true %s', " + owned + "}", "{name: /home/ada/f, content: two, validate: 'true %s'}"}},
		{"in a directory", "file.managed", []string{"{name: /home/ada/d/f, content: one, makeDirs: true, " + owned + "}", "{name: /home/ada/d/sub/f, content: two, makeDirs: true, " + owned + "}"}},
		{"tree", "file.managed", []string{"{name: /home/ada/d, source: tree, recurse: true, mode: 0644, " + owned + "}", "{name: /home/ada/d, source: tree, recurse: true, clean: true, mode: 0600}"}},
		{"line", "file.line", []string{"{name: /home/ada/f, line: one, match: '^(one|two)', create: true, mode: 0644, " + owned + "}", "{name: /home/ada/f, line: two, match: '^(one|two)', create: true}"}},
		{"block", "file.block", []string{"{name: /home/ada/f, content: one, create: true, mode: 0644, " + owned + "}", "{name: /home/ada/f, content: two, create: true}"}},
		{"directory", "file.directory", []string{"{name: /home/ada/d, mode: 0755, " + owned + "}", "{name: /home/ada/d/sub, mode: 0777, owner: '0'}"}},
		{"recursive", "file.directory", []string{"{name: /home/ada/d, recurse: true, fileMode: 0644, " + owned + "}", "{name: /home/ada/d, recurse: true, fileMode: 0604, owner: '0'}"}},
		{"clean", "file.directory", []string{"{name: /home/ada/d, clean: true}", "{name: /home/ada/d/sub, clean: true}"}},
		{"absent", "file.absent", []string{"{name: /home/ada/d/f}", "{name: /home/ada/d/sub/f}", "{name: /home/ada/d/sub/f}", "{name: /home/ada/d}"}},
		{"symlink", "file.symlink", []string{"{name: /home/ada/d/f, target: one, force: true, makeDirs: true, owner: '61234'}", "{name: /home/ada/d/f, target: two, force: true}"}},
		{"content", "file.content", []string{"{name: /home/ada/f}", "{name: /home/ada/d}"}},
		{"archive", "archive.extracted", []string{"{name: /home/ada/d, source: one.tar, " + owned + "}", "{name: /home/ada/d, source: two.tar}"}},
		{"git", "git.checkout", []string{"{name: /home/ada/d, url: /srv/up.git, ref: old, force: true, " + owned + "}", "{name: /home/ada/d, url: /srv/up.git, ref: main, force: true}"}},
		{"key", "ssh.authorized_key", []string{"{user: ada, key: " + actiontest.Key1 + "}", "{user: ada, key: " + actiontest.Key1 + ", state: absent}"}},
	}
}

// TestHostile: while an action works in a directory of a user, who exchanges what is there for links, other
// directories, second names of root's files, pipes and giants, nothing outside of that directory changes, and nothing
// that is root's alone gets out.
func TestHostile(t *testing.T) {
	actiontest.NeedRoot(t)
	runs := map[string]int{"links": 8, "names": 4, "pipes": 4}
	seed := tier.Seed(t)
	for _, c := range hostileCases() {
		for kind, n := range runs {
			if tier.Soaking() {
				n *= 100
			}
			t.Run(c.name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				hostileScene(t, c, kind).attack(c, n, seed)
			})
		}
	}
}

// siege is a scene with a user in it.
type siege struct {
	*actiontest.Scene
	home, kind string
	before     map[string]string
}

func hostileScene(t *testing.T, c hostileCase, kind string) *siege {
	s := actiontest.New(t, "d home/ada 755", "f etc/shadow 600 "+canary, "f etc/group 644 root:x:0:\n", "f etc/cron.d/job 600 "+canary, "d etc/sub 755", "f etc/sub/f 600 "+canary,
		"f etc/f 600 "+canary, "f etc/passwd 644 root:x:0:0::/root:/bin/sh\nada:x:61234:61234::/home/ada:/bin/sh\n")
	s.Files["tree/f"], s.Files["tree/sub/f"] = "in the tree", "below it"
	s.Files["one.tar"] = actiontest.Tarball(actiontest.Packed{"f", "f", "one"}, actiontest.Packed{"f", "sub/f", "one"}, actiontest.Packed{"l", "l", "f"})
	s.Files["two.tar"] = actiontest.Tarball(actiontest.Packed{"f", "f", "two"}, actiontest.Packed{"f", "sub/f", "two"}, actiontest.Packed{"l", "sub/l", "f"})
	if c.action == "git.checkout" {
		twoCommits(s)
	}
	for dir := s.Root; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	g := &siege{Scene: s, home: s.Path("home/ada"), kind: kind}
	if err := os.Chown(g.home, hostileUID, hostileUID); err != nil {
		t.Fatal(err)
	}
	g.names()
	g.before = g.outside()
	return g
}

// names gives the user second names of root's files, as it could make them itself where fs.protected_hardlinks is off.
func (g *siege) names() {
	if g.kind != "names" {
		return
	}
	for i := range 20 {
		for _, of := range []string{"shadow", "cron.d/job"} {
			err := os.Link(g.Path("etc/"+of), filepath.Join(g.home, fmt.Sprintf("name-%d-%s", i, filepath.Base(of))))
			if err != nil && !errors.Is(err, fs.ErrExist) {
				g.T.Fatal(err)
			}
		}
	}
}

// outside is all that is not the user's. A giant of the user's is not read.
func (g *siege) outside() map[string]string {
	out := actiontest.Tree(g.T, g.Path("etc"))
	for _, dir := range []string{".", "home"} {
		found, err := os.ReadDir(g.Path(dir))
		if err != nil {
			g.T.Fatal(err)
		}
		for _, e := range found {
			out[g.Path(filepath.Join(dir, e.Name()))] = "is there"
		}
	}
	return out
}

// stepsPerRun is how many things the user exchanges while an action runs once.
const stepsPerRun = 60

// attack runs the action n times, and the user takes its steps beside each run.
func (g *siege) attack(c hostileCase, n int, seed uint64) {
	g.T.Helper()
	runtime.LockOSThread() // the user dies with the thread that started it, and actions end threads
	defer runtime.UnlockOSThread()
	var programs []*apply.Program
	for _, params := range c.params {
		programs = append(programs, g.MustBind(c.action, params))
	}
	user := exec.Command("/proc/self/exe", "-test.run=^TestHostileUser$")
	user.Env = append(os.Environ(), hostileDir+"="+g.home, hostileKind+"="+g.kind, "PULLET_TEST_SEED="+fmt.Sprint(seed))
	user.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: hostileUID, Gid: hostileUID}, Pdeathsig: syscall.SIGKILL}
	user.Dir = "/"
	begin, err := user.StdinPipe()
	if err != nil {
		g.T.Fatal(err)
	}
	took, err := user.StdoutPipe()
	if err != nil {
		g.T.Fatal(err)
	}
	if err := user.Start(); err != nil {
		g.T.Fatal(err)
	}
	did := 0
	encoded := base64.StdEncoding.EncodeToString([]byte(canary)) // as file.content returns it
	for run := range n {
		if _, err := begin.Write([]byte{1}); err != nil {
			g.T.Fatal(err)
		}
		r := g.Run(programs[run%len(programs)])
		if _, err := io.ReadFull(took, make([]byte, 1)); err != nil {
			g.T.Fatal("the user ended: ", err)
		}
		if r.Outcome == apply.Changed {
			did++
		}
		if text := fmt.Sprint(r.Result, r.Diff, r.Reason); strings.Contains(text, canary) || strings.Contains(text, encoded) {
			g.T.Errorf("the report shows what is root's alone: %s", text)
			break
		}
		g.names()
	}
	if err := user.Process.Kill(); err != nil {
		g.T.Error(err)
	}
	if err := user.Wait(); err != nil && user.ProcessState.Exited() {
		g.T.Errorf("the user ended by itself: %v", err)
	}
	g.T.Logf("%d of %d runs changed something", did, n)
	for _, d := range actiontest.Differences(g.before, g.outside()) {
		g.T.Errorf("outside of the user's directory: %s", d)
	}
	g.nothingOut()
}

// nothingOut looks for what is root's alone in files that the user can read.
func (g *siege) nothingOut() {
	err := filepath.WalkDir(g.home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err != nil || info.Size() > 1<<20 {
			return err
		}
		st := info.Sys().(*syscall.Stat_t)
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), canary) && (st.Uid != 0 || info.Mode()&0o004 != 0) {
			g.T.Errorf("%s has what is root's alone: %s, uid %d", path, info.Mode(), st.Uid)
		}
		return err
	})
	if err != nil {
		g.T.Error(err)
	}
}

// TestHostileUser is the user, in a process of its own.
func TestHostileUser(t *testing.T) {
	home := os.Getenv(hostileDir)
	if home == "" {
		t.Skip("is run by TestHostile")
	}
	if os.Geteuid() == 0 {
		t.Fatal("it is still root")
	}
	if err := os.Chdir(home); err != nil {
		t.Fatal(err)
	}
	kind, random := os.Getenv(hostileKind), rand.New(rand.NewPCG(tier.Seed(t), 0))
	for begin := make([]byte, 1); ; {
		if _, err := os.Stdin.Read(begin); err != nil {
			return
		}
		for range stepsPerRun {
			hostileStep(random, kind)
		}
		if _, err := os.Stdout.Write(begin); err != nil {
			t.Fatal(err)
		}
	}
}

// hostileStep puts one thing in the place of another. What fails is tried again.
func hostileStep(random *rand.Rand, kind string) {
	pick := func(list ...string) string { return list[random.IntN(len(list))] }
	at := pick("f", "d", "d/sub", "d/f", "d/sub/f", ".f.pullet", "d/.f.pullet", ".ssh", ".ssh/authorized_keys", "d/.git", "d/.git/HEAD", "d/.git/index", ".d.pullet")
	up := strings.Repeat("../", 2+strings.Count(at, "/"))
	other := "other-" + fmt.Sprint(random.IntN(8))
	_ = os.RemoveAll(other)
	switch kind {
	case "links":
		_ = os.Symlink(up+pick("etc", "etc/shadow", "etc/cron.d", "etc/cron.d/job", "etc/sub", "etc/new", "etc/f"), other)
	case "names":
		_ = os.Rename("name-"+fmt.Sprint(random.IntN(20))+pick("-shadow", "-job"), other)
	case "pipes":
		if random.IntN(2) == 0 {
			_ = unix.Mkfifo(other, 0o644)
		} else if f, err := os.Create(other); err == nil {
			_ = errors.Join(f.Truncate(20<<30), f.Close())
		}
	}
	if unix.Renameat2(unix.AT_FDCWD, other, unix.AT_FDCWD, at, unix.RENAME_EXCHANGE) != nil && random.IntN(2) == 0 {
		_ = os.Rename(other, at)
	}
	if random.IntN(3) > 0 { // and back
		_ = unix.Renameat2(unix.AT_FDCWD, other, unix.AT_FDCWD, at, unix.RENAME_EXCHANGE)
	}
	if random.IntN(4) == 0 {
		hostileNormal()
	}
}

// hostileNormal makes it look as it should.
func hostileNormal() {
	for _, dir := range []string{"d", "d/sub", ".ssh"} {
		if info, err := os.Lstat(dir); err == nil && !info.IsDir() {
			_ = os.Remove(dir)
		}
		_ = os.Mkdir(dir, 0o755)
	}
	for _, file := range []string{"f", "d/f", "d/sub/f"} {
		if info, err := os.Lstat(file); err == nil && !info.Mode().IsRegular() {
			_ = os.Remove(file)
		}
		_ = os.WriteFile(file, []byte("one\n"), 0o644)
	}
}
