package traces

import (
	"compress/gzip"
	"context"
	"encoding/hex"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// receiver is a collector that keeps what it got.
type receiver struct {
	*httptest.Server
	got    []*tracepb.ResourceSpans
	header http.Header
	path   string
	answer func(http.ResponseWriter)
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{answer: func(http.ResponseWriter) {}}
	r.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.header, r.path = req.Header, req.URL.Path
		body, err := gzip.NewReader(req.Body)
		if err != nil {
			t.Error(err)
			return
		}
		text, err := io.ReadAll(body)
		var all collectorpb.ExportTraceServiceRequest
		if err != nil || proto.Unmarshal(text, &all) != nil {
			t.Errorf("what came is no trace: %v", err)
		}
		r.got = append(r.got, all.ResourceSpans...)
		r.answer(w)
	}))
	r.StartTLS()
	t.Cleanup(r.Close)
	return r
}

// trusted is the file with the certificate of the receiver.
func (r *receiver) trusted(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.Certificate().Raw})
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func example() Trace {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	return Trace{Name: "default web1 r1", By: Attributes{Service: "pullet"}, Root: Span{
		Name: "pull", Began: at, Ended: at.Add(time.Second), Failed: "it broke\nin two",
		Attributes: Attributes{"pullet.run": "r1", "pullet.changed": 2, "pullet.upgrade": true},
		Inside: []Span{{Name: "apply", Began: at, Ended: at.Add(time.Second), Inside: []Span{
			{Name: "site/motd \xff", Began: at, Ended: at},
		}}},
	}}
}

// TestSend: a trace comes to the collector whole, with the headers of the file, over TLS; the environment changes
// nothing of it.
func TestSend(t *testing.T) {
	r, other := newReceiver(t), newReceiver(t)
	for name, value := range map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": other.URL, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": other.URL, "OTEL_EXPORTER_OTLP_HEADERS": "x-env=1",
		"OTEL_EXPORTER_OTLP_COMPRESSION": "none", "OTEL_EXPORTER_OTLP_INSECURE": "true", "OTEL_RESOURCE_ATTRIBUTES": "from=env",
		"OTEL_EXPORTER_OTLP_TIMEOUT": "1", "OTEL_SERVICE_NAME": "env", "OTEL_SDK_DISABLED": "true", "OTEL_TRACES_SAMPLER": "always_off",
	} {
		t.Setenv(name, value)
	}
	headers := filepath.Join(t.TempDir(), "headers")
	if err := os.WriteFile(headers, []byte("Authorization: Bearer open-sesame\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := Collector{Endpoint: r.URL + "/otlp/", CA: r.trusted(t), HeadersFile: headers}
	if err := c.Send(t.Context(), example()); err != nil {
		t.Fatal(err)
	}
	if len(other.got) > 0 || len(r.got) != 1 || r.path != "/otlp/v1/traces" {
		t.Fatalf("%d and %d traces, at %s", len(r.got), len(other.got), r.path)
	}
	if r.header.Get("Authorization") != "Bearer open-sesame" || r.header.Get("X-Env") != "" {
		t.Errorf("headers %v", r.header)
	}
	if !proto.Equal(r.got[0], example().encoded()) {
		t.Errorf("there came %v", r.got[0])
	}
	by := r.got[0].Resource.Attributes
	if len(by) != 1 || by[0].Key != "service.name" || by[0].Value.GetStringValue() != "pullet" {
		t.Errorf("by %v", by)
	}
}

// TestEncoded: spans have the ids of their parents; the ids follow from the name, so that no two traces share any.
func TestEncoded(t *testing.T) {
	t.Parallel()
	spans := example().encoded().ScopeSpans[0].Spans
	if len(spans) != 3 {
		t.Fatalf("%d spans", len(spans))
	}
	root, phase, step := spans[0], spans[1], spans[2]
	if len(root.TraceId) != 16 || len(root.SpanId) != 8 || len(root.ParentSpanId) != 0 {
		t.Errorf("%x %x below %x", root.TraceId, root.SpanId, root.ParentSpanId)
	}
	if string(phase.ParentSpanId) != string(root.SpanId) || string(step.ParentSpanId) != string(phase.SpanId) || string(step.SpanId) == string(phase.SpanId) {
		t.Errorf("%x, %x below %x, %x below %x", root.SpanId, phase.SpanId, phase.ParentSpanId, step.SpanId, step.ParentSpanId)
	}
	if root.Status.Code != tracepb.Status_STATUS_CODE_ERROR || strings.Contains(root.Status.Message, "\n") || phase.Status != nil {
		t.Errorf("%v and %v", root.Status, phase.Status)
	}
	if root.EndTimeUnixNano-root.StartTimeUnixNano != 1e9 || step.Name != "site/motd \ufffd" {
		t.Errorf("%d to %d, %q", root.StartTimeUnixNano, root.EndTimeUnixNano, step.Name)
	}
	var keys []string
	for _, a := range root.Attributes {
		keys = append(keys, a.Key)
	}
	if got := strings.Join(keys, " "); got != "pullet.changed pullet.run pullet.upgrade" {
		t.Errorf("attributes %s", got)
	}
	other := example()
	other.Name = "default web2 r1"
	if a, b := hex.EncodeToString(root.TraceId), hex.EncodeToString(other.encoded().ScopeSpans[0].Spans[0].TraceId); a == b {
		t.Errorf("two traces are %s", a)
	}
	long := example()
	long.Root.Failed = strings.Repeat("x", 5000)
	if n := len(long.encoded().ScopeSpans[0].Spans[0].Status.Message); n > 1000 {
		t.Errorf("a message of %d bytes", n)
	}
}

// TestNotSent: why a trace was not taken, with the endpoint and never with what stands in the headers.
func TestNotSent(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	ca := r.trusted(t)
	headers := filepath.Join(t.TempDir(), "headers")
	if err := os.WriteFile(headers, []byte("open-sesame\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	at := Collector{Endpoint: r.URL, CA: ca}
	for _, c := range []struct {
		what   string
		to     Collector
		answer func(http.ResponseWriter)
		want   string
	}{
		{"a collector that is full", at, func(w http.ResponseWriter) { w.WriteHeader(503) }, r.URL + " did not take the trace: "},
		{"one that refuses", at, func(w http.ResponseWriter) { http.Error(w, "no\x1b[2J", http.StatusUnauthorized) }, r.URL + " did not take the trace: failed to send to " + r.URL + "/v1/traces: 401 Unauthorized (body: no␛[2J)"},
		{"one that moved", at, func(w http.ResponseWriter) {
			w.Header().Set("Location", "https://elsewhere.example.org")
			w.WriteHeader(307)
		}, "307 Temporary Redirect"},
		{"one that takes a part", at, func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/x-protobuf")
			text, err := proto.Marshal(&collectorpb.ExportTraceServiceResponse{PartialSuccess: &collectorpb.ExportTracePartialSuccess{RejectedSpans: 2, ErrorMessage: "too old"}})
			if err == nil {
				_, err = w.Write(text)
			}
			if err != nil {
				t.Error(err)
			}
		}, "too old"},
		{"one that nobody vouches for", Collector{Endpoint: r.URL}, nil, "did not take the trace: tls: failed to verify certificate"},
		{"one that is away", Collector{Endpoint: "http://127.0.0.1:1"}, nil, "http://127.0.0.1:1 did not take the trace: dial tcp 127.0.0.1:1: connect: connection refused"},
		{"an authority that is away", Collector{Endpoint: r.URL, CA: "/none"}, nil, "ca: open /none: no such file or directory"},
		{"headers that are none", Collector{Endpoint: r.URL, CA: ca, HeadersFile: headers}, nil, "headersFile: " + headers + ":1 is no header"},
	} {
		if c.answer != nil {
			r.answer = c.answer
		}
		err := c.to.Send(t.Context(), example())
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%s: %v, want %s", c.what, err, c.want)
		}
	}
	if n := len(r.got); n != 4 {
		t.Errorf("the collector was asked %d times by 4 that reached it", n)
	}
}

// TestSilentCollector: one that does not answer is left when the time is over.
func TestSilentCollector(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	silent := make(chan struct{})
	r.answer = func(http.ResponseWriter) { <-silent }
	defer close(silent)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	err := Collector{Endpoint: r.URL, CA: r.trusted(t)}.Send(ctx, example())
	if err == nil || !strings.Contains(err.Error(), "deadline exceeded") {
		t.Error(err)
	}
}
