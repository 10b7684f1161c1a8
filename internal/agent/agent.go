package agent

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/gitremote"
	"github.com/pullet/pullet/internal/program"
	"github.com/pullet/pullet/puller"
)

// Agent is a node at work. Its methods are called by one goroutine at a time.
type Agent struct {
	*self
	// Live receives what commands of steps print, as it comes; nil: nobody watches. It is set before the first pull.
	Live func(step, line string)
	// EndNow, once closed, ends the commands of a pull that a signal stopped and that finishes its step. It is set before
	// the first pull; nil: the time of the configuration alone bounds that.
	EndNow <-chan struct{}
	// Program is pullet as it is installed here. It is set before the first pull; nil: nothing is done when somebody
	// replaces it.
	Program *program.Installed

	connection *connection
	versions   *versions
	pulse      *pulse
	size       *fleetSize
	away       *outage         // of the fleet's record, as the loop says it
	answering  *answering      // of events
	abandoned  apply.Abandoned // what hangs since an earlier pull
	checks     []recheck       // of services, between two pulls
	triggers   *triggers       // the same; nil: there are none
	searches   *searches       // for commits that were announced
	monitoring *monitoring
}

// self is what an agent knows of itself before it pulls. It does not change.
type self struct {
	config   Config
	build    string // the version of pullet
	instance string // of this process
	dir      uint64 // the inode of its state directory
	logger   *logrus.Entry
	outside  Outside
}

// New prepares a node's agent. It makes the state directory and checks the repositories' settings; nothing is fetched
// yet.
func New(c Config, build string, log *logrus.Entry) (*Agent, error) {
	if err := os.MkdirAll(c.Paths.State, 0o700); err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	p, err := puller.Open(repositoriesDir(c), c.Repositories, c.Agent.Git.limits(), log)
	if err != nil {
		return nil, err
	}
	return NewIn(outside(c, p), c, build, log)
}

// NewIn is New for an agent with this outside. The state directory exists.
func NewIn(o Outside, c Config, build string, log *logrus.Entry) (*Agent, error) {
	dir, err := o.Host.Inode(c.Paths.State)
	if err != nil {
		return nil, err
	}
	me := &self{config: c, outside: o, dir: dir, build: build, instance: randomID(), logger: log}
	record := &connection{self: me}
	out := &Agent{
		self: me, connection: record, versions: &versions{self: me},
		pulse: newPulse(), size: &fleetSize{}, away: &outage{log: log},
		answering:  &answering{pulls: make(chan struct{}, 1)},
		searches:   &searches{self: me, connection: record, of: map[string]*search{}},
		monitoring: &monitoring{self: me, connection: record},
	}
	out.monitoring.pulse, out.monitoring.away = out.pulse, out.away
	return out, nil
}

// Close lets go of the store and the repositories.
func (a *Agent) Close() error {
	return errors.Join(a.connection.drop(), a.outside.Repositories.Close())
}

// host is what actions work on.
func (a *Agent) host(version string) *apply.Host {
	env := map[string]string{"PULLET_NODE": a.config.Node.Name, "PULLET_VERSION": version}
	backups := filepath.Join(a.config.Paths.State, "backups")
	git := gitremote.Client{
		Scratch: filepath.Join(a.config.Paths.State, "checkouts"),
		Limits:  a.config.Agent.Git.limits(),
	}
	finish := apply.Finish{Within: a.config.Agent.Finish.Std(), Now: a.EndNow}
	return &apply.Host{
		Root:      a.config.Root,
		Finish:    finish,
		Env:       env,
		Backups:   backups,
		Notes:     a.notes(),
		Git:       git,
		Boot:      a.outside.Host.Boot,
		Leaving:   apply.Leaving,
		Abandoned: &a.abandoned,
		Live:      a.Live,
		Emit:      a.emits(nil),
		Bounds:    a.pulse.during,
	}
}

// notes is where commands are noted while they run.
func (s *self) notes() string { return filepath.Join(s.config.Paths.State, "commands") }

// runID names a run: its time, so that names sort, and some chance.
func runID() string { return time.Now().UTC().Format("20060102T150405Z") + "-" + randomID()[:6] }

// randomID is 16 random hexadecimal digits.
func randomID() string {
	b := make([]byte, 8)
	rand.Read(b) // never fails: crypto/rand ends the program instead
	return hex.EncodeToString(b)
}

func repositoriesDir(c Config) string { return filepath.Join(c.Paths.State, "repositories") }

// Received is how many bytes of the repositories came so far, while a pull fetches them. Anybody may ask meanwhile.
func Received(c Config) int64 { return puller.Received(repositoriesDir(c)) }
