package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/patience"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

func TestBackoff(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		interval time.Duration
		failures int
		want     time.Duration
	}{
		{5 * time.Minute, 0, 5 * time.Minute}, {5 * time.Minute, 1, 5 * time.Minute}, {5 * time.Minute, 2, 10 * time.Minute},
		{5 * time.Minute, 4, 40 * time.Minute}, {5 * time.Minute, 5, time.Hour}, {5 * time.Minute, 1 << 30, time.Hour},
		{2 * time.Hour, 7, 2 * time.Hour}, {time.Hour, 3, time.Hour},
	} {
		if got := backoff(c.interval, c.failures); got != c.want {
			t.Errorf("%s after %d failures: %s, want %s", c.interval, c.failures, got, c.want)
		}
	}
}

// TestPause: a node pauses for longer behind upgrades to one version that failed in a row, and not behind a pull that
// waited.
func TestPause(t *testing.T) {
	t.Parallel()
	a := &Agent{self: &self{logger: logrus.NewEntry(logrus.New())}}
	a.config.Paths.State, a.config.Agent.Interval = t.TempDir(), render.Duration(time.Minute)
	var l state.Local
	failed := &Outcome{Upgrade: true, Report: &apply.Report{Counts: map[apply.Outcome]int{apply.Failed: 1}}}
	leftAlone := &Outcome{Failures: []error{fmt.Errorf("web1: %w", &RolledBackError{Version: &state.Version{ID: "v1"}})}}
	for i, c := range []struct {
		fails string
		out   *Outcome
		want  time.Duration
	}{
		{"v1", failed, time.Minute},
		{"v1", failed, 2 * time.Minute},
		{"", &Outcome{Wait: &lock.Wait{}}, time.Minute},
		{"", &Outcome{Upgrade: true, Report: &apply.Report{Counts: map[apply.Outcome]int{apply.Pending: 1}}}, time.Minute},
		{"v1", failed, 4 * time.Minute},
		{"", leftAlone, 4 * time.Minute},
		{"v2", failed, time.Minute},
		{"v2", failed, 2 * time.Minute},
	} {
		if c.fails != "" {
			l.Fails(c.fails, time.Now())
		}
		if err := l.Save(a.config.Paths.State); err != nil {
			t.Fatal(err)
		}
		if got := a.pause(c.out); got != c.want {
			t.Errorf("%d, %s: %s", i, c.fails, got)
		}
	}
}

func TestLeaseTime(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		loop     bool
		interval time.Duration
		gap      time.Duration // since the last pull; 0: there was none
		want     time.Duration
		before   []time.Duration // earlier gaps
	}{
		{"an agent", true, time.Hour, time.Hour, 60 * time.Second, nil},
		{"the first pull", false, 5 * time.Minute, 0, 15 * time.Minute, nil},
		{"a short interval", false, 10 * time.Second, 0, 90 * time.Second, nil},
		{"pulls are rarer than configured", false, 5 * time.Minute, time.Hour, 3 * time.Hour, nil},
		{"pulls are more frequent", false, time.Hour, time.Minute, 3 * time.Hour, nil},
		{"after a long time", false, 5 * time.Minute, 1000 * time.Hour, 26 * time.Hour, nil},
		{"two days off", false, 5 * time.Minute, 48 * time.Hour, 15 * time.Minute, []time.Duration{5 * time.Minute, 5 * time.Minute}},
		{"once a day, and once by hand", false, 5 * time.Minute, 23 * time.Hour, 26 * time.Hour, []time.Duration{24 * time.Hour, 24 * time.Hour, time.Hour}},
		{"once a day", false, 5 * time.Minute, 24 * time.Hour, 26 * time.Hour, []time.Duration{24 * time.Hour, 24 * time.Hour, 24 * time.Hour}},
	} {
		p := &registration{self: &self{outside: Outside{Host: Machine{Boot: apply.Boot()}}}, loop: c.loop, local: &local{}}
		p.config.Agent.Interval = render.Duration(c.interval)
		if c.gap > 0 {
			p.local.LastPull, p.local.Gaps = time.Now().Add(-c.gap), c.before
		}
		if got := p.leaseTime(); got < c.want || got > c.want+time.Minute {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestHaltedPatience: an agent looks for the commit that fixes a halt at its interval; nothing else of a wait gets
// shorter.
func TestHaltedPatience(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		loop, halted         bool
		wait, interval, want time.Duration
	}{
		{true, true, time.Minute, 20 * time.Second, 20 * time.Second},
		{true, true, time.Minute, 5 * time.Minute, time.Minute},
		{true, false, time.Minute, 20 * time.Second, time.Minute},
		{false, true, 10 * time.Minute, 20 * time.Second, 10 * time.Minute},
	} {
		p := &turns{self: &self{}, loop: c.loop, wait: c.wait}
		p.config.Agent.Interval = render.Duration(c.interval)
		if got := p.patience(&lock.Wait{Halt: map[bool]string{true: "web"}[c.halted]}); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

const repositories = "repositories: [{name: main, url: /srv/state.git, ref: main}]\n"

func TestConfigErrors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, dropIn, want string }{
		"unknown key":        {"nod: {name: x}\n" + repositories, "", `pullet.yaml:1:1: unknown field "nod" (did you mean "node"?)`},
		"bad yaml":           {"node: {name: x\n", "", "pullet.yaml:1:"},
		"bad duration":       {repositories + "agent: {interval: often}\n", "", `pullet.yaml:2:19: "often" is not a duration`},
		"no repositories":    {"node: {name: x}\n", "", "repositories is empty"},
		"a bad node name":    {repositories + "node: {name: 'a/b'}\n", "", `node.name "a/b"`},
		"a bad fleet name":   {repositories + "fleet: ../x\n", "", `fleet "../x"`},
		"a bad role":         {repositories + "node: {name: x, labels: {role: a/b}}\n", "", `label role: "a/b"`},
		"two places of etcd": {repositories + "etcd: {endpoints: [http://e:2379], dir: /x}\n", "", "exclude each other"},
		"in conf.d":          {repositories, "agnt: {}\n", filepath.Join("conf.d", "10.yaml") + ":1:1: unknown field"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ReadConfig(writeConfig(t, c.text, c.dropIn), t.TempDir())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
	if _, err := ReadConfig(filepath.Join(t.TempDir(), "none.yaml"), t.TempDir()); err == nil || !strings.Contains(err.Error(), "--config") {
		t.Errorf("no file: %v", err)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	c, err := ReadConfig(writeConfig(t, repositories+"node: {name: web1}\nagent: {interval: 1m}\n", "agent: {wait: 2h}\n"), root)
	if err != nil {
		t.Fatal(err)
	}
	a := c.Agent
	if c.Node.Name != "web1" || a.Interval.Std() != time.Minute || a.Wait.Std() != 2*time.Hour || a.Splay.Std() != 30*time.Second || c.Root != root {
		t.Errorf("%+v", c)
	}
}

func writeConfig(t *testing.T, text, dropIn string) string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "pullet.yaml")
	err := os.Mkdir(filepath.Join(dir, "conf.d"), 0o755)
	if err == nil {
		err = os.WriteFile(file, []byte(text), 0o644)
	}
	if err == nil && dropIn != "" {
		err = os.WriteFile(filepath.Join(dir, "conf.d", "10.yaml"), []byte(dropIn), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func TestRelevant(t *testing.T) {
	t.Parallel()
	kinds := map[string]change{"/etc/pullet": configuration, "/etc/pullet/conf.d": configuration, "/etc/pullet/vars.d": variables, "/srv/x.git": variables}
	for name, want := range map[string]bool{
		"/etc/pullet/pullet.yaml": true, "/etc/pullet/other.yaml": false, "/etc/pullet/conf.d/a.yaml": true, "/etc/pullet/vars.d/a.yaml": true,
		"/etc/pullet/vars.d/.a.yaml.swp": false, "/etc/pullet/vars.d/a.yaml~": false, "/srv/x.git/packed-refs": true, "/srv/x.git/packed-refs.lock": false,
	} {
		if got := relevant(name, "/etc/pullet/pullet.yaml", kinds); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestWatchFiles: the configuration is watched however its path is written.
func TestWatchFiles(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, file := range []string{filepath.Join(dir, "pullet.yaml"), "pullet.yaml", "./pullet.yaml"} {
		log := logrus.New()
		log.SetOutput(io.Discard)
		a := &Agent{self: &self{logger: logrus.NewEntry(log)}}
		a.config.file, a.config.Paths.HostVars = file, filepath.Join(dir, "vars.d")
		ctx, cancel := context.WithCancel(context.Background())
		changes, err := a.watchFiles(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "pullet.yaml"), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
		select {
		case got := <-changes:
			if got != configuration {
				t.Errorf("%s: %v", file, got)
			}
		case <-time.After(patience.Stretch(3 * time.Second)):
			t.Errorf("%s: the change was not seen", file)
		}
		cancel()
	}
}

// TestWaits: the time of steps that wait at once counts once against what the pull may wait.
func TestWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &waits{allowed: time.Minute}
		wait := func(d time.Duration) (waited time.Duration) {
			began := time.Now()
			_ = w.within(t.Context(), func(ctx context.Context) error {
				select {
				case <-ctx.Done():
				case <-time.After(d):
				}
				return nil
			})
			return time.Since(began)
		}
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() { wait(40 * time.Second) })
		}
		all.Wait()
		for _, want := range []time.Duration{20 * time.Second, aLook} {
			if got := wait(time.Hour); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
	})
}

// TestFirstLine: the reason of what does not compile is its first mistake, and no warning before it.
func TestFirstLine(t *testing.T) {
	t.Parallel()
	list := render.ErrorList{{Severity: render.Warning, Message: "node is not listed"}, {Message: "job is gone"}}
	for want, err := range map[string]error{
		"job is gone":                list,
		"not proposed: one more ...": errors.New("not proposed:\none more\nand another"),
	} {
		if got := firstLine(err); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got, want := whyBroken(list), "it does not compile: job is gone"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
