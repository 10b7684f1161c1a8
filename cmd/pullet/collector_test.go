package main

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// collector runs a collector of OpenTelemetry until the script ends, and makes it the one to which the node sends its
// traces. The spans of all traces are in the file spans, one a line; while there is a file collector.silent it does not
// answer.
func runCollector(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: collector")
	}
	work, over := ts.MkAbs("."), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := os.Stat(filepath.Join(work, "collector.silent")); err == nil {
			<-over
			return
		}
		if err := keepSpans(filepath.Join(work, "spans"), r); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	}))
	ts.Defer(server.Close)
	ts.Defer(func() { close(over) }) // runs before
	ts.Setenv("COLLECTOR", server.URL)
	conf := ts.MkAbs("conf.d")
	ts.Check(os.MkdirAll(conf, 0o755))
	text := "agent: {traces: {endpoint: '" + server.URL + "', timeout: 1s}}\n"
	ts.Check(os.WriteFile(filepath.Join(conf, "traces.yaml"), []byte(text), 0o644))
}

func keepSpans(file string, r *http.Request) error {
	body, err := gzip.NewReader(r.Body)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(body)
	var all collectorpb.ExportTraceServiceRequest
	if err := errors.Join(err, proto.Unmarshal(text, &all)); err != nil {
		return err
	}
	var lines strings.Builder
	for _, of := range all.ResourceSpans {
		for _, s := range of.ScopeSpans[0].Spans {
			fmt.Fprintf(&lines, "%s (%s): %s\n", s.Name, attributesOf(s), s.Status.GetMessage())
		}
	}
	return os.WriteFile(file, []byte(lines.String()), 0o644)
}

func attributesOf(s *tracepb.Span) string {
	var out []string
	for _, a := range s.Attributes {
		out = append(out, a.Key+"="+a.Value.GetStringValue())
	}
	return strings.Join(out, " ")
}
