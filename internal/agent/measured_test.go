package agent

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/event/webhook"
	"github.com/pullet/pullet/internal/metrics"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/puller"
	"github.com/pullet/pullet/state"
)

// TestMeasured: what monitoring is shown of a pull.
func TestMeasured(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_800_000_000, 0)
	o := &Outcome{
		Report: &apply.Report{Counts: map[apply.Outcome]int{apply.OK: 1, apply.Changed: 2}, Steps: []*apply.StepReport{
			{Outcome: apply.OK}, {Outcome: apply.Changed, Drift: true}, {Outcome: apply.Changed},
		}},
		Wait: &lock.Wait{Kind: state.WaitHalt, Gate: "role web (halted)", Halt: "web"},
		Phases: []Phase{
			{PhaseFetch, at, at.Add(time.Second)}, {PhaseApply, at, at.Add(2 * time.Second)}, {PhaseApply, at, at.Add(3 * time.Second)},
			{PhasePublish, at.Add(time.Second), at},
		},
		own: []puller.Head{
			{Repo: "main", Took: time.Second, Problem: &puller.UnreachableError{Repo: "main"}}, {Repo: "extra", Took: 2 * time.Second, Problem: &puller.RewrittenError{}},
		},
	}
	b := beside{
		ended: at, sources: []puller.Source{{Name: "main"}, {Name: "extra"}, {Name: "new"}}, etcd: true, answer: 3 * time.Millisecond, lease: at.Add(time.Minute),
		running: &state.Version{ID: "d1", Release: "v1", Commits: []state.Commit{{Repo: "main", Commit: "a"}, {Repo: "extra", Commit: "b"}}},
		fleet:   &state.Version{ID: "c2", Commits: []state.Commit{{Repo: "main", Commit: "c2"}}},
	}
	p := measured(o, b)
	if p.Result != metrics.Waiting || p.Phases["fetch"] != 1 || p.Phases["apply"] != 5 || p.Phases["publish"] != 0 || p.Drift != 1 ||
		p.Steps["ok"] != 1 || p.Steps["changed"] != 2 || len(p.Steps) != 6 || p.Answer != 0.003 || !p.Etcd || !p.Lease.Equal(b.lease) {
		t.Errorf("%+v", p)
	}
	if *p.Running != (metrics.Version{ID: "d1", Commit: "main=a extra=b", Release: "v1"}) || *p.Fleet != (metrics.Version{ID: "c2", Commit: "c2"}) {
		t.Errorf("%+v %+v", p.Running, p.Fleet)
	}
	if *p.Wait != (metrics.Wait{Kind: "halt", Gate: "role web (halted)", Halted: true, Since: at}) {
		t.Errorf("%+v", p.Wait)
	}
	if want := []metrics.Repository{{Name: "main", Seconds: 1}, {Name: "extra", Up: true, Seconds: 2}}; !slices.Equal(p.Repositories, want) {
		t.Errorf("%+v, want %+v", p.Repositories, want)
	}
	b.err = errors.Join(errors.New("x"), fmt.Errorf("y: %w", &puller.UnreachableError{Repo: "new"}))
	if got := measured(o, b).Repositories; len(got) != 3 || got[2] != (metrics.Repository{Name: "new"}) {
		t.Errorf("%+v", got)
	}
	b.err = nil
	for want, change := range map[metrics.Result]func(o *Outcome, b *beside){
		metrics.Success: func(o *Outcome, _ *beside) { o.Wait = nil },
		metrics.Failed:  func(o *Outcome, _ *beside) { o.Failures = []error{errors.New("x")} },
		metrics.Refused: func(o *Outcome, _ *beside) { o.Refused = []error{errors.New("x")} },
		metrics.Waiting: func(_ *Outcome, b *beside) { b.err = &state.UnreachableError{} },
	} {
		o, b := *o, b
		change(&o, &b)
		if got := measured(&o, b).Result; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if p := measured(&Outcome{}, beside{sources: b.sources, ended: at}); p.Repositories != nil || p.Running != nil || p.Wait != nil {
		t.Errorf("of a pull that came nowhere: %+v", p)
	}
}

// metricsText is the file for node exporter.
func (h *host) metricsText() string {
	text, err := os.ReadFile(h.Agent.Metrics.Textfile)
	if err != nil {
		h.t.Error(err)
	}
	return string(text)
}

// says checks lines of metrics.
func (h *host) says(when, text string, lines ...string) {
	h.t.Helper()
	for _, line := range lines {
		if !strings.Contains(text, line) {
			h.t.Errorf("%s: there is no %s in\n%s", when, line, text)
		}
	}
}

// TestTextfileOfPulls: single pulls, each by a process of its own, count on; drift and failures are seen; a record that
// is damaged begins anew, and a file that cannot be written is a warning.
func TestTextfileOfPulls(t *testing.T) {
	t.Parallel()
	h := newHost(t, job("one", "true"))
	h.pull()
	if _, err := os.Stat(filepath.Join(h.Paths.State, "metrics.json")); err == nil {
		t.Error("metrics are kept that nobody reads")
	}
	h.Agent.Metrics.Textfile = filepath.Join(h.home, "pullet.prom")
	h.pull()
	h.says("the first one", h.metricsText(), "pullet_pulls_total{result=\"success\"} 1\n", "pullet_drift_steps_total 0\n", "pullet_etcd_up 1\n",
		"pullet_repository_up{repository=\"main\"} 1\n", "pullet_version_info{commit=\""+h.head()+"\"", "pullet_fleet_version_info{commit=\""+h.head()+"\"",
		"pullet_last_pull_phase_duration_seconds{phase=\"apply\"} 0.", "pullet_etcd_answer_seconds ", "pullet_lease_end_timestamp_seconds ", "pullet_reports ")
	h.write("root/etc/motd", "somebody was here")
	h.pull()
	h.says("drift", h.metricsText(), "pullet_pulls_total{result=\"success\"} 2\n", "pullet_drift_steps_total 1\n", "pullet_last_pull_drift_steps 1\n")
	h.commit(job("two", "exit 3"))
	h.pull()
	h.says("a failure", h.metricsText(), "pullet_pulls_total{result=\"failed\"} 1\n", "pullet_last_pull_result{result=\"failed\"} 1\n",
		"pullet_last_pull_steps{outcome=\"failed\"} 1\n", "pullet_last_pull_drift_steps 0\n", "pullet_drift_steps_total 1\n")
	h.commit(job("two", "true"))
	h.write("state/metrics.json", "{")
	out := h.pull()
	h.warned(out, "the counts of metrics begin anew: "+filepath.Join(h.Paths.State, "metrics.json")+" is damaged")
	h.says("after damage", h.metricsText(), "pullet_pulls_total{result=\"success\"} 1\n", "pullet_pulls_total{result=\"failed\"} 0\n")
	h.Agent.Metrics.Textfile = filepath.Join(h.home, "none/pullet.prom")
	h.warned(h.pull(), "metrics are not written to "+h.Agent.Metrics.Textfile+": there is no such directory")
}

// TestStoppedPullIsNotCounted: a pull that a signal stopped says nothing of the host.
func TestStoppedPullIsNotCounted(t *testing.T) {
	t.Parallel()
	h := newHost(t, job("one", "true"))
	h.Agent.Metrics.Textfile = filepath.Join(h.home, "pullet.prom")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.tryPull(ctx); err == nil {
		t.Error("it was not stopped")
	}
	if _, err := os.Stat(h.Agent.Metrics.Textfile); err == nil {
		t.Error("it is counted")
	}
}

// TestWaitIsShown: a host that waits shows it from the begin of the wait on, and the age of the wait goes on over pulls
// that find the same gate closed.
func TestWaitIsShown(t *testing.T) {
	t.Parallel()
	_, endpoint := newMeter(t)
	h, _ := pairOn(t, endpoint, "f", job("one", "true"), map[string]string{"pullet.yaml": "rollout: {rollingRules: {global: 0}}\n"})
	h.Agent.Metrics.Textfile = filepath.Join(h.home, "pullet.prom")
	const waits = "pullet_wait_start_timestamp_seconds{kind=\"limit\"} "
	during, asked := "", &metrics.Wait{}
	a, err := New(h.Config, "test", h.entry())
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	out, err := a.Pull(t.Context(), Options{Wait: time.Second, Waiting: func(*lock.Wait) {
		during, asked = h.metricsText(), a.monitoring.watched().Record.Waiting
	}})
	if err != nil || out.Wait == nil {
		t.Fatal(err, out.Wait)
	}
	h.says("in the middle of it", during, waits, "pullet_halted 0\n")
	if asked == nil || asked.Kind != "limit" || time.Since(asked.Since) > time.Minute {
		t.Errorf("who asks in the middle of it hears %+v", asked)
	}
	if w := a.monitoring.watched().Record.Waiting; w == nil {
		t.Error("between two pulls nobody sees that the host waits")
	}
	a.monitoring.waited.Store(true) // as when the gate opened, and the run goes on
	if w := a.monitoring.watched().Record.Waiting; w != nil {
		t.Errorf("a wait that is over is shown: %+v", w)
	}
	h.says("behind the pull", h.metricsText(), waits, "pullet_pulls_total{result=\"waiting\"} 1\n", "pullet_fleet_version_info{")
	since := func() string {
		_, rest, _ := strings.Cut(h.metricsText(), waits)
		line, _, _ := strings.Cut(rest, "\n")
		return line
	}
	first := since()
	if _, err := h.with(Options{}); err != nil {
		t.Fatal(err)
	}
	if again := since(); again != first {
		t.Errorf("the wait began at %s and then at %s", first, again)
	}
	h.write("repo/pullet.yaml", "rollout: {rollingRules: {global: 1}}\n")
	h.commit(job("two", "true"))
	h.exits(ExitOK, "")
	if text := h.metricsText(); strings.Contains(text, "pullet_wait_start") {
		t.Errorf("the wait does not end:\n%s", text)
	}
}

// page is what an agent answers.
func (h *host) page(client *http.Client, url, token string) (int, string) {
	h.t.Helper()
	r, err := http.NewRequestWithContext(h.t.Context(), http.MethodGet, url, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := client.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		h.t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// monitored begins to listen without pulling.
func (h *host) monitored() *Agent {
	h.t.Helper()
	a, err := New(h.Config, "test", h.entry())
	if err != nil {
		h.t.Fatal(err)
	}
	closes, err := a.listen()
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		closes()
		if err := a.Close(); err != nil {
			h.t.Error(err)
		}
	})
	return a
}

// TestMonitoringPages: an agent without webhooks serves metrics and its health; ready it is behind a pull that etcd
// answered, and healthy while its loop goes on.
func TestMonitoringPages(t *testing.T) {
	t.Parallel()
	h := newHost(t, job("one", "true"))
	h.listens()
	h.Agent.Webhooks = nil
	a, client := h.monitored(), &http.Client{Timeout: time.Minute}
	url := "http://" + h.Agent.Listen
	expect := func(when, path string, code int, lines ...string) {
		t.Helper()
		got, text := h.page(client, url+path, "")
		if got != code {
			t.Errorf("%s: %s is %d: %s", when, path, got, text)
		}
		h.says(when, text, lines...)
	}
	expect("at first", "/healthz?verbose", 200, "loop: ok\n")
	expect("at first", "/readyz?verbose", 503, "pull: not ok: the first pull has not ended\n", "etcd: not ok: not known before that")
	expect("at first", "/metrics", 200, "pullet_pulls_total{result=\"success\"} 0\n", "pullet_build_info{goversion=\"go", "version=\"test\"} 1\n")
	expect("at first", "/hooks/door", 404)
	if out, err := a.Pull(t.Context(), Options{loop: true}); err != nil || out.ExitCode() != ExitOK {
		t.Fatal(err, out)
	}
	expect("behind a pull", "/readyz", 200, "ok\n")
	expect("behind a pull", "/metrics", 200, "pullet_pulls_total{result=\"success\"} 1\n", "pullet_etcd_up 1\n",
		"pullet_webhook_requests_total{hook=\"\",result=\"unknown\"} 1\n", "process_resident_memory_bytes ")
	a.connection.mu.Lock() // as while a pull opens a record that does not answer
	expect("while etcd is asked", "/metrics", 200, "pullet_etcd_up 1\n", "pullet_lease_end_timestamp_seconds ")
	expect("while etcd is asked", "/readyz", 200)
	a.connection.mu.Unlock()
	a.away.begins(&state.UnreachableError{}, time.Now())
	expect("without etcd", "/readyz?verbose", 503, "pull: ok\n", "etcd: not ok: it did not answer the last pull, or the lease of this host ended: pullet doctor\n")
	expect("without etcd", "/metrics", 200, "pullet_etcd_up 0\n")
	expect("without etcd", "/healthz", 200, "ok\n")
	a.pulse.work(-time.Hour)
	expect("while it hangs", "/healthz?verbose", 503, "loop: not ok: nothing went on for longer than it may take: journalctl -u pullet-agent\n")
	expect("while it hangs", "/readyz", 503, "not ok\n")
}

// TestMetricsToken: beyond loopback nobody reads metrics without a token; with one, whoever has a line of the file as
// it is now.
func TestMetricsToken(t *testing.T) {
	t.Parallel()
	h := newHost(t, job("one", "true"))
	h.listens()
	_, port, err := net.SplitHostPort(h.Agent.Listen)
	if err != nil {
		t.Fatal(err)
	}
	pool := h.certify(1)
	h.Agent.Webhooks, h.Agent.Listen = []webhook.Hook{}, "0.0.0.0:"+port
	h.Agent.TLS = Served{Cert: filepath.Join(h.home, "cert"), Key: filepath.Join(h.home, "key")}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}, Timeout: time.Minute}
	url := "https://127.0.0.1:" + port
	t.Run("none", func(t *testing.T) {
		h.t = t
		h.monitored()
		if code, text := h.page(client, url+"/metrics", ""); code != 404 || text != "" {
			t.Error(code, text)
		}
		if code, _ := h.page(client, url+"/healthz", ""); code != 200 {
			t.Error(code)
		}
		if !strings.Contains(h.log.String(), "/metrics is not served: agent.listen can be reached from elsewhere, and agent.metrics.tokenFile is missing") {
			t.Error(h.log.String())
		}
	})
	h.Agent.Metrics.TokenFile = filepath.Join(h.home, "scrape")
	h.write("scrape", "first0123456789abcdef\nsecond0123456789abcdef\n")
	t.Run("two", func(t *testing.T) {
		h.t = t
		h.monitored()
		for token, want := range map[string]int{
			"": 401, "wrong": 401, "first0123456789abcdef": 200, "second0123456789abcdef": 200, "first0123456789abcdefsecond0123456789abcdef": 401,
		} {
			if code, text := h.page(client, url+"/metrics", token); code != want || want == 401 && text != "" {
				t.Error(token, code, text)
			}
		}
		h.write("scrape", "third0123456789abcdef\n")
		if code, _ := h.page(client, url+"/metrics", "first0123456789abcdef"); code != 401 {
			t.Error(code)
		}
		if err := os.Chmod(filepath.Join(h.home, "scrape"), 0o644); err != nil {
			t.Fatal(err)
		}
		if code, _ := h.page(client, url+"/metrics", "third0123456789abcdef"); code != 401 {
			t.Error(code)
		}
	})
	h.t = t
	for text, want := range map[string]string{"short": "a secret in " + h.Agent.Metrics.TokenFile + " has 5 characters", "": "holds no secret"} {
		h.write("scrape", text)
		if err := os.Chmod(h.Agent.Metrics.TokenFile, 0o600); err != nil {
			t.Fatal(err)
		}
		a, err := New(h.Config, "test", h.entry())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.listen(); err == nil || !strings.Contains(err.Error(), "agent.metrics: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		if err := a.CanListen(""); err == nil || !strings.Contains(err.Error(), want) {
			t.Error(err)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestMetricsOnFullDisk: what cannot be kept or written is a warning, and the pull is what it was.
func TestMetricsOnFullDisk(t *testing.T) {
	t.Parallel()
	h := newHost(t, job("one", "true"))
	h.Agent.Metrics.Textfile = filepath.Join(h.home, "spool/pullet.prom")
	if err := errors.Join(os.MkdirAll(filepath.Join(h.Paths.State, "metrics.json/x"), 0o700), syscall.Mkfifo(filepath.Join(h.home, "spool"), 0o600)); err != nil {
		t.Fatal(err)
	}
	out := h.pull()
	if out.ExitCode() != ExitOK || len(out.Warnings) != 3 {
		t.Error(out.ExitCode(), out.Warnings)
	}
	if got := errors.Join(out.Warnings...).Error(); !strings.Contains(got, "is no record of metrics") || !strings.Contains(got, "the counts of metrics are not kept: ") ||
		!strings.Contains(got, "metrics are not written to ") {
		t.Error(got)
	}
}
