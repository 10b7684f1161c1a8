package agent

import (
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pullet/pullet/internal/patience"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// logStore is a web server to which logs are put.
type logStore struct {
	*httptest.Server
	mu      sync.Mutex
	answers []int             // of the next requests; 200 when there are none left, 0 is none at all
	logs    map[string]string // by path
	headers http.Header       // of the last request
	puts    int
	ended   chan struct{}
}

func newLogStore(t *testing.T, serve func(*httptest.Server)) *logStore {
	s := &logStore{logs: map[string]string{}, ended: make(chan struct{})}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(s.take))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	serve(s.Server)
	t.Cleanup(s.Close)
	t.Cleanup(func() { close(s.ended) })
	return s
}

func (s *logStore) take(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	s.mu.Lock()
	s.puts++
	s.headers = r.Header
	code := http.StatusOK
	if len(s.answers) > 0 {
		code, s.answers = s.answers[0], s.answers[1:]
	}
	if err == nil && r.Method == http.MethodPut && code == http.StatusOK {
		s.logs[r.URL.Path] = string(text)
	}
	s.mu.Unlock()
	switch {
	case code == 0:
		<-s.ended
		return
	case code/100 == 3:
		w.Header().Set("Location", "/elsewhere")
	}
	w.WriteHeader(code)
}

// sent are the paths of the logs that came, sorted.
func (s *logStore) sent() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for path := range s.logs {
		out = append(out, path)
	}
	slices.Sort(out)
	return out
}

// unsent are the runs whose logs are still to be sent.
func (h *host) unsent() (out []string) {
	files, err := state.Reports(h.Paths.State)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, f := range files {
		if f.ToSend {
			out = append(out, f.Run)
		}
	}
	return out
}

// TestLogIsSent: the log of a failed run goes to its URL, and everything that the run says of its node leads to it.
func TestLogIsSent(t *testing.T) {
	t.Parallel()
	s := newLogStore(t, (*httptest.Server).Start)
	h := newHost(t, job("one", "echo much to say; exit 7"))
	h.Agent.Logs.Put = s.URL + "/logs/{fleet}/{node}/{run}.log?X-Signature=open-sesame"
	out := h.pull()
	path := "/logs/default/web1/" + out.Run + ".log"
	if got := s.sent(); !slices.Equal(got, []string{path}) || len(out.Warnings) > 0 || out.ExitCode() != ExitError {
		t.Fatalf("%q, warnings %q, exit code %d", got, out.Warnings, out.ExitCode())
	}
	for _, want := range []string{"run     " + out.Run + "\nnode    web1\nversion ", "stdout:\n    much to say\n", "failed   site/command (cmd.run)", "changed  site/motd (file.managed)"} {
		if !strings.Contains(s.logs[path], want) {
			t.Errorf("there is no %q in\n%s", want, s.logs[path])
		}
	}
	for category, st := range h.statuses() {
		if want := map[bool]string{true: s.URL + path}[category != state.Provisioned]; st.Log != want {
			t.Errorf("%s: the log is %q, want %q", category, st.Log, want)
		}
	}
	h.commit(job("one", "true"))
	h.pull()
	if s.puts != 1 {
		t.Errorf("%d logs: a run that succeeds has nothing to send", s.puts)
	}
	for category, st := range h.statuses() {
		if st.Log != "" {
			t.Errorf("%s: %q", category, st.Log)
		}
	}
	if strings.Contains(h.log.String(), "sesame") {
		t.Errorf("what signs the request is logged:\n%s", &h.log)
	}
}

// TestLogStoreFails: a store that does not take the log is a warning, and is asked again at the next pull; the last log
// comes first.
func TestLogStoreFails(t *testing.T) {
	t.Parallel()
	s := newLogStore(t, (*httptest.Server).Start)
	s.answers = []int{500, 500, 307}
	h := newHost(t, job("one", "exit 7"))
	h.Agent.Logs.Put = s.URL + "/{run}.log?X-Signature=open-sesame"
	var runs []string
	for _, want := range []string{"500 Internal Server Error", "500 Internal Server Error", "307 Temporary Redirect"} {
		out := h.pull()
		runs = append(runs, out.Run)
		h.warned(out, "logs: the log of run "+out.Run+" was refused by "+s.URL+"/"+out.Run+".log: "+want+"; the next pull tries again")
		if out.ExitCode() != ExitError || len(s.sent()) != 0 {
			t.Errorf("exit code %d, logs %q", out.ExitCode(), s.sent())
		}
	}
	if s.puts != 3 {
		t.Errorf("%d requests in three pulls: where one fails, the others are not tried", s.puts)
	}
	want := h.unsent() // of failures that repeat, the first and the last
	h.commit(job("one", "true"))
	if out := h.pull(); len(out.Warnings) > 0 || out.ExitCode() != ExitOK {
		t.Errorf("%q", out.Warnings)
	}
	for i, run := range want {
		want[i] = "/" + run + ".log"
	}
	if got := s.sent(); len(want) < 2 || !slices.Equal(got, slices.Sorted(slices.Values(want))) || want[0] != "/"+runs[0]+".log" {
		t.Errorf("sent %q, want %q", got, want)
	}
	if left := h.unsent(); len(left) > 0 {
		t.Errorf("still to be sent: %q", left)
	}
	if h.pull(); s.puts != 3+len(want) {
		t.Errorf("%d requests", s.puts)
	}
}

// TestLateLogIsLinked: a log that could be sent only later is linked where the run still is the node's last word.
func TestLateLogIsLinked(t *testing.T) {
	t.Parallel()
	s := newLogStore(t, (*httptest.Server).Start)
	s.answers = []int{503}
	h := newHost(t, job("one", "exit 7"))
	h.Agent.Logs.Put = s.URL + "/{run}.log"
	first := h.pull()
	if got := h.statuses()[state.Rollout]; got.Log != "" {
		t.Errorf("a log that is not there is linked: %q", got.Log)
	}
	a, err := New(h.Config, "test", h.entry())
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	store, err := a.connection.open(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	r := &reports{config: &a.config, out: &Outcome{}, joined: &joined{store: store}, log: a.logger}
	if r.sendLogs(context.Background()); len(r.out.Warnings) > 0 {
		t.Fatal(r.out.Warnings)
	}
	o, err := store.Views.Fleet(context.Background(), false)
	if err != nil {
		t.Fatal(err)
	}
	if got := o.Statuses["web1"][state.Configured]; got.Log != s.URL+"/"+first.Run+".log" || got.State != state.Failed || got.Digest == nil {
		t.Errorf("%+v", got)
	}
}

// TestLogStoreHangs: a store that does not answer holds the pull up for the time that is given to it, and no longer.
func TestLogStoreHangs(t *testing.T) {
	t.Parallel()
	s := newLogStore(t, (*httptest.Server).Start)
	s.answers = []int{0}
	h := newHost(t, job("one", "exit 7"))
	h.Agent.Logs = Logs{Put: s.URL + "/{run}.log", Timeout: render.Duration(200 * time.Millisecond)}
	began := time.Now()
	out := h.pull()
	h.warned(out, "/"+out.Run+".log: context deadline exceeded; the next pull tries again")
	if took := time.Since(began); took > patience.Stretch(10*time.Second) || out.ExitCode() != ExitError {
		t.Errorf("%s, exit code %d", took, out.ExitCode())
	}
	if got := h.statuses()[state.Configured]; got.State != state.Failed || got.Run != out.Run {
		t.Errorf("%+v", got)
	}
}

// TestLogStoreTLS: with the authority's certificate, the headers and the token reach the server, and nobody else reads
// them.
func TestLogStoreTLS(t *testing.T) {
	t.Parallel()
	s := newLogStore(t, (*httptest.Server).StartTLS)
	h := newHost(t, job("one", "exit 7"))
	h.write("token", "open-sesame\n")
	h.write("headers", "# of the log store\nX-Team: ops\n\nx-key:open:sesame \n")
	h.Agent.Logs.Put = s.URL + "/{run}.log"
	h.Agent.Logs.TokenFile, h.Agent.Logs.HeadersFile = filepath.Join(h.home, "token"), filepath.Join(h.home, "headers")
	h.warned(h.pull(), "certificate signed by unknown authority")

	h.Agent.Logs.CA = filepath.Join(h.home, "ca.pem")
	h.warned(h.pull(), "agent.logs.ca: open "+h.Agent.Logs.CA+": no such file or directory")
	h.write("ca.pem", "sesame")
	h.warned(h.pull(), "agent.logs.ca: "+h.Agent.Logs.CA+" holds no certificate")
	h.write("ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})))
	if out := h.pull(); len(out.Warnings) > 0 {
		t.Fatal(out.Warnings)
	}
	if s.headers.Get("Authorization") != "Bearer open-sesame" || s.headers.Get("X-Team") != "ops" || s.headers.Get("X-Key") != "open:sesame" {
		t.Errorf("%v", s.headers)
	}

	h.write("headers", "X-Team: ops\nopen-sesame\n")
	h.warned(h.pull(), "agent.logs.headersFile: "+h.Agent.Logs.HeadersFile+":2 is no header: write it as Name: value")
	h.write("headers", "X Team: ops\n")
	h.warned(h.pull(), "agent.logs.headersFile: "+h.Agent.Logs.HeadersFile+":1 is no header: write it as Name: value")
	if err := os.Remove(h.Agent.Logs.HeadersFile); err != nil {
		t.Fatal(err)
	}
	h.warned(h.pull(), "agent.logs.headersFile: ")
	if err := os.Chmod(h.Agent.Logs.TokenFile, 0o644); err != nil {
		t.Fatal(err)
	}
	h.write("headers", "X-Team: ops\n")
	h.warned(h.pull(), "agent.logs.tokenFile: credentials in "+h.Agent.Logs.TokenFile+" are open to others (mode 0644)")
	if strings.Contains(h.log.String(), "sesame") {
		t.Errorf("a secret is logged:\n%s", &h.log)
	}
}

// TestUnkeptLogIsSent: on a full disk, where the report cannot be kept, the log still goes out.
func TestUnkeptLogIsSent(t *testing.T) {
	t.Parallel()
	s := newLogStore(t, (*httptest.Server).Start)
	h := newHost(t, job("one", "exit 7"))
	h.Agent.Logs.Put = s.URL + "/{run}.log"
	h.write("state/reports/x", "")
	h.pull()
	if err := os.RemoveAll(filepath.Join(h.Paths.State, "reports")); err != nil {
		t.Fatal(err)
	}
	h.write("state/reports", "") // a file where the directory should be
	out := h.pull()
	if got := s.sent(); len(out.Warnings) != 2 || !slices.Contains(got, "/"+out.Run+".log") {
		t.Errorf("%q, warnings %q", got, out.Warnings)
	}
}

// TestManyLogs: nodes that fail at once each have their log and their link.
func TestManyLogs(t *testing.T) {
	t.Parallel()
	s := newLogStore(t, (*httptest.Server).Start)
	fleet := newHost(t, job("one", "exit 7"))
	fleet.Etcd.Dir = filepath.Join(fleet.home, "etcd")
	store, err := fleet.OpenStore(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	const nodes = 12
	var wait sync.WaitGroup
	for i := range nodes {
		h := &host{t: t, home: fleet.home, Config: fleet.Config}
		h.Node.Node = render.Node{Name: fmt.Sprint("n", i), Labels: map[string]string{"role": fmt.Sprint("r", i)}}
		h.Root, h.Paths.State = filepath.Join(h.home, h.Node.Name), filepath.Join(h.home, "state", h.Node.Name)
		h.Agent.Logs.Put = s.URL + "/{node}/{run}.log"
		h.write(h.Node.Name+"/etc/keep", "")
		wait.Go(func() {
			if _, err := h.tryPull(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	o, err := store.Views.Fleet(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	var linked []string
	for node, st := range o.Statuses {
		if c := st[state.Configured]; c.State != state.Failed || c.Log != s.URL+"/"+node+"/"+c.Run+".log" {
			t.Errorf("%s: %+v", node, c)
		}
		linked = append(linked, strings.TrimPrefix(st[state.Rollout].Log, s.URL))
	}
	slices.Sort(linked)
	if got := s.sent(); len(got) != nodes || !slices.Equal(got, linked) {
		t.Errorf("sent %q, linked %q", got, linked)
	}
}

func TestLogsConfigErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"logs: {tokenFile: /t}":                    "agent.logs.put is missing",
		"logs: {put: 'https://h/{host}.log'}":      "there is no {host}: use {fleet}, {node}, {run} and {version}",
		"logs: {put: 'ftp://h/x'}":                 "agent.logs.put: write an https or http URL",
		"logs: {put: /var/log}":                    "agent.logs.put: write an https or http URL",
		"logs: {put: 'https://u:sesame@h:port/'}":  "agent.logs.put is no URL",
		"logs: {put: 'http://h/x', tokenFile: /t}": "put has to be an https URL",
		"logs: {put: 'https://h/x', timeout: 0s}":  "agent.logs.timeout: it has to be some time",
		"logs: {put: 'https://h/x', retries: 3}":   `unknown field "retries"`,
		"reports: {keep: 0}":                       "agent.reports.keep: 0 is not a number of reports from 1 on",
		"reports: {size: 50M}":                     `"50M" is not a size: write 500KiB, 50MiB or 1GiB`,
		"reports: {size: }":                        "nothing is not a size",
	} {
		_, err := ReadConfig(writeConfig(t, repositories+"agent: {"+text+"}\n", ""), t.TempDir())
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
	c, err := ReadConfig(writeConfig(t, repositories+"agent: {reports: {size: 1GiB}, logs: {put: 'https://h/{fleet}/{node}/{run}.log'}}\n", ""), t.TempDir())
	if err != nil || c.Agent.Reports != (Reports{50, 1 << 30}) || c.Agent.Logs.Timeout.Std() != 10*time.Second {
		t.Errorf("%v %+v", err, c.Agent)
	}
}

// TestLogThatCannotBeRead: a report whose log is to be sent, and that cannot be read, is said once.
func TestLogThatCannotBeRead(t *testing.T) {
	t.Parallel()
	s := newLogStore(t, (*httptest.Server).Start)
	h := newHost(t, job("one", "exit 7"))
	h.Agent.Logs.Put = s.URL + "/{run}.log"
	s.Close()
	h.pull()
	files, err := filepath.Glob(filepath.Join(h.Paths.State, "reports", "*.json"))
	if err != nil || len(files) != 1 || len(h.unsent()) != 1 {
		t.Fatalf("%v %v", err, files)
	}
	if err := os.WriteFile(files[0], []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.commit(job("one", "true"))
	h.warned(h.pull(), "logs: ")
	if out := h.exits(ExitOK, ""); len(out.Warnings) > 0 {
		t.Errorf("%q", out.Warnings)
	}
}
