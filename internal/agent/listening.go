package agent

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/pullet/pullet/internal/event/webhook"
	"github.com/pullet/pullet/internal/metrics"
	"github.com/pullet/pullet/puller"
)

// Served are the files of the certificate with which an agent listens. They are read again when they change.
type Served struct {
	Cert string `yaml:"cert"` // certificate of this host, and those between it and its authority
	Key  string `yaml:"key"`  // private key; mode 0600
}

// Metrics says how Prometheus reads what there is to see of this host: at /metrics of agent.listen, or in a file.
type Metrics struct {
	// TokenFile holds the token that readers of /metrics send, as "Authorization: Bearer TOKEN" or as the password of
	// basic authentication. A line is a token and each counts; mode 0600. Nothing: on a loopback address whoever is on the
	// host reads them, and on another one nobody.
	TokenFile string `yaml:"tokenFile"`
	// Textfile is written behind each pull, for the textfile collector of node exporter, such as
	// /var/lib/prometheus/node-exporter/pullet.prom. Nothing: none.
	Textfile string `yaml:"textfile"`
}

// checkListen is what is wrong with where the agent listens, and with what it takes there.
func (l Loop) checkListen(repositories []puller.Source) error {
	if err := metrics.CheckTextfile(l.Metrics.Textfile); err != nil {
		return fmt.Errorf("agent.metrics.textfile: %w", err)
	}
	if l.Listen == "" {
		if len(l.Webhooks) > 0 || l.TLS != (Served{}) {
			return errors.New("agent.listen is missing: where webhooks come to, such as 127.0.0.1:8642")
		}
		if l.Metrics.TokenFile != "" {
			return errors.New("agent.listen is missing: where metrics are read, such as 127.0.0.1:8642")
		}
		return nil
	}
	if _, _, err := net.SplitHostPort(l.Listen); err != nil {
		return fmt.Errorf("agent.listen: %q is not an address with a port, such as 127.0.0.1:8642", l.Listen)
	}
	if (l.TLS.Cert == "") != (l.TLS.Key == "") {
		return errors.New("agent.tls: cert and key belong together")
	}
	if l.TLS.Cert == "" && !l.loopback() {
		return fmt.Errorf("agent.listen: %s can be reached from elsewhere: give agent.tls, or listen on 127.0.0.1 behind a "+
			"server that speaks https", l.Listen)
	}
	var names []string
	for _, source := range repositories {
		names = append(names, source.Name)
	}
	if err := webhook.Check(l.Webhooks, names); err != nil {
		return fmt.Errorf("agent.webhooks: %w", err)
	}
	return nil
}

// loopback reports that only this host reaches where the agent listens.
func (l Loop) loopback() bool {
	host, _, err := net.SplitHostPort(l.Listen)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}
