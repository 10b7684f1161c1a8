package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/sirupsen/logrus"

	"github.com/pullet/pullet"
	"github.com/pullet/pullet/internal/agent"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/state"
)

// demoFleet is five agents with what they share.
type demoFleet struct {
	dir   string
	store *state.Store
	nodes []demoNode
	work  *git.Repository // that the nodes pull from, with its work tree
	log   *os.File
	ended sync.WaitGroup
	end   context.CancelFunc
}

type demoNode struct {
	name, config, root string
	agent              *agent.Agent
}

// demoHosts are the hosts of the example's inventory.
func demoHosts() []string { return []string{"canary", "db1", "web1", "web2", "web3"} }

// newDemoFleet makes the repository, the store and the nodes; nothing runs yet.
func newDemoFleet(ctx context.Context, dir string, fast bool) (f *demoFleet, err error) {
	f = &demoFleet{dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.stop())
		}
	}()
	if f.log, err = os.Create(filepath.Join(dir, "agents.log")); err != nil {
		return f, err
	}
	if f.work, err = demoRepository(dir); err != nil {
		return f, err
	}
	if f.store, err = state.Open(ctx, state.Config{Fleet: "demo", Dir: filepath.Join(dir, "etcd")}); err != nil {
		return f, err
	}
	for _, name := range demoHosts() {
		n, err := f.node(name, fast)
		if err != nil {
			return f, err
		}
		f.nodes = append(f.nodes, n)
	}
	return f, nil
}

// node writes the files of one host and prepares its agent.
func (f *demoFleet) node(name string, fast bool) (demoNode, error) {
	home := filepath.Join(f.dir, name)
	n := demoNode{name: name, config: filepath.Join(home, "pullet.yaml"), root: filepath.Join(home, "root")}
	files := map[string]string{
		"root/etc/os-release": "ID=debian\nVERSION_ID=12\nVERSION_CODENAME=bookworm\n",
		"root/etc/hostname":   name + "\n",
		"root/etc/hosts":      "127.0.1.1 " + name + ".example.org " + name + "\n",
		"pullet.yaml": fmt.Sprintf(`# The configuration of %s: everything else is in git.
node: {name: %s}
fleet: demo
repositories:
  - {name: main, url: "file://%s/state.git", tag: 'v*'}
etcd: {dir: %s/etcd}          # one store for all five; a real fleet names endpoints
agent: {interval: 5s, splay: 200ms}
paths: {state: %s/state, hostVars: %s/vars.d}
`, name, name, f.dir, f.dir, home, home),
	}
	if fast {
		files["vars.d/demo.yaml"] = "drain: 10ms\n"
	}
	for path, text := range files {
		path = filepath.Join(home, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return n, err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return n, err
		}
	}
	config, err := agent.ReadConfig(n.config, n.root)
	if err != nil {
		return n, err
	}
	log := logrus.New()
	log.SetOutput(f.log)
	n.agent, err = agent.New(config, build().Version, log.WithField("node", name))
	return n, err
}

// start lets the agents run until stop.
func (f *demoFleet) start(ctx context.Context) {
	ctx, f.end = context.WithCancel(ctx)
	for _, n := range f.nodes {
		f.ended.Add(1)
		go func() {
			defer f.ended.Done()
			seen := func(o *agent.Outcome, err error) {
				fmt.Fprintf(
					f.log,
					"%s %s: exit %d %v %v %v\n",
					time.Now().Format(time.TimeOnly),
					n.name,
					o.ExitCode(),
					err,
					o.Failures,
					o.Warnings,
				)
			}
			if err := n.agent.Loop(ctx, agent.Observer{Waiting: func(*lock.Wait) {}, Pulled: seen}); err != nil {
				fmt.Fprintf(f.log, "%s: %v\n", n.name, err)
			}
		}()
	}
}

// stop ends the agents, then the store.
func (f *demoFleet) stop() error {
	if f.end != nil {
		f.end()
	}
	f.ended.Wait()
	var err error
	for _, n := range f.nodes {
		err = errors.Join(err, n.agent.Close())
	}
	if f.store != nil {
		err = errors.Join(err, f.store.Close())
	}
	if f.log != nil {
		err = errors.Join(err, f.log.Close())
	}
	return err
}

// explain adds to an error what the agents said last.
func (f *demoFleet) explain(err error) error {
	text, readErr := os.ReadFile(f.log.Name())
	if readErr != nil {
		return errors.Join(err, readErr)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return fmt.Errorf("%w; the agents said last:\n%s", err, strings.Join(lines[max(0, len(lines)-12):], "\n"))
}

// demoRepository makes the repository that the hosts pull from, with the example in its work tree beside it. Commits
// land in it directly: what a push does, without a second copy.
func demoRepository(dir string) (*git.Repository, error) {
	bare, tree := filepath.Join(dir, "state.git"), filepath.Join(dir, "work")
	example, err := fs.Sub(pullet.Example, "example-repo")
	if err != nil {
		return nil, err
	}
	if err := copyNew(example, tree); err != nil {
		return nil, err
	}
	store := filesystem.NewStorage(osfs.New(bare), cache.NewObjectLRUDefault())
	return git.InitWithOptions(store, osfs.New(tree), git.InitOptions{DefaultBranch: "refs/heads/main"})
}

// release commits a change of the example and tags it.
func (f *demoFleet) release(tag string, change func(work string) error) error {
	if change != nil {
		if err := change(filepath.Join(f.dir, "work")); err != nil {
			return err
		}
	}
	err := replace(filepath.Join(f.dir, "work", "vars/common.yaml"), `release: "`, `"`, strings.TrimPrefix(tag, "v"))
	if err != nil {
		return err
	}
	tree, err := f.work.Worktree()
	if err != nil {
		return err
	}
	if err := tree.AddWithOptions(&git.AddOptions{All: true}); err != nil {
		return err
	}
	by := &object.Signature{Name: "Demo", Email: "demo@example.org", When: time.Now()}
	commit, err := tree.Commit("release "+tag, &git.CommitOptions{Author: by})
	if err != nil {
		return err
	}
	_, err = f.work.CreateTag(tag, commit, &git.CreateTagOptions{Tagger: by, Message: "release " + tag})
	return err
}

// replace changes what stands between two texts in a file, or puts after the first one what is new.
func replace(file, before, after, with string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	head, rest, ok := strings.Cut(string(text), before)
	_, tail, ok2 := strings.Cut(rest, after)
	if !ok || !ok2 {
		return fmt.Errorf("%s: there is no %q ... %q", file, before, after)
	}
	return os.WriteFile(file, []byte(head+before+with+after+tail), 0o644)
}

// The changes that the demo commits.

func goodChange(work string) error {
	return errors.Join(
		appendTo(filepath.Join(work, "vars/web.yaml"), "  - {name: blog.example.org, root: /srv/blog}\n"),
		replace(
			filepath.Join(work, "vars/network/default.yaml"),
			"nameservers: [",
			"]",
			"192.0.2.53, 192.0.2.54, 192.0.2.55",
		),
	)
}

func badChange(work string) error {
	return appendTo(
		filepath.Join(work, "vars/web.yaml"),
		"  - {name: api.example.org, root: /srv/api, listen: 99999}\n",
	)
}

func fixedChange(work string) error {
	return replace(filepath.Join(work, "vars/web.yaml"), "listen: ", "}", "8080")
}

func appendTo(file, text string) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
