// Package traces sends what was done to a collector of OpenTelemetry: OTLP over HTTP, in protobuf. A trace is made when
// all is over, of what is known then. Who did it knows nothing of tracing.
package traces
