package traces

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/pullet/pullet/internal/safetext"
	"github.com/pullet/pullet/internal/upload"
)

// Collector is where traces are sent to. Variables of the environment, such as OTEL_EXPORTER_OTLP_ENDPOINT, change
// nothing of it.
type Collector struct {
	// URL of the collector, to which /v1/traces is added, such as https://collector.example.org:4318
	Endpoint    string
	HeadersFile string // with headers of the request, one a line: "Name: value"; mode 0600; "": none
	CA          string // certificates of the authority that signed the server's; "": those of the host
}

// Send sends a trace, once: what is not taken until ctx ends is lost.
func (c Collector) Send(ctx context.Context, t Trace) error {
	client, err := upload.Client(c.CA)
	if err != nil {
		return fmt.Errorf("ca: %w", err)
	}
	defer client.CloseIdleConnections()
	headers, err := c.headers()
	if err != nil {
		return err
	}
	at, err := url.Parse(c.Endpoint)
	if err != nil { // checked before
		return errors.New("the endpoint is no URL")
	}
	// All that the environment could say is said here.
	err = otlptracehttp.NewClient(
		otlptracehttp.WithEndpointURL(at.JoinPath("v1", "traces").String()),
		otlptracehttp.WithHeaders(headers),
		otlptracehttp.WithHTTPClient(client),
		otlptracehttp.WithCompression(otlptracehttp.GzipCompression),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{}),
	).UploadTraces(ctx, []*tracepb.ResourceSpans{t.encoded()})
	if err = upload.WithoutURL(err); err != nil {
		return fmt.Errorf("%s did not take the trace: %s", at.Redacted(), safetext.Line(err.Error(), mostText))
	}
	return nil
}

// headers are the headers of the request, as the file has them now.
func (c Collector) headers() (map[string]string, error) {
	header, out := http.Header{}, map[string]string{}
	if c.HeadersFile != "" {
		if err := upload.SetHeaders(header, c.HeadersFile); err != nil {
			return nil, fmt.Errorf("headersFile: %w", err)
		}
	}
	for name, values := range header {
		out[name] = strings.Join(values, ", ")
	}
	return out, nil
}
