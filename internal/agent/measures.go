package agent

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pullet/pullet/internal/durable"
	"github.com/pullet/pullet/internal/event/webhook"
	"github.com/pullet/pullet/internal/metrics"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/state"
)

// measures keeps what monitoring is shown of a pull, where the configuration wants that.
type measures struct{ *pull }

// monitoring is what an agent knows of itself between pulls, for who asks it.
type monitoring struct {
	*self
	connection *connection
	pulse      *pulse
	away       *outage

	mu     sync.Mutex  // of who writes the record: steps wait side by side
	waited atomic.Bool // the wait on record is over, and the pull goes on
	pulled atomic.Bool // a pull was made by this process
	hooks  atomic.Pointer[webhook.Handler]
}

// monitored reports that somebody reads metrics.
func (s *self) monitored() bool {
	return s.config.Agent.Listen != "" || s.config.Agent.Metrics.Textfile != ""
}

// metricsFile is where counts outlive processes.
func (s *self) metricsFile() string { return filepath.Join(s.config.Paths.State, "metrics.json") }

// keep keeps a pull that came to its end. It warns of what cannot be written: nothing fails for it.
func (m measures) keep(ctx context.Context, err error) {
	if !m.monitored() || ctx.Err() != nil { // one that was stopped says nothing of the host
		return
	}
	m.agent.monitoring.mu.Lock()
	defer m.agent.monitoring.mu.Unlock()
	record, damaged := metrics.Load(m.metricsFile())
	if damaged != nil {
		m.out.warn(fmt.Errorf("the counts of metrics begin anew: %w", damaged))
	}
	m.write(record.With(measured(m.out, m.beside(err))), m.out.warn)
	m.agent.monitoring.pulled.Store(true)
	m.agent.monitoring.waited.Store(false)
}

func (m measures) beside(err error) beside {
	b := beside{
		ended: time.Now(), err: err, sources: m.config.Repositories, running: m.local.Running, fleet: m.current,
		etcd: m.store != nil && !m.silent || m.wentBack,
	}
	if m.store != nil {
		b.answer = m.store.AnswerTime()
	}
	if m.presence != nil {
		b.lease = b.ended.Add(m.presence.Left())
	}
	return b
}

// awaits keeps a wait that begins: a host that waits for long shows it.
func (m measures) awaits(w *lock.Wait) {
	if !m.monitored() {
		return
	}
	m.agent.monitoring.mu.Lock()
	defer m.agent.monitoring.mu.Unlock()
	record, err := metrics.Load(m.metricsFile()) // the end of the pull says what is wrong with it
	if wait := waitOf(w, time.Now()); err == nil && record.Begins(wait) {
		m.write(record.WithWait(wait), func(errs ...error) { m.log.Warn(errs[0]) })
	}
	m.agent.monitoring.waited.Store(false)
}

// write writes the record, and the file for node exporter.
func (m measures) write(r metrics.Record, warn func(...error)) {
	if err := r.Save(m.metricsFile()); err != nil {
		warn(fmt.Errorf("the counts of metrics are not kept: %w", err))
	}
	if file := m.config.Agent.Metrics.Textfile; file != "" {
		if err := metrics.WriteTextfile(file, m.agent.monitoring.view(r)); err != nil {
			warn(err)
		}
	}
}

// watched is what is shown to who asks: what pulls left on disk, and how it is now. It asks nobody.
func (m *monitoring) watched() metrics.View {
	v := m.view(m.record())
	v.Etcd = m.etcdUp(v.Record)
	if alive := m.connection.alive(time.Now()); !alive.IsZero() {
		v.Lease = alive
	}
	return v
}

// record is what pulls left on disk, without a wait that is over.
func (m *monitoring) record() metrics.Record {
	record, err := metrics.Load(m.metricsFile())
	if err != nil {
		m.logger.WithError(err).Debug("metrics")
	}
	if m.waited.Load() {
		record = record.WithWait(nil)
	}
	return record
}

// etcdUp reports that etcd answers, as the last pull and the lease know it.
func (m *monitoring) etcdUp(r metrics.Record) bool {
	now := time.Now()
	alive := m.connection.alive(now)
	return r.Last != nil && r.Last.Etcd && !m.away.lasts() && (alive.IsZero() || now.Before(alive))
}

// view is all that is shown of a record.
func (m *monitoring) view(r metrics.Record) metrics.View {
	v := metrics.View{
		Build: metrics.Build{Version: m.build, Go: runtime.Version()}, Record: r, Certificates: map[string]time.Time{},
	}
	if last := r.Last; last != nil {
		v.Etcd, v.Lease = last.Etcd, last.Lease
	}
	reports, _ := state.Reports(m.config.Paths.State) // what cannot be listed is not counted, and the next pull says why
	for _, file := range reports {
		v.Reports++
		v.ReportsSize += file.Size
	}
	v.Free, _ = durable.Room(m.config.Paths.State) // as above
	for _, c := range certificates(&m.config) {
		if ends, err := state.CertificateEnds(c.file); err == nil { // who uses it says what is wrong with it
			v.Certificates[c.key] = ends
		}
	}
	if hooks := m.hooks.Load(); hooks != nil {
		v.Webhooks = hooks.Counts()
	}
	return v
}
