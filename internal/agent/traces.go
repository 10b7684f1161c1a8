package agent

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/traces"
	"github.com/pullet/pullet/render"
)

// Traces says where traces of pulls are sent, by OTLP over HTTP. Variables of the environment change nothing of it.
type Traces struct {
	// URL of a collector of OpenTelemetry, to which /v1/traces is added, such as https://collector.example.org:4318.
	// Nothing: no trace is made
	Endpoint    string `yaml:"endpoint"`
	HeadersFile string `yaml:"headersFile"` // with headers of the request, one a line: "Name: value"; mode 0600
	// certificates of the authority that signed the collector's; nothing: those of the host
	CA      string          `yaml:"ca"`
	Timeout render.Duration `yaml:"timeout"` // how long the trace of one pull may take; default 5s
}

// check finds what is wrong with the endpoint before it is needed.
func (t Traces) check() error {
	if t.Endpoint == "" {
		if t != (Traces{Timeout: t.Timeout}) {
			return errors.New("agent.traces.endpoint is missing: it says where traces are sent")
		}
		return nil
	}
	u, err := url.Parse(t.Endpoint)
	switch {
	case err != nil: // the cause quotes the URL, which may hold a password
		return errors.New("agent.traces.endpoint is no URL")
	case u.User != nil || u.RawQuery != "":
		return errors.New("agent.traces.endpoint: credentials stand in a headersFile, and never in the URL")
	case u.Scheme != "https" && u.Scheme != "http" || u.Host == "":
		return errors.New("agent.traces.endpoint: write an https or http URL, such as https://collector.example.org:4318")
	case t.HeadersFile != "" && apply.Cleartext(u):
		return errors.New("agent.traces: headersFile holds secrets: endpoint has to be an https URL")
	case t.Timeout <= 0:
		return errors.New("agent.traces.timeout: it has to be some time, such as 5s")
	}
	return nil
}

// tracing sends the trace of a pull when all else is done. What does not work there is a warning of the pull.
type tracing struct{ *pull }

func (t tracing) send(ctx context.Context, failed error) {
	to := t.config.Agent.Traces
	if to.Endpoint == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), to.Timeout.Std())
	defer cancel()
	collector := traces.Collector{Endpoint: to.Endpoint, HeadersFile: to.HeadersFile, CA: to.CA}
	shown := func(text string) string { return text }
	if t.program != nil {
		shown = t.program.catalog.Secrets().Redact
	}
	pulled := traced{Outcome: t.out, phases: t.phases.soFar(), waits: t.waits.past, failed: failed, shown: shown}
	name := t.config.Fleet + " " + t.config.Node.Name + " " + t.out.Run
	trace := traces.Trace{Name: name, By: t.by(), Root: pulled.span()}
	if err := collector.Send(ctx, trace); err != nil {
		t.out.warn(fmt.Errorf("agent.traces: %w", err))
	}
}

// by says whose pull it is.
func (t tracing) by() traces.Attributes {
	out := traces.Attributes{
		traces.Service: "pullet", traces.ServiceVersion: t.build,
		"pullet.fleet": t.config.Fleet, "pullet.node": t.config.Node.Name,
	}
	if host, err := os.Hostname(); err == nil {
		out[traces.Host] = host
	}
	return out
}
