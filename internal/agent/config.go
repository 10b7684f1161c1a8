package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/datastore"
	"github.com/pullet/pullet/internal/event/webhook"
	"github.com/pullet/pullet/internal/gitremote"
	"github.com/pullet/pullet/internal/ownfile"
	"github.com/pullet/pullet/puller"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// Config is /etc/pullet/pullet.yaml: what a node must know before it can pull. Every key but repositories has a
// default.
type Config struct {
	Node         Self            `yaml:"node"`         // this host
	Fleet        string          `yaml:"fleet"`        // several fleets can share an etcd
	Repositories []puller.Source `yaml:"repositories"` // the same list in the same order on every host; at least one
	Etcd         Etcd            `yaml:"etcd"`         // no endpoints: embedded, for this node alone
	Agent        Loop            `yaml:"agent"`        // how often and how long
	Paths        Paths           `yaml:"paths"`        // where things are kept
	Secrets      Secrets         `yaml:"secrets"`      // with which keys encrypted files of the repository are opened
	Extensions   Extensions      `yaml:"extensions"`   // whose signatures count for actions of the repository

	Datastore datastore.Config `yaml:"datastore"` // of the fleet, where this host keeps it

	Root string `yaml:"-"` // below which everything is applied; default /
	file string // that was read
}

// Self is this host, as its configuration knows it.
type Self struct {
	render.Node `yaml:",inline"`

	// of the machine that the configuration is for, as /etc/machine-id has it: on another one, such as a copy of its disk,
	// pulls refuse to work. Nothing: of any
	MachineID string `yaml:"machineId"`
}

// Etcd says how the fleet's record is reached.
type Etcd struct {
	Endpoints    render.Strings `yaml:"endpoints"`    // URLs of its members
	Dir          string         `yaml:"dir"`          // of the embedded member; default: etcd in the state directory
	TLS          state.TLS      `yaml:"tls"`          // for https endpoints
	Operator     state.TLS      `yaml:"operator"`     // in place of TLS, for commands that people type
	Renew        bool           `yaml:"renew"`        // certificates of TLS and Operator: pullet join wrote them
	Username     string         `yaml:"username"`     // of a user of etcd
	PasswordFile string         `yaml:"passwordFile"` // that holds the user's password

	// of the first answer of endpoints, after which etcd counts as unreachable; default 5s
	Timeout render.Duration `yaml:"timeout"`
}

// Loop says how often and how long.
type Loop struct {
	Interval render.Duration `yaml:"interval"` // between pulls of the agent
	Splay    render.Duration `yaml:"splay"`    // at most so much is added to an interval, by chance
	Wait     render.Duration `yaml:"wait"`     // how long a pull waits in all
	Deadline render.Duration `yaml:"deadline"` // of a run, waits not counted
	Finish   render.Duration `yaml:"finish"`   // how long the running step may go on after pullet gets a signal to stop
	// Takeover is how long a new pullet has for its first pull, before the old one is put back; default three intervals,
	// 15 minutes at least
	Takeover render.Duration `yaml:"takeover"`
	// AllowRun says whose commands of pullet run this host runs. true: of whoever may write the fleet's record; a list: of
	// operators by the names in their certificates, where operators stands for each of them; default false.
	AllowRun render.AllowRun `yaml:"allowRun"`
	// PruneLimit is how many things that jobs with prune: true no longer declare one run removes; more are left until
	// pull --prune-all.
	PruneLimit int     `yaml:"pruneLimit"`
	Reports    Reports `yaml:"reports"` // of runs, with all that steps printed: they are in the state directory
	Logs       Logs    `yaml:"logs"`    // of failed runs: where they are sent
	Traces     Traces  `yaml:"traces"`  // of pulls: where they are sent
	Git        Git     `yaml:"git"`     // what one fetch from a git server may take

	// Listen is the address and the port where webhooks come to, and where metrics are read, such as 127.0.0.1:8642.
	// Without tls it is a loopback address. Nothing: the agent does not listen.
	Listen   string         `yaml:"listen"`
	TLS      Served         `yaml:"tls"`      // with which it listens
	Webhooks []webhook.Hook `yaml:"webhooks"` // who sends what
	Metrics  Metrics        `yaml:"metrics"`  // of this host, for Prometheus
}

// Git bounds what one fetch may take, of a state repository or of git.checkout. Nothing is the default, enough for a
// repository of 1 GB.
type Git struct {
	Memory  render.Size     `yaml:"memory"`  // of the process that reads what was fetched; default 1GiB
	Disk    render.Size     `yaml:"disk"`    // received; default 4GiB
	Objects int             `yaml:"objects"` // received; default 4000000
	Time    render.Duration `yaml:"time"`    // that it takes; default 10m
}

func (g Git) limits() gitremote.Limits {
	return gitremote.Limits{Memory: int64(g.Memory), Disk: int64(g.Disk), Objects: g.Objects, Time: g.Time.Std()}
}

// Reports says how many reports of runs a host keeps. The last one is kept whatever its size.
type Reports struct {
	Keep int         `yaml:"keep"` // how many
	Size render.Size `yaml:"size"` // of all together
}

// Logs says where the logs of failed runs are sent.
type Logs struct {
	// URL for the log of a failed run; {fleet}, {node}, {run} and {version} in it are replaced. Nothing: logs stay on
	// the host.
	Put         string `yaml:"put"`
	HeadersFile string `yaml:"headersFile"` // with headers of the request, one a line: "Name: value"; mode 0600
	// that holds a token, sent as "Authorization: Bearer TOKEN"; mode 0600
	TokenFile string `yaml:"tokenFile"`
	// certificates of the authority that signed the server's; nothing: those of the host
	CA      string          `yaml:"ca"`
	Timeout render.Duration `yaml:"timeout"` // how long all logs of one pull may take
}

// Paths are where a node keeps things.
type Paths struct {
	State    string `yaml:"state"`    // what pullet keeps for itself: for root only
	HostVars string `yaml:"hostVars"` // variables of this host, *.yaml: they override those of git
}

// Secrets says with which keys the host opens encrypted files of the repository.
type Secrets struct {
	// files with private keys of OpenSSH (ssh-ed25519, ssh-rsa) or age, without a passphrase; mode 0600. Default: the keys
	// of the host's SSH server
	Identities render.Strings `yaml:"identities"`
}

// Extensions says who may sign the executables of actions that a repository brings itself.
type Extensions struct {
	// SSH keys, as in ssh-keygen(1), ALLOWED SIGNERS, with the namespace pullet-extension. Nothing: this host runs no
	// extension whose manifest has a signature
	AllowedSigners string `yaml:"allowedSigners"`
}

// Default returns the configuration of a host that sets nothing.
func Default() Config {
	c, _ := DefaultBelow("/") // the one error is that of a directory
	return c
}

// DefaultBelow returns Default for the host with this root.
func DefaultBelow(root string) (Config, error) {
	c := Config{
		Fleet: "default", Root: root,
		Agent: Loop{
			Interval: render.Duration(5 * time.Minute), Splay: render.Duration(30 * time.Second),
			Wait: render.Duration(10 * time.Minute), Deadline: render.Duration(time.Hour),
			Finish:     render.Duration(5 * time.Minute),
			PruneLimit: apply.DefaultPruneLimit,
			Reports:    Reports{Keep: 50, Size: 50 << 20},
			Logs:       Logs{Timeout: render.Duration(10 * time.Second)},
			Traces:     Traces{Timeout: render.Duration(5 * time.Second)},
		},
	}
	return c, fillPaths(&c)
}

// ReadConfig reads a configuration file and, over it, the files of conf.d beside it in their order. The paths that they
// leave out are below root. Unknown keys are errors, and so are files that somebody else can write
// (*ownfile.RefusedError).
func ReadConfig(file, root string) (Config, error) {
	c, err := DefaultBelow(root)
	c.file = file
	if err != nil {
		return c, err
	}
	text, err := ownfile.Read(file)
	if errors.Is(err, fs.ErrNotExist) {
		return c, fmt.Errorf("there is no configuration %s: write one (see README.md), or name it with --config", file)
	}
	if err != nil {
		return c, err
	}
	if err := decodeConfig(file, text, &c); err != nil {
		return c, err
	}
	read := settings{{file, text}}
	dir := filepath.Join(filepath.Dir(file), "conf.d")
	dropIns, err := ownfile.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return c, err
	}
	for _, e := range dropIns {
		if ok := strings.HasSuffix(e.Name(), ".yaml") && !strings.HasPrefix(e.Name(), "."); !ok {
			continue
		}
		name := filepath.Join(dir, e.Name())
		text, err := ownfile.Read(name)
		if err != nil {
			return c, err
		}
		if err := decodeConfig(name, text, &c); err != nil {
			return c, err
		}
		read = append(read, setting{name, text})
	}
	if err := c.complete(read); err != nil {
		return c, err
	}
	return c, c.CheckFiles()
}

// decodeConfig reads one file of the configuration over what is there. One with comments alone says nothing.
func decodeConfig(file string, text []byte, c *Config) error {
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return render.DecodeFile(file, text, c)
		}
	}
	return nil
}

// complete fills in the defaults that depend on the host, and checks what is there.
func (c *Config) complete(read settings) error {
	if err := c.anchor(); err != nil {
		return err
	}
	if c.Node.Name == "" {
		host, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("node.name is not set and the host has no name: %w", err)
		}
		c.Node.Name = host
	}
	if err := fillPaths(c); err != nil { // what a file sets to "" is not set
		return err
	}
	return read.located(slices.Concat(wrongValues(c), c.checkEndpoints(), c.checkCleartext()))
}

// alone reports that the fleet's record is this node's own.
func (c Config) alone() bool { return len(c.Etcd.Endpoints) == 0 && c.Etcd.Dir == "" }

// store is how to open the fleet's record.
func (c Config) store() state.Config {
	dir := c.Etcd.Dir
	if dir == "" {
		dir = filepath.Join(c.Paths.State, "etcd")
	}
	return state.Config{
		Endpoints: c.Etcd.reached(), TLS: c.Etcd.TLS, Username: c.Etcd.Username, PasswordFile: c.Etcd.PasswordFile,
		Fleet: c.Fleet, Dir: dir, Timeout: time.Duration(c.Etcd.Timeout),
	}
}

// OpenStore opens the fleet's record as the configuration says, for people: with the certificate of an operator where
// there is one.
func (c Config) OpenStore(ctx context.Context) (*state.Store, error) {
	return state.Open(ctx, c.forPeople())
}

// OpenAnyFormat is OpenStore for who repairs the record: also where this pullet reads less than the fleet's minimum.
func OpenAnyFormat(c Config, ctx context.Context) (*state.Store, error) {
	of := c.forPeople()
	of.AnyFormat = true
	return state.Open(ctx, of)
}

func (c Config) forPeople() state.Config {
	out := c.store()
	if c.Etcd.Operator != (state.TLS{}) {
		out.TLS = c.Etcd.Operator
	}
	return out
}

// ReadStore is OpenStore for who only reads: it makes no record on a host that has none.
func (c Config) ReadStore(ctx context.Context) (*state.Store, error) {
	return state.OpenToRead(ctx, c.forPeople())
}

// Connect is a client of the fleet's own datastore, for people, which is asked nothing yet; nil: the fleet has none.
func Connect(c Config) (*clientv3.Client, error) {
	if !c.Etcd.Renew {
		return nil, nil
	}
	return state.Connect(c.forPeople())
}

// NoStore reports that the fleet's record is this host's own, and that no pull made it yet.
func (c Config) NoStore() bool { return c.store().Unmade() }
