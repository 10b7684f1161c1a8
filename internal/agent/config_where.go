package agent

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/pullet/pullet/internal/lazyregexp"
	"github.com/pullet/pullet/internal/safetext"
	"github.com/pullet/pullet/render"
)

// wrongValues are what is wrong with values, each beginning with its key.
func wrongValues(c *Config) (errs []error) {
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if !safetext.Name(c.Node.Name) {
		wrong("node.name %q: use letters, digits, dots, dashes and underscores", c.Node.Name)
	}
	if !safetext.Name(c.Fleet) {
		wrong("fleet %q: use letters, digits, dots, dashes and underscores", c.Fleet)
	}
	if err := safetext.Labels(c.Node.Labels); err != nil {
		wrong("node.labels: %w", err)
	}
	if len(c.Etcd.Endpoints) > 0 && c.Etcd.Dir != "" {
		wrong("etcd.endpoints and etcd.dir exclude each other: dir is for an embedded member")
	}
	if c.Agent.PruneLimit < 1 {
		wrong("agent.pruneLimit: %d is not a number of things from 1 on; what is pruned is said by the jobs",
			c.Agent.PruneLimit)
	}
	if c.Agent.Reports.Keep < 1 {
		wrong("agent.reports.keep: %d is not a number of reports from 1 on", c.Agent.Reports.Keep)
	}
	if len(c.Repositories) == 0 {
		wrong("repositories is empty: name at least one, such as {name: main, url: ..., ref: main}")
	}
	return append(errs, c.Agent.Logs.check(), c.Datastore.Check(), c.Agent.Traces.check(),
		c.Agent.checkAllowRun(c.Node.Name, c.Etcd.TLS.CA), c.Agent.checkListen(c.Repositories))
}

// settings are the files of a configuration as they were read, the one that names it first: the last one counts.
type settings []setting

type setting struct {
	file string
	text []byte
}

// keyNamed is the dotted key with which an error about a value begins.
var keyNamed = lazyregexp.New(`^[a-zA-Z]+(\.[a-zA-Z]+)*`)

// located are the errors about values, each with where the value is set, or what is around it. Of what no file sets the
// configuration itself is named.
func (s settings) located(errs []error) error {
	var out []error
	for _, err := range errs {
		switch several, joined := err.(interface{ Unwrap() []error }); {
		case err == nil:
		case joined:
			out = append(out, s.located(several.Unwrap()))
		default:
			out = append(out, fmt.Errorf("%s: %w", s.where(err), err))
		}
	}
	return errors.Join(out...)
}

func (s settings) where(err error) string {
	set := map[string]render.Position{}
	for _, f := range s {
		maps.Copy(set, render.KeyPositions(f.file, f.text))
	}
	for key := keyNamed.FindString(err.Error()); key != ""; key = key[:max(0, strings.LastIndexByte(key, '.'))] {
		if at, ok := set[key]; ok {
			return at.String()
		}
	}
	return s[0].file
}
