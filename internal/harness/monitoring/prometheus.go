package monitoring

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/internal/freeport"
	"github.com/pullet/pullet/internal/harness/process"
)

// alertsFile and dashboardFile are files of the module.
const (
	alertsFile    = "docs/monitoring/alerts.yaml"
	dashboardFile = "docs/monitoring/dashboard.json"
)

// shortened returns the alerts of the module with times for which a test can wait.
func shortened(t testing.TB, root string) string {
	text, err := os.ReadFile(filepath.Join(root, alertsFile))
	if err != nil {
		t.Fatal(err)
	}
	out := regexp.MustCompile(`for: \d+[mh]\b`).ReplaceAllString(string(text), "for: 1s")
	out = strings.NewReplacer(" 2 * 3600", " 4", " 3 * 3600", " 6", " 24 * 3600", " 12", "[6h]", "[30s]").Replace(out)
	if left := regexp.MustCompile(`3600|\[\d+[mhd]\]`).FindString(out); left != "" {
		t.Fatalf("%s is left of long times", left)
	}
	return out
}

// prometheusConfig is the configuration of Prometheus.
const prometheusConfig = `global: {scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 500ms}
rule_files: [alerts.yaml]
scrape_configs:
  - job_name: pullet
    static_configs:
%s  - job_name: pullet-tls
    scheme: https
    tls_config: {ca_file: %[2]s/tls.pem}
    authorization: {credentials_file: %[2]s/scrape.token}
    static_configs: [{targets: [%[3]q], labels: {instance: slow}}]
  - job_name: node
    static_configs: [{targets: [%[4]q], labels: {instance: timer}}]
`

// startPrometheus starts Prometheus.
func (f *fleet) startPrometheus(targets map[string]string, tlsHost string) {
	f.write("alerts.yaml", shortened(f.t, f.root), 0o644)
	jobs := ""
	for _, name := range []string{"web1", "web2", "solo", "strict"} {
		jobs += fmt.Sprintf("      - {targets: [%q], labels: {instance: %s}}\n", targets[name], name)
	}
	f.write("prometheus.yml", fmt.Sprintf(prometheusConfig, jobs, f.dir, tlsHost, targets["timer"]), 0o644)
	f.prometheus = freeport.AddressFor(f.t)
	p := &process.Process{Name: "prometheus", Log: f.dir + "/prometheus.log", MustLive: true, Args: []string{
		"prometheus", "--config.file=" + f.dir + "/prometheus.yml", "--storage.tsdb.path=" + f.dir + "/tsdb",
		"--web.listen-address=" + f.prometheus, "--log.level=warn",
	}}
	p.Start(f.t)
	f.t.Cleanup(func() { p.Kill(true) })
}

// answer decodes the answer of Prometheus to a request.
func (f *fleet) answer(path string, query url.Values, into any) error {
	got, err := http.Get("http://" + f.prometheus + path + "?" + query.Encode())
	if err != nil {
		return err
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err == nil && got.StatusCode != 200 {
		err = fmt.Errorf("%s: %s", got.Status, text)
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// alert is an alert of Prometheus.
type alert struct {
	Labels, Annotations map[string]string
	State               string
}

// firing returns the alerts that fire, as "ALERT HOST".
func (f *fleet) firing() (out []string) {
	var all struct{ Data struct{ Alerts []alert } }
	if err := f.answer("/api/v1/alerts", nil, &all); err != nil {
		return nil // Prometheus is starting
	}
	for _, a := range all.Data.Alerts {
		if a.State == "firing" {
			out = append(out, a.Labels["alertname"]+" "+a.Labels["instance"])
		}
		for _, text := range a.Annotations {
			if strings.Contains(text, "<no value>") || strings.Contains(text, "error expanding") {
				f.t.Errorf("%s says %s", a.Labels["alertname"], text)
			}
		}
	}
	slices.Sort(out)
	return out
}

// until waits up to a minute for a condition.
func (f *fleet) until(what string, is func() bool) {
	f.t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			f.t.Fatalf("%s: firing are %q", what, f.firing())
		}
	}
	f.t.Logf("%4.1fs %s", time.Since(f.began).Seconds(), what)
}

// fires waits for alerts, each with a pattern of its host.
func (f *fleet) fires(fault string, alerts ...string) {
	f.t.Helper()
	for _, want := range alerts {
		f.until(fault+": "+want, func() bool {
			return slices.ContainsFunc(f.firing(),
				regexp.MustCompile("^"+want+"$").MatchString)
		})
	}
}

// value returns the first value of a query, or -1.
func (f *fleet) value(query string) float64 {
	var got struct {
		Data struct{ Result []struct{ Value [2]any } }
	}
	if err := f.answer("/api/v1/query", url.Values{"query": {query}}, &got); err != nil || len(got.Data.Result) == 0 {
		return -1
	}
	var out float64
	if _, err := fmt.Sscan(got.Data.Result[0].Value[1].(string), &out); err != nil {
		f.t.Error(err)
	}
	return out
}
