package metrics

import (
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// family is a metric: docs/monitoring.md has them all, held to this table by a test.
type family struct {
	name, help string
	kind       prometheus.ValueType
	labels     []string
	values     func(View) []sample
}

func families() []family {
	return slices.Concat(pullFamilies(), stepFamilies(), fleetFamilies(), hostFamilies())
}

const gauge, counter = prometheus.GaugeValue, prometheus.CounterValue

// ofLast shows something of the last pull; nothing where there was none.
func ofLast(values func(Pull) []sample) func(View) []sample {
	return func(v View) []sample {
		if v.Record.Last == nil {
			return nil
		}
		return values(*v.Record.Last)
	}
}

// each is a sample for each entry of a map, in order.
func each[V int | uint64 | float64](of map[string]V) (out []sample) {
	for _, name := range slices.Sorted(maps.Keys(of)) {
		out = append(out, sample{float64(of[name]), []string{name}})
	}
	return out
}

func pullFamilies() []family {
	return []family{
		{"pullet_pulls_total", "Pulls that ended, by what came of them. Kept when pullet ends.", counter, []string{"result"},
			func(v View) (out []sample) {
				for _, r := range results() {
					out = append(out, one(float64(v.Record.Pulls[string(r)]), string(r))...)
				}
				return out
			}},
		{"pullet_last_pull_timestamp_seconds", "When the last pull ended.", gauge, nil,
			ofLast(func(p Pull) []sample { return since(p.Ended) })},
		{"pullet_last_success_timestamp_seconds", "When the last pull ended that succeeded; 0: none did.", gauge, nil,
			func(v View) []sample {
				if v.Record.Success.IsZero() {
					return one(0)
				}
				return since(v.Record.Success)
			}},
		{"pullet_last_pull_result", "1 for what came of the last pull, 0 for the other results.", gauge, []string{"result"},
			ofLast(func(p Pull) (out []sample) {
				for _, r := range results() {
					out = append(out, one(truth(r == p.Result), string(r))...)
				}
				return out
			})},
		{"pullet_last_pull_phase_duration_seconds", "How long each phase of the last pull took.", gauge, []string{"phase"},
			ofLast(func(p Pull) []sample { return each(p.Phases) })},
	}
}

func stepFamilies() []family {
	return []family{
		{"pullet_steps_total", "Steps of pulls, by what became of them. Kept when pullet ends.", counter, []string{"outcome"},
			func(v View) []sample { return each(v.Record.Steps) }},
		{"pullet_drift_steps_total",
			"Steps that put back what something else had changed on the host. Kept when pullet ends.", counter, nil,
			func(v View) []sample { return one(float64(v.Record.Drift)) }},
		{"pullet_last_pull_steps", "Steps of the last pull, by what became of them.", gauge, []string{"outcome"},
			ofLast(func(p Pull) []sample { return each(p.Steps) })},
		{"pullet_last_pull_drift_steps", "Steps of the last pull that put back what something else had changed.", gauge, nil,
			ofLast(func(p Pull) []sample { return one(float64(p.Drift)) })},
	}
}

func (v *Version) info() []sample {
	if v == nil {
		return nil
	}
	return one(1, v.ID, v.Commit, v.Release)
}

func fleetFamilies() []family {
	version := []string{"version", "commit", "release"}
	return []family{
		{"pullet_version_info", "The version that the host runs.", gauge, version,
			ofLast(func(p Pull) []sample { return p.Running.info() })},
		{"pullet_fleet_version_info", "The version of the fleet, as the host read it last.", gauge, version,
			ofLast(func(p Pull) []sample { return p.Fleet.info() })},
		{"pullet_wait_start_timestamp_seconds",
			"Since when the host waits, by the kind of the gate. Absent while it waits for nothing.", gauge, []string{"kind"},
			func(v View) []sample {
				if v.Record.Waiting == nil {
					return nil
				}
				return since(v.Record.Waiting.Since, v.Record.Waiting.Kind)
			}},
		{"pullet_halted", "1 while the host waits because its group, or one that comes first, is halted.", gauge, nil,
			func(v View) []sample { return one(truth(v.Record.Waiting != nil && v.Record.Waiting.Halted)) }},
		{"pullet_lease_end_timestamp_seconds", "Until when the fleet takes the host for alive.", gauge, nil,
			func(v View) []sample { return since(v.Lease) }},
		{"pullet_etcd_up", "1 while the fleet's record answers, as the last pull and the lease know it.", gauge, nil,
			ofView(func(v View) []sample { return one(truth(v.Etcd)) })},
		{"pullet_etcd_answer_seconds", "How long an answer of etcd took in the last pull, in the mean.", gauge, nil,
			ofLast(func(p Pull) []sample {
				if p.Answer == 0 {
					return nil
				}
				return one(p.Answer)
			})},
		{"pullet_repository_up", "1 where the state repository answered the last pull.", gauge, []string{"repository"},
			ofRepositories(func(r Repository) float64 { return truth(r.Up) })},
		{"pullet_repository_answer_seconds",
			"How long the last pull listed the repository, and fetched what was new.", gauge, []string{"repository"},
			ofRepositories(func(r Repository) float64 { return r.Seconds })},
	}
}

// ofView shows something that is not known before the first pull.
func ofView(values func(View) []sample) func(View) []sample {
	return func(v View) []sample {
		if v.Record.Last == nil {
			return nil
		}
		return values(v)
	}
}

func ofRepositories(value func(Repository) float64) func(View) []sample {
	return ofLast(func(p Pull) (out []sample) {
		for _, r := range p.Repositories {
			out = append(out, one(value(r), r.Name)...)
		}
		return out
	})
}

func hostFamilies() []family {
	return []family{
		{"pullet_build_info", "The running pullet.", gauge, []string{"version", "goversion"},
			func(v View) []sample { return one(1, v.Build.Version, v.Build.Go) }},
		{"pullet_reports", "Reports of runs that the host keeps.", gauge, nil,
			func(v View) []sample { return one(float64(v.Reports)) }},
		{"pullet_reports_bytes", "Size of the reports that the host keeps.", gauge, nil,
			func(v View) []sample { return one(float64(v.ReportsSize)) }},
		{"pullet_state_free_bytes", "Room that is left where pullet keeps its things.", gauge, nil,
			func(v View) []sample { return one(float64(v.Free)) }},
		{"pullet_certificate_expiry_timestamp_seconds",
			"When a certificate ends, by the key of the configuration that names its file.", gauge, []string{"name"},
			func(v View) []sample { return ends(v.Certificates) }},
		{"pullet_webhook_requests_total",
			"Requests to webhooks since the agent began, by what became of them. Those to no webhook have no hook.", counter,
			[]string{"hook", "result"}, func(v View) []sample { return requests(v.Webhooks) }},
	}
}

func ends(of map[string]time.Time) (out []sample) {
	for _, name := range slices.Sorted(maps.Keys(of)) {
		out = append(out, since(of[name], name)...)
	}
	return out
}

func requests(of map[string]map[string]uint64) (out []sample) {
	for _, hook := range slices.Sorted(maps.Keys(of)) {
		for _, s := range each(of[hook]) {
			out = append(out, sample{s.value, []string{hook, s.labels[0]}})
		}
	}
	return out
}
