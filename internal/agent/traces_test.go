package agent

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/traces"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// collector takes traces.
type collector struct {
	*httptest.Server
	mu   sync.Mutex
	text string // all that came, as protobuf
	got  []*tracepb.ResourceSpans
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := gzip.NewReader(r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		text, err := io.ReadAll(body)
		var all collectorpb.ExportTraceServiceRequest
		if err := errors.Join(err, proto.Unmarshal(text, &all)); err != nil {
			t.Error(err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.text += string(text)
		c.got = append(c.got, all.ResourceSpans...)
	}))
	t.Cleanup(c.Close)
	return c
}

// tree are the spans of the last trace, each below its parent, with their errors.
func (c *collector) tree(t *testing.T) string {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.got) == 0 {
		t.Fatal("there is no trace")
	}
	spans := c.got[len(c.got)-1].ScopeSpans[0].Spans
	var out strings.Builder
	var show func(parent, indent string)
	show = func(parent, indent string) {
		for _, s := range spans {
			if string(s.ParentSpanId) != parent {
				continue
			}
			if s.EndTimeUnixNano < s.StartTimeUnixNano || s.StartTimeUnixNano == 0 {
				t.Errorf("%s is from %d to %d", s.Name, s.StartTimeUnixNano, s.EndTimeUnixNano)
			}
			out.WriteString(indent + s.Name)
			if s.Status.GetMessage() != "" {
				out.WriteString(": " + s.Status.Message)
			}
			out.WriteByte('\n')
			show(string(s.SpanId), indent+" ")
		}
	}
	show("", "")
	return out.String()
}

// attribute is one of the root of the last trace.
func (c *collector) attribute(key string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := c.got[len(c.got)-1]
	for _, a := range append(slices.Clone(last.Resource.Attributes), last.ScopeSpans[0].Spans[0].Attributes...) {
		if a.Key == key {
			return a.Value.GetStringValue()
		}
	}
	return "(none)"
}

const tracedJob = `steps:
  - {name: motd, action: file.managed, parameters: {name: /etc/motd, content: "x\n"}}
  - {name: secret, action: cmd.run, sensitive: true, parameters: {cmd: "echo canary; echo canary >&2; exit 3"}}
  - {name: broken, action: cmd.run, parameters: {cmd: "echo much to say; exit 7"}}
`

// TestTraceOfAPull: each pull has a trace, with its phases and steps and why they failed, and without what is secret.
func TestTraceOfAPull(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	h := newHost(t, tracedJob)
	h.Agent.Traces = Traces{Endpoint: c.URL, Timeout: render.Duration(10 * time.Second)}
	out := h.pull()
	if len(out.Warnings) > 0 {
		t.Errorf("%q", out.Warnings)
	}
	want := `pull: site/secret (jobs/site.yaml:3:5): failed with exit code 3 (sensitive: the output is not shown)
 join
 fetch
 agree
 compile
 wait
 apply
  site/motd
  site/secret: failed with exit code 3 (sensitive: the output is not shown)
  site/broken: echo much to say; exit 7: exit code 7: much to say
  check/works
 publish
`
	if got := c.tree(t); got != want {
		t.Errorf("the trace is\n%s\nwant\n%s", got, want)
	}
	if strings.Contains(c.text, "canary") {
		t.Error("a secret is in the trace")
	}
	for key, want := range map[string]string{
		"service.name": "pullet", "service.version": "test", "pullet.node": "web1", "pullet.fleet": "default", "pullet.run": out.Run,
		"pullet.version": out.Version.ID, "vcs.ref.head.revision": out.Version.ID, "pullet.outcome": "failed", "pullet.release": "(none)",
	} {
		if got := c.attribute(key); got != want {
			t.Errorf("%s is %s, want %s", key, got, want)
		}
	}
	h.commit("steps: [{name: motd, action: file.managed, parameters: {name: /etc/motd, content: \"x\\n\"}}]\n")
	h.pull()
	h.pull() // nothing is to be done
	if n := len(c.got); n != 3 || c.attribute("pullet.outcome") != "ok" || strings.Contains(c.tree(t), ":") {
		t.Errorf("%d traces, the last one: %s\n%s", n, c.attribute("pullet.outcome"), c.tree(t))
	}
}

// TestTraceIsNotSent: a collector that is away is a warning, and the pull is what it was; without an endpoint nobody is
// asked.
func TestTraceIsNotSent(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	h := newHost(t, job("one", "true"))
	c.Close()
	h.pull()
	h.Agent.Traces = Traces{Endpoint: c.URL, Timeout: render.Duration(10 * time.Second)}
	out := h.pull()
	h.warned(out, "agent.traces: "+c.URL+" did not take the trace: dial tcp "+strings.TrimPrefix(c.URL, "http://")+": connect: connection refused")
	if out.ExitCode() != ExitOK {
		t.Errorf("exit code %d", out.ExitCode())
	}
}

// TestTraced: waits stand in the phase in which they began, runs of reactions beside the phases, and of a run with
// more steps than a trace has those that were right already are missing.
func TestTraced(t *testing.T) {
	t.Parallel()
	at := func(s int) time.Time { return time.Unix(int64(1000+s), 0) }
	report := &apply.Report{Run: "r2", Reaction: "fix", Event: "disk/full", Started: at(9), Ended: at(10), Counts: map[apply.Outcome]int{apply.Failed: 1}}
	report.Steps = []*apply.StepReport{{Job: "j", Step: "s", Outcome: apply.Failed, Reason: "no sesame", Fault: apply.HostFault, Began: at(9), Seconds: 0.5}}
	p := traced{
		Outcome: &Outcome{
			Run: "r1", Wait: &lock.Wait{Gate: "slot web", Reason: "held by web2"}, Reactions: []Reacted{{Report: report}},
			Version: &state.Version{ID: "v", Release: "v1.0", Commits: []state.Commit{{Commit: "a"}, {Commit: "b"}}},
			Report:  &apply.Report{Counts: map[apply.Outcome]int{}},
		},
		phases: []Phase{{PhaseWait, at(0), at(5)}, {PhaseApply, at(5), at(8)}},
		waits:  []waited{{"slot web", "held by web2", at(1), at(3)}, {"barrier", "db2", at(6), at(7)}},
		shown:  func(text string) string { return strings.ReplaceAll(text, "sesame", "***") },
	}
	for i := range mostSteps {
		p.Report.Steps = append(p.Report.Steps, &apply.StepReport{Job: "j", Step: "right", Outcome: apply.OK, Began: at(5), Seconds: float64(i)})
	}
	p.Report.Steps = append(p.Report.Steps, &apply.StepReport{Job: "j", Step: "new", Outcome: apply.Changed, Began: at(7)}, &apply.StepReport{Job: "j", Step: "none"})
	root := p.span()
	var names []string
	var walk func(traces.Span)
	walk = func(s traces.Span) {
		names = append(names, s.Name)
		for _, in := range s.Inside {
			walk(in)
		}
	}
	walk(root)
	if got := strings.Join(names, ", "); got != "pull, wait, wait for slot web, apply, wait for barrier, j/new, reaction fix, j/s" {
		t.Errorf("the trace has %s", got)
	}
	if !root.Began.Equal(at(0)) || !root.Ended.Equal(at(8)) || root.Failed != "" {
		t.Errorf("%+v", root)
	}
	a := root.Attributes
	if a["pullet.outcome"] != "waiting" || a["pullet.gate"] != "slot web" || a["pullet.release"] != "v1.0" || a[traces.Commit] != nil {
		t.Errorf("%v", a)
	}
	reaction := root.Inside[2]
	if step := reaction.Inside[0]; !strings.HasSuffix(reaction.Failed, "no ***") || step.Failed != "no ***" || step.Attributes[traces.ErrorType] != "host" || !step.Ended.Equal(at(9).Add(500*time.Millisecond)) {
		t.Errorf("%+v", reaction)
	}
	for want, is := range map[string]*Outcome{
		"failed: x": {Failures: []error{errors.New("x\ny")}}, "refused: z": {Refused: []error{errors.New("z")}}, "ok: ": {},
	} {
		if s := (traced{Outcome: is, shown: p.shown}).span(); s.Attributes["pullet.outcome"].(string)+": "+strings.TrimSuffix(s.Failed, " ...") != want {
			t.Errorf("%v %q, want %s", s.Attributes["pullet.outcome"], s.Failed, want)
		}
	}
}

// TestWaitsThatPassed: what was waited for again and again is one wait, and a wait without a reason is none.
func TestWaitsThatPassed(t *testing.T) {
	t.Parallel()
	var w waits
	now := time.Now()
	w.passed(now)
	w.notes(&lock.Wait{Gate: "slot web", Reason: "held by web2"})
	w.passed(now.Add(-time.Minute))
	w.passed(now)
	w.awaits(&lock.Wait{Gate: "condition"}, nil)
	w.passed(now)
	if len(w.past) != 2 || w.past[0].gate != "slot web" || !w.past[0].began.Equal(now.Add(-time.Minute)) || w.past[1].gate != "condition" {
		t.Errorf("%+v", w.past)
	}
}

func TestTracesConfigErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{headersFile: /t}":                                  "agent.traces.endpoint is missing: it says where traces are sent",
		"{endpoint: 'collector:4318'}":                       "agent.traces.endpoint: write an https or http URL, such as https://collector.example.org:4318",
		"{endpoint: 'https://u:sesame@h'}":                   "agent.traces.endpoint: credentials stand in a headersFile, and never in the URL",
		"{endpoint: 'https://h?key=sesame'}":                 "agent.traces.endpoint: credentials stand in a headersFile, and never in the URL",
		"{endpoint: 'https://u:sesame@h:port/'}":             "agent.traces.endpoint is no URL",
		"{endpoint: 'http://h:4318', headersFile: /t}":       "agent.traces: headersFile holds secrets: endpoint has to be an https URL",
		"{endpoint: 'https://h', timeout: 0s}":               "agent.traces.timeout: it has to be some time, such as 5s",
		"{endpoint: 'https://h', protocol: grpc}":            `unknown field "protocol"`,
		"{endpoint: 'https://h', ca: nowhere, timeout: nix}": "nix",
	} {
		_, err := ReadConfig(writeConfig(t, repositories+"agent: {traces: "+text+"}\n", ""), t.TempDir())
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
	c, err := ReadConfig(writeConfig(t, repositories+"agent: {traces: {endpoint: 'http://localhost:4318', headersFile: h}}\n", ""), t.TempDir())
	if err != nil || c.Agent.Traces.Timeout.Std() != 5*time.Second {
		t.Errorf("%v %+v", err, c.Agent.Traces)
	}
}
