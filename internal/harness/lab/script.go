package lab

import (
	"fmt"
	"net"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/pullet/pullet/internal/tier"
)

// Runner runs scripts, each in its own lab, and at most two at a time.
type Runner struct {
	script  string // scripts/lab
	share   string
	longest string
	slots   chan bool
	begun   chan bool // closed when the longest script has a slot
}

// NewRunner returns a runner. The directory root is that of the module, and share is a directory with bin/pullet that
// hosts see. The longest script gets a slot first: otherwise it would run alone at the end.
func NewRunner(t testing.TB, root, share, longest string) *Runner {
	t.Helper()
	return &Runner{script: script(t, root), share: share, longest: longest, slots: make(chan bool, 2),
		begun: make(chan bool)}
}

// Setup waits for a slot, and makes the network of the lab of a script. The lab ends with the script. Repositories
// below $WORK are at http://lab:8081/.
func (r *Runner) Setup(env *testscript.Env) error {
	if filepath.Base(env.WorkDir) == "script-"+r.longest {
		r.slots <- true
		close(r.begun)
	} else {
		select {
		case <-r.begun:
		case <-time.After(5 * time.Second): // it is not among the scripts
		}
		r.slots <- true
	}
	env.Defer(func() { <-r.slots })
	return r.setUp(env)
}

// Condition is the condition [soak] of scripts: scripts/soak runs them.
func Condition(name string) (bool, error) {
	if name != "soak" {
		return false, fmt.Errorf("unknown condition %q", name)
	}
	return tier.Soaking(), nil
}

// setUp makes the network of the lab of a script. The script makes the hosts.
func (r *Runner) setUp(env *testscript.Env) error {
	caches, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE").Output() // a script has another home
	if err != nil {
		return err
	}
	build, modules, _ := strings.Cut(strings.TrimSpace(string(caches)), "\n")
	name := Name(strings.TrimPrefix(filepath.Base(env.WorkDir), "script-"))
	for key, value := range map[string]string{
		"GOCACHE": build, "GOMODCACHE": modules,
		"LAB_SCRIPT": r.script, "PULLET_LAB": name, "PULLET_LAB_OWNER": fmt.Sprint(os.Getpid()),
		"PATH":    env.Getenv("PATH") + ":/usr/sbin:/sbin",
		"PROGRAM": filepath.Join(r.share, "bin/pullet"),
		"SYSTEMD": filepath.Join(filepath.Dir(r.script), "systemd"),
		"PORTS":   filepath.Join(filepath.Dir(r.script), "../cmd/pullet/testdata/ports"),
		"HOME":    env.WorkDir, "GIT_CONFIG_NOSYSTEM": "1",
		"GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.org", "GIT_COMMITTER_NAME": "Ada",
		"GIT_COMMITTER_EMAIL": "ada@example.org",
	} {
		env.Setenv(key, value)
	}
	run := func(args ...string) ([]byte, error) {
		cmd := exec.Command(r.script, args...)
		cmd.Env = append(env.Vars, "HOME="+os.Getenv("HOME")) // the cache of go is there
		return cmd.CombinedOutput()
	}
	env.Defer(func() {
		if failed, ok := env.T().(interface{ Failed() bool }); ok && failed.Failed() {
			logs, _ := run("logs") // the script failed before
			env.T().Log(string(logs))
		}
		if out, err := run("down"); err != nil {
			env.T().Log("lab down: ", err, string(out))
		}
	})
	if out, err := run("up", "--share", r.share, "0"); err != nil {
		return fmt.Errorf("lab up: %w\n%s", err, out)
	}
	address, err := Address(name)
	if err != nil {
		return err
	}
	env.Setenv("LAB_ADDRESS", address)
	return serveGit(env, address)
}

// serveGit serves the repositories of a script to its hosts with git.
func serveGit(env *testscript.Env, address string) error {
	listener, err := net.Listen("tcp", address+":8081")
	if err != nil {
		return err
	}
	path, err := exec.LookPath("git")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: &cgi.Handler{
		Path: path, Args: []string{"http-backend"},
		Env: []string{"GIT_PROJECT_ROOT=" + env.WorkDir, "GIT_HTTP_EXPORT_ALL=1", "HOME=" + env.WorkDir},
	}}
	go server.Serve(listener) // it ends with Close
	env.Defer(func() { server.Close() })
	return nil
}
