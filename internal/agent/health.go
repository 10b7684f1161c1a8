package agent

import (
	"errors"
	"net/http"
	"slices"

	"github.com/pullet/pullet/internal/event/webhook"
	"github.com/pullet/pullet/internal/metrics"
)

// mayRead says who reads metrics: whoever has the token, and with none whoever is on this host; nil: nobody.
func (m *monitoring) mayRead() func(*http.Request) bool {
	file := m.config.Agent.Metrics.TokenFile
	switch {
	case file != "":
		return func(r *http.Request) bool {
			has, err := hasToken(r.Header, file)
			if err != nil {
				m.logger.WithError(err).Warn("agent.metrics: nobody reads metrics")
			}
			return has
		}
	case m.config.Agent.loopback():
		return func(r *http.Request) bool { return !forwarded(r) }
	}
	return nil
}

// forwarded reports a request that a server on this host passed on for somebody else.
func forwarded(r *http.Request) bool {
	return slices.ContainsFunc([]string{"Forwarded", "X-Forwarded-For", "X-Real-Ip", "Via"}, func(name string) bool {
		return r.Header.Get(name) != ""
	})
}

// hasToken reports that a request has a token of a file, as the file is now.
func hasToken(header http.Header, file string) (bool, error) {
	text, err := readOwnSecret(file)
	if err != nil {
		return false, err
	}
	return webhook.HasToken(header, file, text)
}

// healthy says whether the loop goes on: an agent that hangs may well answer requests.
func (m *monitoring) healthy() []metrics.Check {
	var hangs error
	if !m.pulse.atWork() {
		hangs = errors.New("nothing went on for longer than it may take: journalctl -u pullet-agent")
	}
	return []metrics.Check{{Name: "loop", Why: hangs}}
}

// ready says whether the host does what the fleet asks for.
func (m *monitoring) ready() []metrics.Check {
	pull, etcd := metrics.Check{Name: "pull"}, metrics.Check{Name: "etcd"}
	switch {
	case !m.pulled.Load():
		pull.Why, etcd.Why = errors.New("the first pull has not ended"), errors.New("not known before that")
	case !m.etcdUp(m.record()):
		etcd.Why = errors.New("it did not answer the last pull, or the lease of this host ended: pullet doctor")
	}
	return append(m.healthy(), pull, etcd)
}
