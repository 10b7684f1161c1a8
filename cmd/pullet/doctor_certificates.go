package main

import (
	"fmt"
	"os"
	"time"

	"github.com/pullet/pullet/internal/agent"
	"github.com/pullet/pullet/state"
)

// certificates looks when those with which this host connects to etcd end, and what it believes.
func certificates(c agent.Config, now time.Time) (found []finding) {
	do := "have it renewed"
	if c.Etcd.Renew {
		do = "a pull renews it while the datastore serves; once it ended: pullet fleet invite " + c.Node.Name
	}
	for _, file := range []string{c.Etcd.TLS.Cert, c.Etcd.TLS.CA, c.Etcd.Operator.Cert} {
		if file == "" {
			continue
		}
		until, err := state.CertificateEnds(file)
		switch left := until.Sub(now); {
		case err != nil:
			found = append(found, finding{"certificates", bad, err.Error(), ""})
		case left < 0:
			found = append(found, finding{"certificates", bad, file + " ended " + until.Local().Format(time.DateTime), do})
		case left < state.Soon:
			what := fmt.Sprintf("%s ends in %d days, %s", file, int(left.Hours()/24), until.Local().Format(time.DateTime))
			found = append(found, finding{"certificates", warn, what, do})
		}
	}
	if _, err := os.Stat(c.Etcd.TLS.Cert); len(found) == 0 && err == nil {
		found = append(found, finding{Check: "certificates", State: fine, What: "none ends within 14 days"})
	}
	return found
}
