package agent

import (
	"context"
	"maps"
	"path/filepath"
	"time"

	"github.com/pullet/pullet/internal/durable"
	"github.com/pullet/pullet/internal/event"
	"github.com/pullet/pullet/state"
)

// The events of what a host is about to run out of.
const (
	certificateEnds = "pullet/certificate/ends"
	diskFills       = "pullet/disk/fills"
)

// LittleRoom is how much room a host should have where pullet keeps its things, in bytes.
const LittleRoom = 512 << 20

// nearEnd is something that the host is about to run out of.
type nearEnd struct {
	of   string // names it
	near bool
	name string // of the event
	data map[string]any
}

// nearEnds raises events for what this host is about to run out of: each once, until there is enough again.
func (p happenings) nearEnds(ctx context.Context, now time.Time) error {
	file := filepath.Join(p.config.Paths.State, "nearends.json")
	before, edges := event.ReadEdges(file), event.Edges{}
	for _, e := range append(p.certificatesNearEnd(now), p.diskNearEnd()...) {
		next, raises := before[e.of].Judge(e.near, now, 0)
		if e.near {
			edges[e.of] = next
		}
		if raises {
			told := state.Event{Name: e.name, Hosts: []string{p.config.Node.Name}, Data: e.data}
			if err := p.agent.keep(ctx, told); err != nil {
				return err
			}
		}
	}
	if maps.Equal(edges, before) {
		return nil
	}
	return edges.Save(file)
}

func (p happenings) certificatesNearEnd(now time.Time) (out []nearEnd) {
	for _, c := range certificates(&p.config) {
		ends, err := state.CertificateEnds(c.file)
		if err != nil { // connecting says so
			continue
		}
		out = append(out, nearEnd{
			"certificate " + c.file, ends.Sub(now) < state.Soon, certificateEnds,
			map[string]any{"file": c.file, "ends": ends.UTC().Format(time.RFC3339)},
		})
	}
	return out
}

// certificate is a file with one, and the key of the configuration that names it.
type certificate struct{ key, file string }

// certificates are those that this host shows, or believes.
func certificates(c *Config) (out []certificate) {
	for _, one := range []certificate{
		{"etcd.tls.cert", c.Etcd.TLS.Cert}, {"etcd.tls.ca", c.Etcd.TLS.CA}, {"etcd.operator.cert", c.Etcd.Operator.Cert},
		{"agent.tls.cert", c.Agent.TLS.Cert},
	} {
		if one.file != "" {
			out = append(out, one)
		}
	}
	return out
}

func (p happenings) diskNearEnd() []nearEnd {
	dir := p.config.Paths.State
	free, err := durable.Room(dir)
	if err != nil {
		return nil
	}
	data := map[string]any{"directory": dir, "freeMiB": int(free >> 20)}
	return []nearEnd{{"disk " + dir, free < LittleRoom, diskFills, data}}
}
