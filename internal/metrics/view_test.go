package metrics

import (
	"bytes"
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/pullet/pullet/internal/tier"
)

// full is a view in which every family has samples.
func full() View {
	at := time.Unix(1_800_000_000, 0)
	p := Pull{
		Ended: at, Result: Success, Phases: map[string]float64{"join": 0.1, "apply": 2}, Steps: map[string]int{"ok": 3, "changed": 1},
		Drift: 1, Etcd: true, Answer: 0.002, Repositories: []Repository{{"main", true, 0.3}, {"extra", false, 5}},
		Wait: &Wait{Kind: "slot", Gate: "slot web", Since: at.Add(-time.Minute)}, Running: &Version{"v1", "abc", "v1.0.0"},
		Fleet: &Version{"v2", "def", ""}, Lease: at.Add(time.Minute),
	}
	return View{
		Build: Build{"v1.2.3", "go1.26"}, Record: Record{}.With(p), Etcd: true, Lease: p.Lease, Reports: 7, ReportsSize: 1234, Free: 1 << 40,
		Certificates: map[string]time.Time{"etcd.tls.cert": at.Add(time.Hour)},
		Webhooks:     map[string]map[string]uint64{"forge": {"accepted": 2, "secret": 1}, "": {"unknown": 9}},
	}
}

// gathered are the families of a view.
func gathered(t testing.TB, v View) map[string]*dto.MetricFamily {
	t.Helper()
	all, err := Registry(func() View { return v }).Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*dto.MetricFamily{}
	for _, f := range all {
		out[f.GetName()] = f
	}
	return out
}

// shown is the text of a view.
func shown(t testing.TB, v View) string {
	t.Helper()
	var out bytes.Buffer
	for _, f := range gathered(t, v) {
		if _, err := expfmt.MetricFamilyToText(&out, f); err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

// TestFamilies: each family is shown, and its samples have the values of the view.
func TestFamilies(t *testing.T) {
	text, all := shown(t, full()), gathered(t, full())
	for _, f := range families() {
		if all[f.name] == nil {
			t.Errorf("%s is not shown", f.name)
		}
	}
	for _, line := range []string{
		`pullet_pulls_total{result="success"} 1`, `pullet_pulls_total{result="refused"} 0`,
		`pullet_last_pull_timestamp_seconds 1.8e+09`, `pullet_last_success_timestamp_seconds 1.8e+09`,
		`pullet_last_pull_result{result="success"} 1`, `pullet_last_pull_result{result="failed"} 0`,
		`pullet_last_pull_phase_duration_seconds{phase="apply"} 2`, `pullet_steps_total{outcome="ok"} 3`,
		`pullet_last_pull_steps{outcome="changed"} 1`, `pullet_drift_steps_total 1`, `pullet_last_pull_drift_steps 1`,
		`pullet_version_info{commit="abc",release="v1.0.0",version="v1"} 1`,
		`pullet_fleet_version_info{commit="def",release="",version="v2"} 1`,
		`pullet_wait_start_timestamp_seconds{kind="slot"} 1.79999994e+09`, `pullet_halted 0`,
		`pullet_lease_end_timestamp_seconds 1.80000006e+09`, `pullet_etcd_up 1`, `pullet_etcd_answer_seconds 0.002`,
		`pullet_repository_up{repository="main"} 1`, `pullet_repository_up{repository="extra"} 0`,
		`pullet_repository_answer_seconds{repository="extra"} 5`, `pullet_reports 7`, `pullet_reports_bytes 1234`,
		`pullet_state_free_bytes 1.099511627776e+12`, `pullet_build_info{goversion="go1.26",version="v1.2.3"} 1`,
		`pullet_certificate_expiry_timestamp_seconds{name="etcd.tls.cert"} 1.8000036e+09`,
		`pullet_webhook_requests_total{hook="forge",result="secret"} 1`, `pullet_webhook_requests_total{hook="",result="unknown"} 9`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("there is no %s in\n%s", line, text)
		}
	}
	never := shown(t, View{})
	for _, line := range []string{"pullet_pulls_total{result=\"failed\"} 0\n", "pullet_last_success_timestamp_seconds 0\n"} {
		if !strings.Contains(never, line) {
			t.Errorf("before the first pull there is no %s", line)
		}
	}
	if strings.Contains(never, "pullet_etcd_up") || strings.Contains(never, "pullet_last_pull_timestamp_seconds") {
		t.Errorf("before the first pull nobody knows:\n%s", never)
	}
}

// promtool runs Prometheus' own tool, which must find nothing.
func promtool(t *testing.T, stdin string, args ...string) {
	t.Helper()
	cmd := exec.Command("promtool", args...)
	cmd.Stdin = strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 && args[0] == "check" && args[1] == "metrics" {
		t.Errorf("promtool (apt-get install prometheus) %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// TestPromtool: the names are as Prometheus wants them, and the alerts do what their own tests say.
func TestPromtool(t *testing.T) {
	tier.Program(t, "promtool", "prometheus")
	promtool(t, shown(t, full()), "check", "metrics")
	promtool(t, "", "check", "rules", "../../docs/monitoring/alerts.yaml")
	promtool(t, "", "test", "rules", "../../docs/monitoring/alerts_test.yaml")
}

// TestHostileValues: whatever a repository, the fleet's record or a damaged file says, there are few time series, and
// Prometheus can read them.
func TestHostileValues(t *testing.T) {
	v := full()
	p := *v.Record.Last
	p.Result = "x\"} 1\n"
	p.Wait = &Wait{Kind: "slot\"} 1\npullet_halted 1\n", Gate: strings.Repeat("\"\n\\", 1000), Since: time.Unix(1, 0)}
	p.Running = &Version{"a\nb", "\"\\\xff\x00\x1b[31m", strings.Repeat("v", 100_000)}
	p.Repositories = nil
	p.Phases = map[string]float64{"A": 1, "B\n": 2, "apply": math.MaxFloat64, "join": -1}
	p.Steps = map[string]int{"ok": math.MaxInt, "changed": -5}
	for i := range 1000 {
		p.Repositories = append(p.Repositories, Repository{Name: strings.Repeat("r", i%300) + "\n", Seconds: -1})
		p.Phases[strings.Repeat("p", i%300)] = 1
	}
	v.Record = v.Record.With(p).With(p)
	text := shown(t, v)
	if n := strings.Count(text, "\n"); n > 250 || len(text) > 100_000 {
		t.Errorf("%d lines, %d bytes", n, len(text))
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	again, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range again {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if len(l.GetValue()) > maxText+3 || strings.ContainsAny(l.GetValue(), "\n\x00\x1b") {
					t.Errorf("%s %q", name, l.GetValue())
				}
			}
		}
	}
	if got := again["pullet_wait_start_timestamp_seconds"].GetMetric()[0].GetLabel()[0].GetValue(); got != "other" {
		t.Errorf("the kind of a wait is %q", got)
	}
	if strings.Contains(text, "\npullet_halted 1\n") || !strings.Contains(text, `pullet_pulls_total{result="failed"} 2`) {
		t.Error(text)
	}
	if !strings.Contains(text, `pullet_steps_total{outcome="ok"} 1.8446744073709552e+19`) {
		t.Error("counts do not stop at the largest number")
	}
	if !testing.Short() {
		promtool(t, text, "check", "metrics")
	}
}

// answers gives what the pages say to somebody.
func answers(s Served, method, path, from, accept string) *httptest.ResponseRecorder {
	r, w := httptest.NewRequest(method, path, nil), httptest.NewRecorder()
	r.RemoteAddr = from
	r.Header.Set("Accept", accept)
	Handler(s).ServeHTTP(w, r)
	return w
}

// TestPages: who may read what, and how health is told.
func TestPages(t *testing.T) {
	var why error
	allowed := true
	checks := func() []Check { return []Check{{"loop", nil}, {"etcd", why}} }
	s := Served{
		View: full, May: func(*http.Request) bool { return allowed }, Healthy: checks, Ready: checks,
		Others: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }),
	}
	const here, elsewhere, open = "127.0.0.1:1234", "192.0.2.1:1234", "application/openmetrics-text; version=1.0.0"
	w := answers(s, "GET", "/metrics", elsewhere, open)
	if w.Code != 200 || !strings.HasPrefix(w.Header().Get("Content-Type"), open) || !strings.HasSuffix(w.Body.String(), "# EOF\n") {
		t.Error(w.Code, w.Header(), w.Body)
	}
	if !strings.Contains(w.Body.String(), "# TYPE pullet_pulls counter\n") || !strings.Contains(w.Body.String(), "process_resident_memory_bytes") ||
		strings.Contains(w.Body.String(), "go_goroutines") {
		t.Error(w.Body)
	}
	if w := answers(s, "GET", "/metrics", here, ""); w.Code != 200 || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain; version=0.0.4") {
		t.Error(w.Code, w.Header())
	}
	if w := answers(s, "POST", "/metrics", here, ""); w.Code != 405 || w.Header().Get("Allow") != "GET, HEAD" {
		t.Error(w.Code)
	}
	if w := answers(s, "GET", "/hooks/x", here, ""); w.Code != http.StatusTeapot {
		t.Error(w.Code)
	}
	if allowed = false; answers(s, "GET", "/metrics", here, "").Code != 401 {
		t.Error("who may not read metrics does")
	}
	if s.May = nil; answers(s, "GET", "/metrics", here, "").Code != 404 {
		t.Error("metrics are shown where they are not served")
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		why = nil
		if w := answers(s, "GET", path, elsewhere, ""); w.Code != 200 || w.Body.String() != "ok\n" {
			t.Error(path, w.Code, w.Body)
		}
		why = os.ErrDeadlineExceeded
		if w := answers(s, "GET", path+"?verbose", elsewhere, ""); w.Code != 503 || w.Body.String() != "not ok\n" {
			t.Error(path, w.Code, w.Body)
		}
		if w := answers(s, "GET", path+"?verbose", "[::1]:9", ""); w.Code != 503 || w.Body.String() != "loop: ok\netcd: not ok: i/o timeout\n" {
			t.Error(path, w.Code, w.Body)
		}
	}
}

// FuzzRecord: a damaged record is refused or shown, and never spoils a page.
func FuzzRecord(f *testing.F) {
	whole, err := json.Marshal(full().Record)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add([]byte(`{"pulls":{"a":1},"last":{"steps":{"\u0000":-1},"repositories":[{"name":"a"},{"name":"a"}]}}`))
	file := filepath.Join(f.TempDir(), "metrics.json")
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := Load(file)
		if err != nil {
			return
		}
		gathered(t, View{Record: r.With(Pull{})})
	})
}
