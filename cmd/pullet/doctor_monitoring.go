package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/pullet/pullet/internal/agent"
)

// monitoring checks what a monitoring system reads of this host, and where webhooks come in.
func (a doctorCmd) monitoring(c agent.Config) (found []finding) {
	if file := c.Agent.Metrics.Textfile; file != "" {
		found = append(found, textfileFound(file))
	}
	if c.Agent.Listen != "" {
		found = append(found, a.listens(c))
	}
	return found
}

// textfileFound checks the file for node exporter.
func textfileFound(file string) finding {
	if _, err := os.Stat(filepath.Dir(file)); err != nil {
		do := "install prometheus-node-exporter, or make the directory"
		return finding{"monitoring", warn, "agent.metrics.textfile: " + err.Error(), do}
	}
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return finding{Check: "monitoring", State: fine, What: file + " is not there yet: the next pull writes it"}
	case err != nil:
		return finding{"monitoring", warn, "agent.metrics.textfile: " + err.Error(), ""}
	case !info.Mode().IsRegular():
		return finding{"monitoring", warn, "agent.metrics.textfile: " + file + " is not a file", "remove it"}
	}
	what := fmt.Sprintf("%s was written %s ago", file, ago(info.ModTime()))
	if time.Since(info.ModTime()) > oldTextfile {
		return finding{"monitoring", warn, what, "each pull writes it: pullet history shows the last ones"}
	}
	return finding{Check: "monitoring", State: fine, What: what}
}

// oldTextfile is how old a textfile is that no pull writes any more.
const oldTextfile = 25 * time.Hour

// listens checks that the agent can listen, and does.
func (a doctorCmd) listens(c agent.Config) finding {
	at := c.Agent.Listen
	node, err := agent.New(c, build().Version, a.logger())
	if err == nil {
		err = errors.Join(node.CanListen(at), node.Close())
	}
	if err != nil {
		return finding{"monitoring", bad, err.Error(), "until this is fixed the agent does not start"}
	}
	conn, err := net.DialTimeout("tcp", at, time.Second)
	if err != nil {
		return finding{"monitoring", warn, "agent.listen: nothing answers at " + at + ": " + err.Error(),
			"only the agent listens there: systemctl enable --now pullet-agent"}
	}
	conn.Close() // nothing was written
	return finding{Check: "monitoring", State: fine, What: "something answers at " + at + ", where the agent listens"}
}
