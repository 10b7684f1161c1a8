package agent

import (
	"net/http"
	"testing"
)

// TestForwarded: without a token metrics are for who is on this host, and not for whom a server on it asks.
func TestForwarded(t *testing.T) {
	t.Parallel()
	m := &monitoring{self: &self{config: Config{Agent: Loop{Listen: "127.0.0.1:8642"}}}}
	for header, may := range map[string]bool{
		"Accept": true, "Forwarded": false, "X-Forwarded-For": false, "X-Real-IP": false, "Via": false,
	} {
		r := &http.Request{Header: http.Header{}}
		r.Header.Set(header, "192.0.2.1")
		if got := m.mayRead()(r); got != may {
			t.Errorf("a request with %s may read metrics: %v", header, got)
		}
	}
}
