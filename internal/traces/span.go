package traces

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"go.opentelemetry.io/otel/semconv/v1.43.0"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/pullet/pullet/internal/safetext"
)

// Trace is what was done, by whom.
type Trace struct {
	Name string // of the one thing that the trace is of, which has no other: its ids follow from it
	By   Attributes
	Root Span
}

// Span is something that was done, and what was done inside it.
type Span struct {
	Name         string
	Began, Ended time.Time
	Failed       string // why, in a line; "": it did not
	Attributes   Attributes
	Inside       []Span
}

// Attributes are what is known beside the times: texts, numbers (int) and bools.
type Attributes map[string]any

// The names of OpenTelemetry's conventions for attributes.
const (
	Service        = string(semconv.ServiceNameKey)
	ServiceVersion = string(semconv.ServiceVersionKey)
	Host           = string(semconv.HostNameKey)
	File           = string(semconv.CodeFilePathKey)
	Line           = string(semconv.CodeLineNumberKey)
	ErrorType      = string(semconv.ErrorTypeKey)
	Commit         = string(semconv.VCSRefHeadRevisionKey)
)

// mostText is how many bytes of a text are sent.
const mostText = 1000

// encoded is the trace as it is sent.
func (t Trace) encoded() *tracepb.ResourceSpans {
	id := sha256.Sum256([]byte(t.Name))
	e := &encoder{trace: id[:16], next: binary.BigEndian.Uint64(id[16:24])}
	e.add(t.Root, nil)
	return &tracepb.ResourceSpans{
		Resource:  &resourcepb.Resource{Attributes: t.By.encoded()},
		SchemaUrl: semconv.SchemaURL,
		ScopeSpans: []*tracepb.ScopeSpans{{
			Scope:     &commonpb.InstrumentationScope{Name: "github.com/pullet/pullet"},
			SchemaUrl: semconv.SchemaURL,
			Spans:     e.spans,
		}},
	}
}

// encoder gives the spans of a trace their ids.
type encoder struct {
	trace []byte
	next  uint64
	spans []*tracepb.Span
}

func (e *encoder) id() []byte {
	if e.next++; e.next == 0 { // which is no id
		e.next++
	}
	return binary.BigEndian.AppendUint64(nil, e.next)
}

func (e *encoder) add(s Span, parent []byte) {
	out := &tracepb.Span{
		TraceId: e.trace, SpanId: e.id(), ParentSpanId: parent,
		Name: text(s.Name), Kind: tracepb.Span_SPAN_KIND_INTERNAL, Attributes: s.Attributes.encoded(),
		StartTimeUnixNano: nanoseconds(s.Began), EndTimeUnixNano: nanoseconds(s.Ended),
	}
	if s.Failed != "" {
		out.Status = &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR, Message: text(s.Failed)}
	}
	e.spans = append(e.spans, out)
	for _, inside := range s.Inside {
		e.add(inside, out.SpanId)
	}
}

// nanoseconds is a time as OTLP has it; 0 is unknown.
func nanoseconds(t time.Time) uint64 {
	if t.IsZero() {
		return 0
	}
	return uint64(max(0, t.UnixNano()))
}

// text is one line that protobuf can hold, which is no bytes but UTF-8.
func text(s string) string { return safetext.Line(s, mostText) }

func (a Attributes) encoded() []*commonpb.KeyValue {
	out := make([]*commonpb.KeyValue, 0, len(a))
	for _, key := range slices.Sorted(maps.Keys(a)) {
		value := &commonpb.AnyValue{}
		switch v := a[key].(type) {
		case string:
			value.Value = &commonpb.AnyValue_StringValue{StringValue: text(v)}
		case int:
			value.Value = &commonpb.AnyValue_IntValue{IntValue: int64(v)}
		case bool:
			value.Value = &commonpb.AnyValue_BoolValue{BoolValue: v}
		}
		out = append(out, &commonpb.KeyValue{Key: key, Value: value})
	}
	return out
}
