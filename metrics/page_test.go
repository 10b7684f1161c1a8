package metrics

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

var update = flag.Bool("update", false, "write the table of docs/monitoring.md")

// TestMonitoringPage: the page has each metric as it is, and no other.
func TestMonitoringPage(t *testing.T) {
	const file, head = "../docs/monitoring.md", "| metric | kind | labels | what it says |\n| --- | --- | --- | --- |\n"
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
		t.Error("docs/monitoring.md is not up to date: go test ./metrics -run TestMonitoringPage -update")
	}
	if err != nil {
		t.Fatal(err)
	}
}
