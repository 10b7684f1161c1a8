package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// View is all that is shown of a host at one moment.
type View struct {
	Build        Build
	Record       Record
	Etcd         bool                         // it answers, as far as it is known
	Lease        time.Time                    // until when the host counts as alive; zero: unknown
	Reports      int                          // of runs, on disk
	ReportsSize  int64                        // of them, in bytes
	Free         uint64                       // bytes, where pullet keeps its things
	Certificates map[string]time.Time         // when they end, by the key of the configuration that names each
	Webhooks     map[string]map[string]uint64 // requests by hook and what became of them
}

// Build is the running pullet.
type Build struct{ Version, Go string }

// sample is one value of a family, with the values of its labels.
type sample struct {
	value  float64
	labels []string
}

func one(v float64, labels ...string) []sample { return []sample{{v, labels}} }

// since is a time as metrics have it: seconds since 1970. One that is not known is no sample.
func since(t time.Time, labels ...string) []sample {
	if t.IsZero() {
		return nil
	}
	return one(float64(t.UnixMilli())/1000, labels...)
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// collector shows a view to Prometheus' library.
type collector struct{ view func() View }

// Registry shows what view returns whenever it is asked.
func Registry(view func() View) *prometheus.Registry {
	out := prometheus.NewPedanticRegistry()
	out.MustRegister(collector{view})
	return out
}

func (collector) Describe(ch chan<- *prometheus.Desc) {
	for _, f := range families() {
		ch <- f.desc()
	}
}

func (f family) desc() *prometheus.Desc { return prometheus.NewDesc(f.name, f.help, f.labels, nil) }

// Collect shows each sample once: two with the same labels would spoil all others.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	view := c.view()
	for _, f := range families() {
		desc, shown := f.desc(), map[string]bool{}
		for _, s := range f.values(view) {
			key := ""
			for i := range s.labels {
				s.labels[i] = text(s.labels[i])
				key += s.labels[i] + "\n"
			}
			if shown[key] {
				continue
			}
			shown[key] = true
			ch <- prometheus.MustNewConstMetric(desc, f.kind, s.value, s.labels...)
		}
	}
}
