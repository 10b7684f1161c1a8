package offer_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/offer"
	"github.com/pullet/pullet/internal/freeport"
	"github.com/pullet/pullet/render"
)

// TestCheckService: each way of asking whether a service works, and what is said when it does not.
func TestCheckService(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/health":
		case "/slow":
			<-r.Context().Done()
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer server.Close()
	port := server.Listener.Addr().(*net.TCPAddr).Port
	for _, c := range []struct{ check, want string }{
		{"", ""},
		{fmt.Sprintf("tcp: %d", port), ""},
		{fmt.Sprintf("tcp: %d", nobody(t)), "connection refused"},
		{"http: /health", ""},
		{"http: /other", "http /other: " + server.URL + "/other answers 404 Not Found"},
		{"http: " + server.URL + "/health", ""},
		{"http: /slow, timeout: 20ms", "http /slow: no answer within 20ms"},
		{"cmd: 'true'", ""},
		{"cmd: 'echo no disk >&2; exit 3'", "echo no disk >&2; exit 3: exit code 3: no disk"},
		{"cmd: sleep 60, timeout: 20ms", "sleep 60: no answer within 20ms"},
	} {
		text := fmt.Sprintf("services: {'*': [{name: a, address: 127.0.0.1, port: %d", port)
		if c.check != "" {
			text += ", check: {" + c.check + "}"
		}
		repo := render.Open(render.Layer{Name: "main", FS: fstest.MapFS{"base/services.yaml": {Data: []byte(text + "}]}")}}})
		offers, _, err := repo.Offers(render.Input{Node: render.Node{Name: "n1"}})
		if err != nil || len(offers) != 1 {
			t.Fatal(c.check, err)
		}
		err = offer.Check(context.Background(), &apply.Host{Root: t.TempDir()}, offers[0])
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.check, err, c.want)
		}
	}
}

// nobody is a port at which nobody listens.
func nobody(t *testing.T) int {
	t.Helper()
	at, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := net.SplitHostPort(at)
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return port
}
