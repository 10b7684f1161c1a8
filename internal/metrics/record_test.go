package metrics

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pullet/pullet/internal/freeport"
	"github.com/pullet/pullet/internal/patience"
	"github.com/pullet/pullet/internal/tier"
)

// TestRecord: what counts goes on, what a pull could not learn stays, and a wait at one gate has one begin.
func TestRecord(t *testing.T) {
	file := filepath.Join(t.TempDir(), "metrics.json")
	at := time.Now().Truncate(time.Second).UTC()
	pulls := []Pull{
		{Ended: at, Result: Success, Steps: map[string]int{"ok": 2}, Lease: at, Fleet: &Version{ID: "v1"}},
		{Ended: at.Add(1), Result: Waiting, Steps: map[string]int{"ok": 1, "changed": 1}, Drift: 1, Wait: &Wait{Kind: "slot", Gate: "web", Since: at}},
		{Ended: at.Add(2), Result: Failed, Wait: &Wait{Kind: "slot", Gate: "web", Since: at.Add(2), Halted: true}},
	}
	for _, p := range pulls {
		r, err := Load(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.With(p).Save(file); err != nil {
			t.Fatal(err)
		}
	}
	r, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	if r.Pulls["success"] != 1 || r.Pulls["waiting"] != 1 || r.Pulls["failed"] != 1 || r.Steps["ok"] != 3 || r.Drift != 1 {
		t.Errorf("%+v", r)
	}
	if !r.Success.Equal(at) || !r.Last.Ended.Equal(at.Add(2)) || !r.Last.Lease.Equal(at) || r.Last.Fleet.ID != "v1" {
		t.Errorf("%+v", r)
	}
	if w := r.Waiting; !w.Since.Equal(at) || !w.Halted || r.Begins(&Wait{Kind: "slot", Gate: "web"}) || !r.Begins(&Wait{Kind: "slot", Gate: "db"}) {
		t.Errorf("%+v", w)
	}
	if w := r.WithWait(&Wait{Kind: "slot", Gate: "db", Since: at.Add(9)}).Waiting; !w.Since.Equal(at.Add(9)) {
		t.Errorf("a wait at another gate began before: %v", w)
	}
	if r.With(Pull{}).Waiting != nil {
		t.Error("the wait does not end")
	}
}

// TestDamagedRecord: what is no record counts as none, and is said.
func TestDamagedRecord(t *testing.T) {
	file := filepath.Join(t.TempDir(), "metrics.json")
	for text, want := range map[string]string{
		"{": "is damaged", `{"pulls": 3}`: "is damaged", strings.Repeat(" ", maxRecord+1): "is no record of metrics",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if r, err := Load(file); err == nil || !strings.Contains(err.Error(), want) || r.Pulls != nil {
			t.Errorf("%v %+v", err, r)
		}
	}
	if err := errors.Join(os.Remove(file), os.Mkdir(file, 0o700)); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(file); err == nil || !strings.Contains(err.Error(), "is no record of metrics") {
		t.Error(err)
	}
	if err := full().Record.Save(file); err == nil {
		t.Error("a directory was replaced")
	}
}

const childOf = "PULLET_TEST_RECORD"

// TestMain counts pulls without end where TestKilled wants that.
func TestMain(m *testing.M) {
	file := os.Getenv(childOf)
	for file != "" {
		r, err := Load(file)
		if err == nil {
			err = r.With(Pull{Result: Success, Steps: map[string]int{"ok": 1}}).Save(file)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// TestKilled: counts never go back, whenever the process that keeps them is killed.
func TestKilled(t *testing.T) {
	file := filepath.Join(t.TempDir(), "metrics.json")
	var last uint64
	for range 10 {
		var said bytes.Buffer
		cmd := exec.Command(os.Args[0])
		cmd.Env, cmd.Stderr = append(os.Environ(), childOf+"="+file), &said
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		patience.UntilWithin(t, time.Minute, "it counts", func() bool {
			r, err := Load(file)
			if err != nil {
				t.Fatal(err)
			}
			return r.Pulls["success"] > last+3
		})
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // it was killed
		r, err := Load(file)
		if n := r.Pulls["success"]; err != nil || n <= last || r.Steps["ok"] != n || said.Len() > 0 {
			t.Fatalf("%d after %d: %v %s", n, last, err, &said)
		}
		last = r.Pulls["success"]
	}
}

// TestTextfile: the file is whole, for all to read, and replaced as a whole.
func TestTextfile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pullet.prom")
	for range 2 {
		if err := WriteTextfile(file, full()); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), "\npullet_halted 0\n") || strings.Contains(string(text), "process_") {
		t.Errorf("%v\n%s", err, text)
	}
	if !testing.Short() {
		promtool(t, string(text), "check", "metrics")
	}
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o644 {
		t.Error(info.Mode(), err)
	}
	if names, err := os.ReadDir(filepath.Dir(file)); err != nil || len(names) != 1 {
		t.Error(names, err)
	}
	for name, want := range map[string]string{
		"": "", "/a/pullet.prom": "", "pullet.prom": "give an absolute path", "/a/pullet.txt": "only files whose names end in .prom",
	} {
		if err := CheckTextfile(name); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Error(name, err)
		}
	}
}

// TestHostileTextfile: who owns the directory gets nothing by what he puts there: no file is written through a link, a
// pipe does not stop the pull, and what cannot be replaced is an error that says so.
func TestHostileTextfile(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: the directory belongs to another user")
	}
	const nobody = 65534
	dir := t.TempDir()
	victim := filepath.Join(dir, "victim")
	if err := os.WriteFile(victim, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	spool := filepath.Join(dir, "spool")
	pipe := func(name string) error { return syscall.Mkfifo(name, 0o666) }
	link := func(name string) error { return os.Symlink(victim, name) }
	hard := func(name string) error { return os.Link(victim, name) }
	full3 := func(name string) error { return errors.Join(os.MkdirAll(filepath.Join(name, "a/b"), 0o777)) }
	for name, c := range map[string]struct {
		at   string
		put  func(string) error
		want string
	}{
		"a link to a file of root":      {"pullet.prom", link, ""},
		"a link that leads nowhere":     {"pullet.prom", func(name string) error { return os.Symlink("/none/x", name) }, ""},
		"another name of root's file":   {"pullet.prom", hard, ""},
		"a pipe":                        {"pullet.prom", pipe, ""},
		"a directory":                   {"pullet.prom", full3, "metrics are not written to "},
		"a link in the candidate's way": {".pullet.pullet.prom", link, ""},
		"a pipe in the candidate's way": {".pullet.pullet.prom", pipe, ""},
		"its other name in the way":     {".pullet.pullet.prom", hard, ""},
		"a full directory in the way":   {".pullet.pullet.prom", full3, "metrics are not written to "},
	} {
		if err := errors.Join(os.RemoveAll(spool), os.Mkdir(spool, 0o755), os.Chown(spool, nobody, nobody)); err != nil {
			t.Fatal(err)
		}
		at := filepath.Join(spool, c.at)
		if err := errors.Join(c.put(at), os.Lchown(at, nobody, nobody)); err != nil {
			t.Fatal(err)
		}
		if err := os.Lchown(victim, 0, 0); err != nil {
			t.Fatal(err)
		}
		err := WriteTextfile(filepath.Join(spool, "pullet.prom"), full())
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if text, err := os.ReadFile(victim); err != nil || string(text) != "mine" {
			t.Errorf("%s: root's file says %q, %v", name, text, err)
		}
		if info, err := os.Lstat(filepath.Join(spool, "pullet.prom")); c.want == "" && (err != nil || info.Mode() != 0o644) {
			t.Errorf("%s: %v %v", name, info, err)
		}
	}
	// A directory that he put a link in place of.
	if err := errors.Join(os.RemoveAll(spool), os.Mkdir(spool, 0o755), os.Chown(spool, nobody, nobody),
		os.Symlink(dir, filepath.Join(spool, "node-exporter")), os.Lchown(filepath.Join(spool, "node-exporter"), nobody, nobody)); err != nil {
		t.Fatal(err)
	}
	err := WriteTextfile(filepath.Join(spool, "node-exporter/pullet.prom"), full())
	if err == nil {
		t.Error("it was written where a link of another user leads to")
	}
	if _, err := os.Lstat(filepath.Join(dir, "pullet.prom")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if err := WriteTextfile(filepath.Join(dir, "none/pullet.prom"), full()); err == nil || !strings.Contains(err.Error(), "there is no such directory") {
		t.Error(err)
	}
}

// TestNodeExporter: the node exporter of the distribution reads every sample of the textfile.
func TestNodeExporter(t *testing.T) {
	t.Parallel()
	tier.Program(t, "prometheus-node-exporter", "prometheus-node-exporter")
	dir := t.TempDir()
	if err := WriteTextfile(filepath.Join(dir, "pullet.prom"), full()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "pullet.prom"))
	if err != nil {
		t.Fatal(err)
	}
	at, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("prometheus-node-exporter", "--web.listen-address="+at, "--collector.disable-defaults",
		"--collector.textfile", "--collector.textfile.directory="+dir)
	said := &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s", said)
		}
	})
	read := ""
	patience.Succeeds(t, "it listens", func() error {
		answer, err := http.Get("http://" + at + "/metrics")
		if err != nil {
			return err
		}
		body, err := io.ReadAll(answer.Body)
		read = string(body)
		return errors.Join(err, answer.Body.Close())
	})
	sample := regexp.MustCompile(`(?m)^pullet_`)
	have, want := len(sample.FindAllString(read, -1)), len(sample.FindAllString(string(text), -1))
	if have != want || want == 0 || !strings.Contains(read, "\nnode_textfile_scrape_error 0\n") {
		t.Errorf("it reads %d samples of %d:\n%s", have, want, read)
	}
}
