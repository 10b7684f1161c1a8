package puller

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pullet/pullet/internal/gitremote"
	"github.com/pullet/pullet/internal/tier"
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
	random := rand.New(rand.NewPCG(tier.Seed(t), 0))
	rounds := 3
	if !testing.Short() {
		rounds = 15
	}
	u := newUpstream(t)
	for i := range 40 {
		u.write(fmt.Sprintf("f%d", i), strings.Repeat(fmt.Sprint(i, "\n"), 50))
	}
	u.commit("a", "0")
	w := serveHTTP(t, u)
	dir := t.TempDir()
	for round := range rounds {
		commit := u.commit("a", fmt.Sprint(round))
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "PULLER_TEST_DIR="+dir, "PULLER_TEST_URL="+w.url)
		before := w.requests.Load()
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		_, err = io.ReadFull(out, make([]byte, len("ready")))
		must(t, err)
		ended := make(chan bool)
		go func() { cmd.Wait(); close(ended) }()
		for last := before + 1 + random.Int64N(8); w.requests.Load() < last; { // a pull is two requests
			select {
			case <-w.arrived:
			case <-ended:
				t.Fatal("the process that pulls ended")
			}
		}
		must(t, cmd.Process.Kill())
		<-ended
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
