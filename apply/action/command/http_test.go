package command_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/actiontest"
	"github.com/pullet/pullet/internal/patience"
)

// serve answers requests for as long as the test runs. What cannot be cut short is not waited for.
func serve(t *testing.T, answer http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return server
}

// request runs http.request with a url and further parameters, anew each time.
func request(s *actiontest.Scene, url, more string) *apply.StepReport {
	s.T.Helper()
	s.State = s.T.TempDir()
	return s.Run(s.MustBind("http.request", fmt.Sprintf("{url: '%s'%s}", url, more)))
}

// TestRequestAnswer: status, body and data arrive; what only reads is no change.
func TestRequestAnswer(t *testing.T) {
	t.Parallel()
	s := actiontest.New(t)
	web := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/json":
			w.Header().Set("Content-Type", "application/problem+json; charset=utf-8")
			fmt.Fprint(w, `{"ready": true, "nodes": ["a", 2]}`)
		case "/broken":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"ready": `)
		case "/made":
			w.WriteHeader(http.StatusCreated)
		case "/long":
			io.WriteString(w, strings.Repeat("x", 3<<20))
		default:
			http.Error(w, "out of\n order", http.StatusServiceUnavailable)
		}
	})
	r := request(s, web.URL+"/json", "")
	data := map[string]any{"ready": true, "nodes": []any{"a", 2.0}}
	if r.Outcome != apply.OK || r.Result.ExitCode != 200 || r.Result.State != "OK" || !reflect.DeepEqual(r.Result.Data, data) || !strings.HasPrefix(r.Result.StdOut, `{"ready"`) {
		t.Errorf("%s %s %+v", r.Outcome, r.Reason, r.Result)
	}
	if r = request(s, web.URL+"/broken", ""); r.Outcome != apply.OK || r.Result.Data != nil {
		t.Errorf("broken: %s %+v", r.Outcome, r.Result)
	}
	if r = request(s, web.URL+"/made", ", method: POST"); r.Outcome != apply.Changed || r.Result.ExitCode != 201 || r.Result.State != "Created" {
		t.Errorf("made: %s %s %+v", r.Outcome, r.Reason, r.Result)
	}
	if r = request(s, web.URL+"/long", ""); len(r.Result.StdOut) > 1<<20+100 || !strings.HasSuffix(r.Result.StdOut, "x\n[the rest is left out]\n") {
		t.Errorf("long: %d bytes", len(r.Result.StdOut))
	}
	r = request(s, web.URL+"/x?token=sesame", "")
	if want := "GET " + web.URL + "/x: the answer is 503 Service Unavailable: out of order"; r.Outcome != apply.Failed || r.Reason != want || r.Result.ExitCode != 503 {
		t.Errorf("failed: %s %q, want %q", r.Outcome, r.Reason, want)
	}
	for status, want := range map[string]apply.Outcome{"503": apply.OK, "[200, 5xx]": apply.OK, "[200, 4xx]": apply.Failed} {
		if r := request(s, web.URL, ", status: "+status); r.Outcome != want {
			t.Errorf("status %s: %s, want %s", status, r.Outcome, want)
		}
	}
}

// TestRequestIsSent: method, headers and body as the parameters say, secrets from their file and shown nowhere, once
// for a version.
func TestRequestIsSent(t *testing.T) {
	t.Parallel()
	s := actiontest.New(t, "f etc/h 600 # of the deploy server\nAuthorization: Bearer sesame\nX-Two: b: c\n")
	var got []string
	web := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, fmt.Sprint(r.Method, " ", r.Host, " ", r.Header.Get("Content-Type"), " ", r.Header.Get("Authorization"), " ", r.Header.Get("X-Two"), " ", string(body)))
	})
	params := "{url: '" + web.URL + "/a', method: PUT, headersFile: /etc/h, headers: {Host: h.example.org, X-Two: over}, json: {n: 1, l: [x]}}"
	for _, want := range []apply.Outcome{apply.Changed, apply.OK} {
		r := s.Run(s.MustBind("http.request", params))
		shown, err := json.Marshal(r)
		if r.Outcome != want || err != nil || strings.Contains(string(shown), "sesame") {
			t.Errorf("%s, want %s: %s %v", r.Outcome, want, shown, err)
		}
	}
	request(s, web.URL, ", method: POST, body: 'a=b', headers: {content-type: application/x-www-form-urlencoded}")
	want := []string{
		`PUT h.example.org application/json Bearer sesame b: c {"l":["x"],"n":1}`,
		"POST " + strings.TrimPrefix(web.URL, "http://") + " application/x-www-form-urlencoded   a=b",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestRequestRedirects: as many as allowed are followed, and another server does not get what was meant for the first.
func TestRequestRedirects(t *testing.T) {
	t.Parallel()
	s := actiontest.New(t, "f h 600 X-Token: sesame")
	said := func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s token=%s referer=%s", r.Method, r.Header.Get("X-Token"), r.Header.Get("Referer"))
	}
	other := serve(t, said)
	web := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/same":
			http.Redirect(w, r, "/end", http.StatusTemporaryRedirect)
		case "/other":
			http.Redirect(w, r, other.URL+"/end", http.StatusTemporaryRedirect)
		case "/loop":
			http.Redirect(w, r, "/loop?secret", http.StatusFound)
		default:
			said(w, r)
		}
	})
	for _, c := range []struct{ path, more, want string }{
		{"/same", "", "GET token=sesame referer=" + web.URL + "/same"},
		{"/same", ", method: POST, body: x", "POST token=sesame"},
		{"/same", ", redirects: 0, status: 3xx", "<a href=\"/end\">"},
		{"/same", ", redirects: 0", "the answer is 307 Temporary Redirect"},
		{"/other", "", "GET token= referer="},
		{"/other", ", method: POST, body: x", "it was redirected to another server, which does not get the body: if that is intended, write its url, " + other.URL + "/end"},
		{"/loop", ", redirects: 3", "it was redirected more than 3 times, the last time to " + web.URL + "/loop"},
	} {
		r := request(s, web.URL+c.path, ", headersFile: /h"+c.more)
		if got := r.Result.StdOut + r.Reason; !strings.Contains(got, c.want) || strings.HasSuffix(c.want, "=") && !strings.HasSuffix(got, c.want) {
			t.Errorf("%s%s: %q, want %q", c.path, c.more, got, c.want)
		}
	}
	secure := httptest.NewTLSServer(http.RedirectHandler(web.URL, http.StatusFound))
	defer secure.Close()
	plantPEM(s, "ca", secure.Certificate().Raw)
	if r := request(s, secure.URL, ", ca: /ca"); !strings.Contains(r.Reason, "it was redirected from https to "+web.URL+", where everybody can read it") {
		t.Errorf("downgrade: %s %q", r.Outcome, r.Reason)
	}
}

// plantPEM writes a certificate.
func plantPEM(s *actiontest.Scene, name string, der []byte) {
	s.T.Helper()
	if err := os.WriteFile(s.Path(name), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		s.T.Fatal(err)
	}
}

// TestRequestTLS: a server is trusted for its authority alone, and can ask for a certificate.
func TestRequestTLS(t *testing.T) {
	t.Parallel()
	s := actiontest.New(t)
	web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%d certificates", len(r.TLS.PeerCertificates))
	}))
	web.Config.ErrorLog = quietLog()
	web.TLS = requestCertificates()
	web.StartTLS()
	defer web.Close()
	if r := request(s, web.URL, ""); r.Outcome != apply.Failed || !strings.Contains(r.Reason, "certificate signed by unknown authority") {
		t.Errorf("trusted by default: %s %s", r.Outcome, r.Reason)
	}
	plantPEM(s, "ca", web.Certificate().Raw)
	if r := request(s, web.URL, ", ca: /ca"); r.Result.StdOut != "0 certificates" {
		t.Errorf("%s %q", r.Reason, r.Result.StdOut)
	}
	cert, key := newCertificate(t)
	s.Plant("f cert 644 " + cert)
	s.Plant("f key 600 " + key)
	if r := request(s, web.URL, ", ca: /ca, cert: /cert, key: /key"); r.Result.StdOut != "1 certificates" {
		t.Errorf("%s %q", r.Reason, r.Result.StdOut)
	}
}

// TestRequestStops when it is told to, or takes too long, also in the middle of an answer.
func TestRequestStops(t *testing.T) {
	for name, begin := range map[string]func(w http.ResponseWriter){
		"no answer":     func(http.ResponseWriter) {},
		"half of a one": func(w http.ResponseWriter) { io.WriteString(w, "half"); w.(http.Flusher).Flush() },
	} {
		t.Run(name, func(t *testing.T) {
			s := actiontest.New(t)
			arrived, gone := make(chan bool, 2), make(chan bool, 2)
			web := serve(t, func(w http.ResponseWriter, r *http.Request) {
				begin(w)
				arrived <- true
				<-r.Context().Done()
				gone <- true
			})
			ctx, cancel := context.WithCancel(context.Background())
			p, done := s.MustBind("http.request", "{url: '"+web.URL+"', method: POST}"), make(chan *apply.Report, 1)
			go func() { done <- s.RunAll(ctx, p) }()
			<-arrived
			began := time.Now()
			cancel()
			r := <-done
			if took := time.Since(began); took > patience.Stretch(2*time.Second) || r.Stopped == "" || r.Failed() {
				t.Errorf("stopped %q, failed %v after %s", r.Stopped, r.Failed(), took)
			}
			<-gone
			one := request(s, web.URL, ", timeout: 50ms")
			if one.Outcome != apply.Failed || !strings.HasSuffix(one.Reason, ": no answer within 50ms") {
				t.Errorf("%s %q", one.Outcome, one.Reason)
			}
		})
	}
}

// TestRequestUsesNoProxy: what stands in the agent's own environment does not count.
func TestRequestUsesNoProxy(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("http_proxy", "http://127.0.0.1:1")
	s := actiontest.New(t)
	web := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "direct") })
	// Go asks a proxy for every address but the loopback's own; this one leads there too.
	url := strings.Replace(web.URL, "127.0.0.1", "0.0.0.0", 1)
	if r := request(s, url, ""); r.Result.StdOut != "direct" {
		t.Errorf("%s %q: the proxy was asked", r.Outcome, r.Reason)
	}
}
