package simulation

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/sirupsen/logrus"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/proc"
	"github.com/pullet/pullet/internal/agent"
	"github.com/pullet/pullet/internal/etcdmodel"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/puller"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// What becomes of a step.
const (
	skipped = "skipped"
	failed  = "failed"
)

// work runs the product's agent: its loop, or pull after pull as cron does.
func (p *process) work() {
	p.since = time.Now()
	for p.ctx.Err() == nil {
		began := time.Now()
		a, err := agent.NewIn(p.outside(), p.config(), "simulation", p.journal())
		p.fleet.must(err)
		if p.loop {
			err = a.Loop(p.ctx, agent.Observer{Waiting: p.waits, Begin: func(apply.Begun) {}, Step: p.reported, Pulled: p.pulled})
		} else {
			p.pulled(a.Pull(p.ctx, agent.Options{Wait: p.wait, Waiting: p.waits, Watch: p.reported}))
		}
		_ = a.Close() // its connection may be what failed
		if p.loop && err != nil {
			return
		}
		_ = p.sleep(p.ctx, max(0, p.interval+p.upTo(10*time.Second)-time.Since(began)))
	}
}

// config is the host's.
func (p *process) config() agent.Config {
	c := agent.Default()
	c.Node.Node = render.Node{Name: p.name, Labels: map[string]string{"role": p.role}}
	c.Fleet, c.Root = "f", filepath.Join(p.fleet.disks, "root")
	c.Datastore.Dir = filepath.Join(p.fleet.disks, "datastore")
	c.Etcd.Endpoints = []string{"simulation"}
	c.Repositories = []puller.Source{{Name: repositoryName}}
	c.Paths = agent.Paths{State: p.disk(), HostVars: filepath.Join(c.Root, "vars.d")}
	c.Agent.Interval, c.Agent.Splay = render.Duration(p.interval), render.Duration(10*time.Second)
	c.Agent.Reports.Keep = 1
	return c
}

func (h *host) disk() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.state
}

// outside is what the agent has around it.
func (p *process) outside() agent.Outside {
	m := p.hardware()
	return agent.Outside{
		Record: p.record, Repositories: repositories{p}, Actions: p.actions(), Chance: p.some,
		Host: agent.Machine{
			ID: func() string { return m.id }, Boot: fmt.Sprint(p.class, " ", m.boots), Up: func() time.Duration { return time.Since(m.booted) },
			Inode: func(string) (uint64, error) { return m.dir, nil }, Facts: func() render.Facts { return render.Facts{} }, Orphans: p.orphan, Still: true,
		},
	}
}

func (h *host) hardware() machine {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.machine
}

// some is a time of whole microseconds.
func (p *process) some(most time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Duration(p.chance.Int64N(max(1, int64(most/time.Microsecond)))) * time.Microsecond
}

func (p *process) drawn() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.chance.Float64()
}

// orphan is the command of a process that was killed, while it runs.
func (p *process) orphan(string) error {
	if time.Now().Before(p.orphaned()) {
		return &apply.OrphanError{ID: proc.ID{PID: 1}}
	}
	return nil
}

// record opens the fleet's record.
func (p *process) record(ctx context.Context, c state.Config) (*state.Store, error) {
	if err := p.arrow(); err != nil {
		return nil, err
	}
	n := p.fleet.c.Connect(p.name)
	p.mu.Lock()
	p.lines = append(p.lines, n)
	cut, killed := p.cut, p.killed
	p.mu.Unlock()
	if n.Inflict(etcdmodel.Faults{Cut: cut}); killed {
		n.Kill()
	}
	api := n.Client()
	s := state.Over(api, c.Fleet, p.fleet.clock)
	api.KV = clientv3.NewKVFromKVClient(&arrows{KVClient: n.KV(), p: p, store: s}, nil)
	api.Lease = &leaseArrows{Lease: api.Lease, p: p}
	return s, s.Explain(state.Greet(ctx, s, c.Node, 5*time.Second))
}

// learns notes what the host knows from an answer: that it registered, or made a claim.
func (p *process) learns(r *pb.TxnRequest, answer *pb.TxnResponse) {
	ops := r.Failure
	if answer.Succeeded {
		ops = r.Success
	}
	for _, op := range ops {
		put := op.GetRequestPut()
		if put == nil {
			continue
		}
		switch string(put.Key) {
		case prefix + "alive/" + p.name:
			p.fleet.record(event{host: p.host, node: p.name, what: "joined", fence: answer.Header.Revision})
		case prefix + "claimed/" + p.name:
			p.fleet.record(event{host: p.host, node: p.name, what: "claimed", fence: answer.Header.Revision})
		}
	}
}

// waits sees to it that a wait says for what.
func (p *process) waits(w *lock.Wait) {
	if w.Gate == "" || w.Reason == "" || w.Clear == "" {
		p.fleet.breaks("%s waits and does not say for what: %+v", p.name, w)
	}
}

// pulled sees what came of a pull: where an upgrade failed, and the pull did not, the fleet knows (I8). The loop says
// itself that etcd is away, so it counts for single pulls.
func (p *process) pulled(out *agent.Outcome, err error) {
	failed := !p.loop && err == nil && p.ctx.Err() == nil && out.Upgrade && out.Report != nil && out.Report.Failed()
	if failed && !p.fleet.told(p.name, p.since) {
		p.fleet.breaks("I8: %s failed (%s), and the fleet does not know", p.name, out.Report.Why())
	}
	p.since = time.Now()
	if *oneSeed >= 0 && p.ctx.Err() == nil {
		what := fmt.Sprint("pulled: ", err)
		if out != nil {
			what += fmt.Sprintf(", exit %d, version %v, wait %v, refused %v, failures %v, warnings %v", out.ExitCode(), out.Version, out.Wait, out.Refused, out.Failures, out.Warnings)
			if out.Report != nil {
				what += ", " + out.Report.Why() + " " + out.Report.Stopped
			}
		}
		p.fleet.record(event{node: p.name, what: what})
	}
}

// journal is where the agent logs.
func (p *process) journal() *logrus.Entry {
	log := logrus.New()
	log.SetOutput(io.Discard)
	return logrus.NewEntry(log)
}
