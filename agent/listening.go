package agent

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/pullet/pullet/event/webhook"
	"github.com/pullet/pullet/puller"
)

// Served are the files of the certificate with which an agent listens. They are read again when they change.
type Served struct {
	Cert string `yaml:"cert"` // certificate of this host, and those between it and its authority
	Key  string `yaml:"key"`  // private key; mode 0600
}

// checkListen is what is wrong with where the agent listens, and with what it takes there.
func (l Loop) checkListen(repositories []puller.Source) error {
	if l.Listen == "" {
		if len(l.Webhooks) > 0 || l.TLS != (Served{}) {
			return errors.New("agent.listen is missing: where webhooks come to, such as 127.0.0.1:8642")
		}
		return nil
	}
	host, _, err := net.SplitHostPort(l.Listen)
	if err != nil {
		return fmt.Errorf("agent.listen: %q is no address with a port, such as 127.0.0.1:8642", l.Listen)
	}
	if (l.TLS.Cert == "") != (l.TLS.Key == "") {
		return errors.New("agent.tls: cert and key belong together")
	}
	if ip, err := netip.ParseAddr(host); l.TLS.Cert == "" && (err != nil || !ip.IsLoopback()) {
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
