package metrics

import (
	"encoding/json"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

var update = flag.Bool("update", false, "write the table of docs/monitoring.md")

// TestMonitoringPage: the page has each metric as it is, and no other.
func TestMonitoringPage(t *testing.T) {
	const file, head = "../../docs/monitoring.md", "| metric | kind | labels | what it says |\n| --- | --- | --- | --- |\n"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), head)
	_, after, ends := strings.Cut(rest, "\n`result` is")
	if !found || !ends {
		t.Fatal("the page has no table")
	}
	want := before + head
	for _, f := range families() {
		kind := "gauge"
		if f.kind == prometheus.CounterValue {
			kind = "counter"
		}
		labels := ""
		if len(f.labels) > 0 {
			labels = "`" + strings.Join(f.labels, "`, `") + "`"
		}
		want += "| `" + f.name + "` | " + kind + " | " + labels + " | " + f.help + " |\n"
	}
	want += "\n`result` is" + after
	if *update {
		err = os.WriteFile(file, []byte(want), 0o644)
	} else if want != string(text) {
		t.Error("docs/monitoring.md is not up to date: go test ./internal/metrics -run TestMonitoringPage -update")
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestNamesOfMetrics: alerts and the dashboard ask for no metric that there is not, and the dashboard is whole.
func TestNamesOfMetrics(t *testing.T) {
	known := map[string]bool{}
	for _, f := range families() {
		known[f.name] = true
	}
	asked := map[string]bool{}
	for _, file := range []string{"alerts.yaml", "alerts_test.yaml", "dashboard.json"} {
		text, err := os.ReadFile("../../docs/monitoring/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`\bpullet_\w+`).FindAllString(string(text), -1) {
			if asked[name] = true; !known[name] {
				t.Errorf("%s: there is no %s", file, name)
			}
		}
	}
	if len(asked) < 15 {
		t.Errorf("only %d metrics are asked for", len(asked))
	}
	var board struct {
		UID           string
		SchemaVersion int
		Panels        []struct {
			ID          int
			Title       string
			Description string
			Datasource  struct{ UID string }
			Targets     []struct{ Expr, RefID string }
			FieldConfig struct{ Defaults struct{ Unit string } }
		}
	}
	text, err := os.ReadFile("../../docs/monitoring/dashboard.json")
	if err == nil {
		err = json.Unmarshal(text, &board)
	}
	if err != nil || board.UID != "pullet-fleet" || board.SchemaVersion < 36 || len(board.Panels) < 20 {
		t.Error(err, board.UID, board.SchemaVersion, len(board.Panels))
	}
	ids := map[int]bool{}
	for _, p := range board.Panels {
		if ids[p.ID] || p.Description == "" || p.Datasource.UID != "${datasource}" || len(p.Targets) == 0 || p.FieldConfig.Defaults.Unit == "" {
			t.Errorf("%+v", p)
		}
		ids[p.ID] = true
	}
}
