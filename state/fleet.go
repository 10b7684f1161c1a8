package state

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/internal/safetext"
)

// Node is a node's lasting record.
type Node struct {
	Name      string            `json:"name"`
	Labels    map[string]string `json:"labels,omitempty"`
	Role      string            `json:"role,omitempty"`
	Running   string            `json:"running,omitempty"` // the version under running_version
	FirstSeen time.Time         `json:"firstSeen"`
	LastSeen  time.Time         `json:"lastSeen"`
	Agent     string            `json:"agent"` // version of pullet
	// of the fleet's record that it reads; 0: the first. Where Unproven is set, it is the fleet's minimum
	Format   int      `json:"format,omitempty"`
	Unproven bool     `json:"-"`                  // the program may be put back: it made no pull here yet
	Boots    []string `json:"boots,omitempty"`    // earlier ones: none of them comes back
	RepoVars bool     `json:"repoVars,omitempty"` // it has no variables of its own beside the repository's
	// given at the first registration; a node that was decommissioned gets a new one
	UUID           string `json:"uuid,omitempty"`
	Decommissioned bool   `json:"decommissioned,omitempty"`
}

// Alive is the record on a node's lease: who runs under its name.
type Alive struct {
	Instance string    `json:"instance"`          // of the process
	Owner    string    `json:"owner"`             // digest of the state directory's secret
	Host     string    `json:"host,omitempty"`    // as the host calls itself, for people
	Machine  string    `json:"machine,omitempty"` // its machine id
	Dir      uint64    `json:"dir,omitempty"`     // the inode of its state directory: a copy has another one
	Boot     string    `json:"boot,omitempty"`    // the boot it is in; empty where the fleet's record is this host's own
	Booted   time.Time `json:"booted,omitzero"`   // when that began, by its clock, for people

	Lasting bool                 `json:"-"` // its lease outlives the process, and serves the next one
	Up      func() time.Duration `json:"-"` // since that boot
	Every   time.Duration        `json:"-"` // how often it pulls
}

// Status is what is said of a node in one category.
type Status struct {
	Version string    `json:"version"`
	Release string    `json:"release,omitempty"`
	Run     string    `json:"run,omitempty"`
	Reason  string    `json:"reason,omitempty"`
	Remedy            // what helps
	Host    bool      `json:"host,omitempty"`    // it failed by a fault of the host, not of the commit
	Kind    WaitKind  `json:"kind,omitempty"`    // what it waits for
	Gate    string    `json:"gate,omitempty"`    // at which it waits
	Halt    string    `json:"halt,omitempty"`    // the group whose halt it waits for
	Holders []Holder  `json:"holders,omitempty"` // for whom it waits
	Depends []string  `json:"depends,omitzero"`  // the groups that must be through before its own; absent: not known
	Ahead   string    `json:"ahead,omitempty"`   // the node that comes before it in a queue
	Frees   bool      `json:"frees,omitempty"`   // a place is freed when its holder is lost
	Until   time.Time `json:"until,omitzero"`    // when the wait is over, by the node's clock; zero: nobody knows
	Parked  bool      `json:"parked,omitempty"`  // it gave its slot back while it waits for others in mid-run
	Log     string    `json:"log,omitempty"`     // where the whole log of the run is, when it was sent somewhere
	// the revision of etcd at which it was said, where the log was added since
	Said    int64     `json:"said,omitempty"`
	Digest  *Digest   `json:"digest,omitempty"`  // of the run, with the configured state
	Unknown string    `json:"unknown,omitempty"` // the targeted step because of whose unknown result it failed
	Step    string    `json:"step,omitempty"`    // that has run for a while, with its place in the run and what it does
	Time    time.Time `json:"time"`              // by the node's clock
	Since   time.Time `json:"since,omitzero"`    // when it began to wait at this gate, over all of its pulls
}

// Holder is a node that others wait for.
type Holder struct {
	Node   string    `json:"node"`
	Step   string    `json:"step,omitempty"` // the last one that it started
	Since  time.Time `json:"since,omitzero"`
	Alive  bool      `json:"alive"`
	Seen   bool      `json:"seen,omitempty"`   // it pulled once, also where Since is not known
	Away   bool      `json:"away,omitempty"`   // it holds no place, and counts because it does not answer
	Off    string    `json:"off,omitempty"`    // the switch that keeps it where it is: "host web1", "role web", "global"
	Failed bool      `json:"failed,omitempty"` // at the version that others wait for
	Parked bool      `json:"parked,omitempty"` // it waits in mid-run of that version
	Gone   bool      `json:"gone,omitempty"`   // an operator gave it up

	Election string `json:"election,omitempty"` // that it was chosen in, for whose result others wait
	// steps of that election that it started: while one stands it keeps its place
	Took []string `json:"took,omitempty"`
}

// Categories and states of a status: a node is in exactly one state of each category.
const (
	Provisioned = "provisioned"
	Configured  = "configured"
	Validated   = "validated"
	Rollout     = "rollout"

	Running = "running"
	Success = "success"
	Failed  = "failed"
	Pending = "pending"
)

// Categories lists the categories in the order in which a node goes through them.
func Categories() []string { return []string{Provisioned, Configured, Validated, Rollout} }

var states = [...]string{Running, Success, Failed, Pending}

// Current is the fleet's version, nil when none was ever set, and the revision at which it was. One that cannot be read
// is a *BadRecordError.
func (s *Versions) Current(ctx context.Context) (*Version, int64, error) {
	v, rev, err := get[Version](ctx, s.store, s.CurrentKey())
	if rev == 0 || err != nil {
		return nil, rev, err
	}
	return &v, rev, nil
}

// CurrentKey is the key of the fleet's version, for watches and comparisons.
func (s *Versions) CurrentKey() string { return s.store.key("current_version") }

// DecommissionedKey is there while a node is given up: it stops to count also where rosters name it.
func (s *Nodes) DecommissionedKey(node string) string { return s.store.key("decommissioned", node) }

// Key is the key of a node's lasting record.
func (s *Nodes) Key(node string) string { return s.store.key("node", node) }

// Ops move a node to a state of a category, out of every other one.
func (s *Statuses) Ops(node, category, state string, st Status) []clientv3.Op {
	st.Reason, st.Holders = safetext.Cut(st.Reason, maxReason), st.Holders[:min(len(st.Holders), maxList)]
	ops := []clientv3.Op{Put(s.key(category, state, node), st)}
	for _, other := range states {
		if other != state {
			ops = append(ops, clientv3.OpDelete(s.key(category, other, node)))
		}
	}
	return ops
}

// Set moves a node to a state of a category, whoever says so. A node says it of itself with Tell.
func (s *Statuses) Set(ctx context.Context, node, category, state string, st Status) error {
	_, err := s.store.Client.Txn(ctx).Then(s.Ops(node, category, state, st)...).Commit()
	return err
}

// Change is Set for those who looked before, at a revision: it is an error when the state was changed
// since.
func (s *Statuses) Change(ctx context.Context, node, category, state string, st Status, seen int64) error {
	var same []clientv3.Cmp
	for _, one := range states {
		same = append(same, clientv3.Compare(clientv3.ModRevision(s.key(category, one, node)), "<", seen+1))
	}
	done, err := s.store.Client.Txn(ctx).If(same...).Then(s.Ops(node, category, state, st)...).Commit()
	if err == nil && !done.Succeeded {
		err = &MovedError{What: "the state " + category + " of " + node}
	}
	return err
}

// RunningOps move a node's leaf below running_version to a version.
func (s *Statuses) RunningOps(p *Presence, to string) []clientv3.Op {
	n := p.Node
	from := n.Running
	n.Running = to
	ops := []clientv3.Op{
		clientv3.OpPut(s.RunningKey(to, n.Name), time.Now().UTC().Format(time.RFC3339)), Put(s.store.Nodes.Key(n.Name), n),
	}
	if from != "" && from != to {
		ops = append(ops, clientv3.OpDelete(s.RunningKey(from, n.Name)))
	}
	return ops
}

// RunningKey is the leaf that says that a node runs a version.
func (s *Statuses) RunningKey(version, node string) string {
	return s.store.key("running_version", version, node)
}

// Get is a node's status in a state of a category; the zero Status where it is in another state, or cannot be
// read.
func (s *Statuses) Get(ctx context.Context, node, category, state string) (Status, error) {
	st, _, err := get[Status](ctx, s.store, s.key(category, state, node))
	return st, unlessBad(err)
}
