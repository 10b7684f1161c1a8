package git_test

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/actiontest"
	"github.com/pullet/pullet/internal/patience"
	"github.com/pullet/pullet/internal/tier"
)

// checkoutRoot in the environment makes this binary the process that TestCheckoutKilled kills.
const checkoutRoot = "PULLET_TEST_CHECKOUT"

// TestCheckoutForever is that process: it checks out one branch after the other, in a directory that it sometimes
// removes.
func TestCheckoutForever(t *testing.T) {
	root := os.Getenv(checkoutRoot)
	if root == "" {
		return
	}
	s := actiontest.New(t)
	s.Root = root
	fmt.Println("ready")
	for i := 1; ; i++ {
		if i%8 == 0 {
			gone := s.Path(fmt.Sprintf("gone/%d", time.Now().UnixNano())) // at once: half a removal is somebody's change
			if err := errors.Join(os.MkdirAll(s.Path("gone"), 0o755), os.Rename(s.Path("srv/app"), gone)); err != nil {
				t.Fatal(err)
			}
		}
		checkout(s, "/srv/up.git", []string{"", ", ref: other"}[i%2], apply.Changed)
	}
}

// TestCheckoutKilled: wherever a checkout is killed, the next run makes it whole, without force, and what git does not
// know is kept.
func TestCheckoutKilled(t *testing.T) {
	tier.Long(t, "kills a process until three kills hit the middle of a checkout")
	s := actiontest.New(t)
	u := newUpstream(s)
	u.commit("for i in $(seq 60); do mkdir -p d$i; seq $i 2000 > d$i/f; done; echo main > which")
	u.git("checkout", "-q", "-b", "other")
	u.commit("for i in $(seq 1 2 60); do seq $i 2001 > d$i/f; git rm -q d$((i+1))/f; mkdir -p n$i; seq $i 99 > n$i/g; done; rm which; mkdir which; echo > which/one")
	u.git("checkout", "-q", "main")
	random, halves := rand.New(rand.NewPCG(tier.Seed(t), 0)), 0
	for round := 0; halves < 3; round++ { // three of those that were killed while they placed files
		if round == 60 {
			t.Fatalf("only %d of %d were cut off in the middle of a checkout", halves, round)
		}
		cmd := exec.Command(os.Args[0], "-test.run", "^TestCheckoutForever$")
		cmd.Env = append(os.Environ(), checkoutRoot+"="+s.Root, "TMPDIR="+t.TempDir()) // it is killed: nobody else would remove its own
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
			t.Fatalf("%q %v", line, err)
		}
		if round%2 == 0 {
			time.Sleep(time.Duration(random.Int64N(int64(400 * time.Millisecond))))
		} else {
			untilChanged(s, "/srv/app")
			time.Sleep(time.Duration(random.Int64N(int64(10 * time.Millisecond))))
		}
		_ = cmd.Process.Kill()
		if err := cmd.Wait(); cmd.ProcessState.Exited() {
			t.Fatalf("it ended by itself: %v", err)
		}
		commit := u.commit(fmt.Sprintf("echo %d > round", round))
		s.State = t.TempDir()
		r := s.Run(s.MustBind("git.checkout", "{name: /srv/app, url: /srv/up.git, ref: main}"))
		if r.Outcome != apply.Changed {
			t.Fatalf("round %d: %s %q %s", round, r.Outcome, r.Summary, r.Reason)
		}
		if strings.HasPrefix(r.Summary, "finish") {
			halves++
		}
		u.isWhole(s.Path("srv/app"), commit)
		if got := u.in(s.Path("srv/app"), "status", "--porcelain"); got != "" {
			t.Errorf("round %d, %s: left behind: %s", round, r.Summary, got)
		}
		noCandidates(s)
	}
}

// untilChanged waits until something changes in a directory, such as that a checkout begins to place files.
func untilChanged(s *actiontest.Scene, dir string) {
	changed := func() time.Time {
		info, err := os.Stat(s.Path(dir))
		if err != nil {
			return time.Time{}
		}
		return info.ModTime()
	}
	before := changed()
	patience.Until(s.T, "a checkout changes "+dir, func() bool { return !changed().Equal(before) })
}

// noCandidates: no file is left under the name that it has before it is in place.
func noCandidates(s *actiontest.Scene) {
	s.T.Helper()
	err := filepath.WalkDir(s.Path("srv"), func(path string, d fs.DirEntry, err error) error {
		if strings.Contains(d.Name(), ".pullet") || strings.HasPrefix(d.Name(), "tmp_") {
			s.T.Errorf("left behind: %s", path)
		}
		return err
	})
	if err != nil {
		s.T.Fatal(err)
	}
}
