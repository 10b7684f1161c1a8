package puller

import (
	"context"
	"fmt"
	"io"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/gitremote"
)

// TestMain lets the test binary be the process that TestKill kills.
func TestMain(m *testing.M) {
	if dir := os.Getenv("PULLER_TEST_DIR"); dir != "" {
		pullForever(dir, os.Getenv("PULLER_TEST_URL"))
	}
	os.Exit(m.Run())
}

// pullForever pulls into a fresh store again and again.
func pullForever(dir, url string) {
	fmt.Println("ready")
	for {
		p, err := Open(dir, []Source{{Name: "main", URL: url}}, gitremote.Limits{}, quiet())
		if err == nil {
			_, err = p.Pull(context.Background())
			p.Close()
		}
		if err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		os.Truncate(filepath.Join(dir, "main.git/HEAD"), 0) // the next pull rebuilds
	}
}

// A pull that is killed anywhere leaves a store that works.
func TestKill(t *testing.T) {
	t.Parallel()
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewSource(seed))
	u := newUpstream(t)
	for i := range 40 {
		u.write(fmt.Sprintf("f%d", i), strings.Repeat(fmt.Sprint(i, "\n"), 50))
	}
	u.commit("a", "0")
	w := serveHTTP(t, u)
	dir := t.TempDir()
	for round := range 15 {
		commit := u.commit("a", fmt.Sprint(round))
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "PULLER_TEST_DIR="+dir, "PULLER_TEST_URL="+w.url)
		before := w.requests.Load()
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		_, err = io.ReadFull(out, make([]byte, len("ready")))
		must(t, err)
		killAfter(cmd, time.Duration(random.Int63n(int64(100*time.Millisecond))))
		t.Logf("round %d: killed after %d requests", round, w.requests.Load()-before)
		p := open(t, dir, Source{Name: "main", URL: w.url})
		h := pull(t, p)
		if h.Problem != nil || h.Commit != commit {
			t.Fatalf("round %d: %+v", round, h)
		}
		if got := content(t, p, h, "a"); got != fmt.Sprint(round) {
			t.Errorf("round %d: a is %q", round, got)
		}
		must(t, p.Close())
		assertNoLeftovers(t, dir)
	}
}

func killAfter(cmd *exec.Cmd, d time.Duration) {
	<-time.After(d)
	cmd.Process.Kill()
	cmd.Wait()
}
