package sink

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/internal/patience"
	"github.com/pullet/pullet/state"
)

// world is a fleet's record with a reactor.
type world struct {
	t     *testing.T
	store *state.Store
	since int64
	lease clientv3.LeaseID
	log   *bytes.Buffer
	mu    sync.Mutex // of log
	wire  *wire      // of a world in virtual time
}

func (w *world) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.Write(p)
}

func (w *world) logged() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.String()
}

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	store, err := state.Open(t.Context(), state.Config{Fleet: "f", Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	w := &world{t: t, store: store, log: &bytes.Buffer{}}
	w.lead()
	return w
}

// lead makes another process the reactor.
func (w *world) lead() {
	w.t.Helper()
	if w.lease != 0 {
		if _, err := w.store.Client.Revoke(w.t.Context(), w.lease); err != nil {
			w.t.Fatal(err)
		}
	}
	grant, err := w.store.Client.Grant(w.t.Context(), 600)
	if err != nil {
		w.t.Fatal(err)
	}
	w.lease = grant.ID
	if w.since, _, err = w.store.Events.Lead(w.t.Context(), "web1", grant.ID); err != nil || w.since == 0 {
		w.t.Fatal(w.since, err)
	}
}

// happens writes a page of events with these ids, the first word of which is the name.
func (w *world) happens(ids ...string) {
	w.t.Helper()
	in, err := w.store.Events.Inbox(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	var page []state.Happened
	for _, id := range ids {
		name, _, _ := strings.Cut(id, "-")
		now := time.Now().UTC()
		page = append(page, state.Happened{Event: state.Event{ID: id, Name: name, By: "web1", Time: now}, Count: 1, Last: now})
	}
	if done, err := w.store.Events.Enter(w.t.Context(), w.since, in, state.Entry{Page: page}); !done || err != nil {
		w.t.Fatal(done, err)
	}
}

func (w *world) couriers() *Couriers {
	logger := logrus.New()
	logger.SetOutput(w)
	logger.SetLevel(logrus.DebugLevel)
	return &Couriers{Store: w.store, Fleet: "f", Node: "web1", Log: logrus.NewEntry(logger)}
}

// once sends what there is, as a pull of a host without an agent does.
func (w *world) once(sinks ...*Sink) {
	w.t.Helper()
	if err := w.run(w.t.Context(), sinks, false); err != nil {
		w.t.Fatal(err)
	}
}

// run runs the couriers: over the wire of a world in virtual time, else over the network.
func (w *world) run(ctx context.Context, sinks []*Sink, follow bool) error {
	if w.wire != nil {
		return w.couriers().run(ctx, w.since, sinks, follow, w.wire.client)
	}
	return w.couriers().Run(ctx, w.since, sinks, follow)
}

// follow goes on sending until the test ends, or end is called.
func (w *world) follow(sinks ...*Sink) (end func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	var done sync.WaitGroup
	done.Go(func() { _ = w.run(ctx, sinks, true) })
	end = func() { cancel(); done.Wait() }
	w.t.Cleanup(end)
	return end
}

// damage writes what pullet itself refuses to write.
func (w *world) damage(key, value string) {
	w.t.Helper()
	other, err := clientv3.New(clientv3.Config{Endpoints: w.store.Client.Endpoints()})
	if err != nil {
		w.t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.Put(w.t.Context(), key, value); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) record(name string) state.Sink {
	w.t.Helper()
	all, err := w.store.Sinks.All(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return all[name]
}

// awaitRecord waits until the record of a sink satisfies done.
func (w *world) awaitRecord(name string, done func(state.Sink) bool) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	changes := w.store.Client.Watch(ctx, "/pullet/f/sink/", clientv3.WithPrefix())
	for !done(w.record(name)) {
		if _, open := <-changes; !open {
			w.t.Fatalf("%+v", w.record(name))
		}
	}
}

// receiver is a web server that answers as the test says, and records the ids of the events that it accepted.
type receiver struct {
	*httptest.Server
	mu   sync.Mutex
	took []string
	more chan struct{} // closed when took grows, and replaced
}

func (r *receiver) take(ids []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.took = append(r.took, ids...)
	close(r.more)
	r.more = make(chan struct{})
}

func newReceiver(t *testing.T, answers func(ids []string, w http.ResponseWriter, r *http.Request) int) *receiver {
	t.Helper()
	out := &receiver{more: make(chan struct{})}
	out.Server = httptest.NewServer(out.handler(answers))
	t.Cleanup(out.Close)
	return out
}

// handler answers requests with the status that answers returns. If answers is nil, it accepts everything.
func (r *receiver) handler(answers func(ids []string, w http.ResponseWriter, r *http.Request) int) http.HandlerFunc {
	return func(w http.ResponseWriter, request *http.Request) {
		body, _ := io.ReadAll(request.Body)
		request.Body = io.NopCloser(bytes.NewReader(body))
		ids := idsOf(body)
		code := http.StatusNoContent
		if answers != nil {
			code = answers(ids, w, request)
		}
		if code/100 == 2 {
			r.take(ids)
		}
		if code > 0 {
			w.WriteHeader(code)
		}
	}
}

func idsOf(body []byte) (ids []string) {
	type event struct{ ID string }
	var list []event
	if json.Unmarshal(body, &list) != nil {
		list = make([]event, 1)
		_ = json.Unmarshal(body, &list[0])
	}
	for _, e := range list {
		ids = append(ids, e.ID)
	}
	return ids
}

// awaits waits until the receiver accepted these events, in this order, and no others.
func (r *receiver) awaits(t *testing.T, ids ...string) {
	t.Helper()
	limit := time.After(patience.Stretch(time.Minute))
	for {
		took, more := r.state()
		if slices.Equal(took, ids) {
			return
		}
		select {
		case <-more:
		case <-limit:
			t.Fatalf("it took %v, want %v", took, ids)
		}
	}
}

// state returns the ids so far, and a channel that is closed when there are more.
func (r *receiver) state() (took []string, more <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.took), r.more
}

func (r *receiver) has(ids []string) bool {
	took, _ := r.state()
	return slices.Equal(took, ids)
}

func to(name string, r *receiver) *Sink {
	return &Sink{Name: name, Type: CloudEvents, URL: r.URL + "/hidden-path?hidden=query", Takes: func(string) bool { return true }, Body: noTemplate}
}

// TestSends: a new sink begins with what happens from now on. Each gets what it takes, in the order of the log, and
// nothing that was told before; the next reactor goes on where the last one was.
func TestSends(t *testing.T) {
	w := newWorld(t)
	all, some := newReceiver(t, nil), newReceiver(t, nil)
	one, two := to("all", all), to("some", some)
	two.Takes, two.Batch = func(name string) bool { return name == "a" }, 2
	w.happens("a-0")
	w.once(one, two)
	w.happens("a-1", "b-2", "a-3", "a-4")
	w.happens("b-5")
	w.once(one, two)
	all.awaits(t, "a-1", "b-2", "a-3", "a-4", "b-5")
	some.awaits(t, "a-1", "a-3", "a-4")
	w.lead()
	end := w.follow(one, two)
	w.happens("b-6", "a-7")
	all.awaits(t, "a-1", "b-2", "a-3", "a-4", "b-5", "b-6", "a-7")
	some.awaits(t, "a-1", "a-3", "a-4", "a-7")
	w.awaitRecord("some", func(r state.Sink) bool { return r.Sent == 4 })
	end()
	if r := w.record("some"); r.Sent != 4 || r.Waiting != 0 || r.Type != CloudEvents || r.To != strings.TrimPrefix(some.URL, "http://") {
		t.Errorf("%+v", r)
	}
	w.once(two)
	if r := w.record("all"); r.By != "" {
		t.Errorf("the record of a sink that is gone is there: %+v", r)
	}
}

// TestKilledBetweenSendingAndRecording: what a reactor sent and did not record is sent again, with the same id, and
// nothing is left out.
func TestKilledBetweenSendingAndRecording(t *testing.T) {
	w := newWorld(t)
	ctx, kill := context.WithCancel(t.Context())
	r := newReceiver(t, func(ids []string, _ http.ResponseWriter, _ *http.Request) int {
		if ids[0] == "a-2" {
			kill() // it is there, and the answer finds nobody
		}
		return http.StatusOK
	})
	s := to("audit", r)
	w.once(s)
	w.happens("a-1", "a-2", "a-3")
	if err := w.couriers().Run(ctx, w.since, []*Sink{s}, true); err != nil {
		t.Fatal(err)
	}
	w.lead()
	w.once(s)
	r.awaits(t, "a-1", "a-2", "a-2", "a-3")
	if got := w.record("audit"); got.Sent != 3 || got.Dropped != 0 {
		t.Errorf("%+v", got)
	}
}

// TestReplacedReactor: who is not the reactor any more records nothing, and stops.
func TestReplacedReactor(t *testing.T) {
	w := newWorld(t)
	r := newReceiver(t, nil)
	s := to("audit", r)
	w.once(s)
	before, old := w.record("audit"), w.since
	w.lead()
	w.happens("a-1", "a-2")
	if err := w.couriers().Run(t.Context(), old, []*Sink{s}, true); err != nil {
		t.Fatal(err)
	}
	if got := w.record("audit"); got != before {
		t.Errorf("%+v", got)
	}
	r.awaits(t, "a-1")
	w.once(s)
	r.awaits(t, "a-1", "a-1", "a-2")
}

// TestRefusedEvents: what a receiver refuses for good is dropped and counted, and those after it are sent. Of a batch
// only the one that it does not want is dropped.
func TestRefusedEvents(t *testing.T) {
	w := newWorld(t)
	answers := func(ids []string, _ http.ResponseWriter, _ *http.Request) int {
		if slices.Contains(ids, "a-2") {
			return http.StatusGone
		}
		return http.StatusOK
	}
	one, many := newReceiver(t, answers), newReceiver(t, answers)
	a, b := to("one", one), to("many", many)
	b.Batch = 3
	w.once(a, b)
	w.happens("a-1", "a-2", "a-3", "a-4", "a-5")
	w.once(a, b)
	one.awaits(t, "a-1", "a-3", "a-4", "a-5")
	many.awaits(t, "a-1", "a-3", "a-4", "a-5")
	for _, name := range []string{"one", "many"} {
		if r := w.record(name); r.Dropped != 1 || r.Sent != 4 || r.Failures != 0 || r.Error != "the receiver answered 410 Gone" {
			t.Errorf("%+v", r)
		}
	}
	if !strings.Contains(w.logged(), "an event is dropped: the receiver answered 410 Gone") {
		t.Error(w.logged())
	}
	c := to("template", one)
	c.Type, c.Body = JSON, func(map[string]any) ([]byte, bool, error) { return nil, true, fmt.Errorf("no JSON") }
	w.once(c)
	w.happens("a-6")
	w.once(c)
	if r := w.record("template"); r.Dropped != 1 || r.Error != "no JSON" {
		t.Errorf("%+v", r)
	}
}

// TestPagesThatAreGone: the log is the spool, and has an end: pages that were removed before they were sent, and those
// that cannot be read, are counted and said.
func TestPagesThatAreGone(t *testing.T) {
	w := newWorld(t)
	r := newReceiver(t, nil)
	s := to("audit", r)
	w.happens("a-0")
	w.once(s)
	for i := range 12 {
		w.happens(fmt.Sprintf("a-%d", i+1))
	}
	page := func(n int) string { return fmt.Sprintf("/pullet/f/happened/%010d", n) }
	for n := 3; n <= 8; n++ {
		if _, err := w.store.Client.Delete(t.Context(), page(n)); err != nil {
			t.Fatal(err)
		}
	}
	w.damage(page(13), "{")
	w.once(s)
	r.awaits(t, "a-1", "a-8", "a-9", "a-10", "a-11")
	if got := w.record("audit"); got.Lost != 7 || got.Page != 14 || got.Sent != 5 {
		t.Errorf("%+v", got)
	}
	cursor := state.Cursor{Page: 40, First: 30}
	if _, err := w.store.Client.Txn(t.Context()).Then(state.Put("/pullet/f/reactor/cursor", cursor)).Commit(); err != nil {
		t.Fatal(err)
	}
	w.once(s)
	if got := w.record("audit"); got.Lost != 7+16+11 || got.Page != 41 {
		t.Errorf("%+v", got)
	}
	if !strings.Contains(w.logged(), "16 pages of the log of events were removed before they were sent") {
		t.Error(w.logged())
	}
	if _, err := w.store.Client.Delete(t.Context(), "/pullet/f/reactor/cursor"); err != nil {
		t.Fatal(err)
	}
	w.once(s)
	if got := w.record("audit"); got.Page != 1 || got.Lost != 7+16+11+1 { // the log began anew
		t.Errorf("%+v", got)
	}
	w.damage("/pullet/f/sink/audit", `{"page":-1}`)
	w.once(s)
	if got := w.record("audit"); got.Page != 1 || got.Lost != 0 {
		t.Errorf("%+v", got)
	}
}

// TestHostileSinkRecords: whatever a host writes as the record of a sink, what happens next is sent: at once, or after
// the longest pause where it says that the receiver failed just now.
func TestHostileSinkRecords(t *testing.T) {
	w := newWorld(t)
	r := newReceiver(t, nil)
	s := to("audit", r)
	w.once(s)
	const most = `{"page":2147483647,"index":1000,"sent":1073741824,"waiting":1073741824,"dropped":1073741824,` +
		`"lost":1073741824,"by":"web9","at":"2199-01-01T00:00:00Z","since":"2199-01-01T00:00:00Z","error":"x"}`
	var want []string
	for i, record := range []string{most, "{", "null", `{"page":0,"by":"web1"}`, strings.Replace(most, "2147483647", "1", 1)} {
		w.damage("/pullet/f/sink/audit", record)
		w.once(s)
		w.happens(fmt.Sprintf("a-%d", i))
		w.once(s)
		if got := w.record("audit"); got.Failures != 0 || got.By != "web1" {
			t.Errorf("%s: %+v", record, got)
		}
		want = append(want, fmt.Sprintf("a-%d", i))
	}
	c := &courier{Couriers: w.couriers(), Sink: s}
	c.begin(map[string]state.Sink{"audit": {Failures: 1 << 30, At: time.Now()}}, 1)
	if c.pause > mostWait || c.pause < mostWait/2 {
		t.Error(c.pause)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range want {
		if !slices.Contains(r.took, id) {
			t.Errorf("%s was not sent: %v", id, r.took)
		}
	}
}

// TestSecretsStayHere: the token and the signature are what their files say now. Neither these nor the url, but for its
// host, are in the log, on record or in an error, whatever the receiver does with them.
func TestSecretsStayHere(t *testing.T) {
	w := newWorld(t)
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	var signed bool
	mirror := newReceiver(t, func(_ []string, w http.ResponseWriter, r *http.Request) int {
		body, _ := io.ReadAll(r.Body)
		mac := hmac.New(sha256.New, []byte("hidden-key"))
		mac.Write(body)
		signed = r.Header.Get("X-Signature") == "sha256="+hex.EncodeToString(mac.Sum(nil)) &&
			r.Header.Get("Authorization") == "Bearer hidden-token" && r.URL.Path == "/hidden-path" && r.URL.RawQuery == "hidden=query"
		if len(body) > 0 && bytes.Contains(body, []byte("a-1")) {
			return http.StatusOK
		}
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return http.StatusTeapot
		}
		fmt.Fprintf(conn, "%s %s %s\r\n\r\n", r.Header.Get("Authorization"), r.Header.Get("X-Signature"), r.URL)
		conn.Close()
		return 0
	})
	s := to("audit", mirror)
	s.URLFile, s.URL = write("url", s.URL+"\n"), ""
	s.TokenFile, s.SignatureFile = write("token", "hidden-token\n"), write("key", "hidden-key")
	s.Secret, s.CheckURL = os.ReadFile, func(string) error { return nil }
	w.once(s)
	w.happens("a-1")
	w.once(s)
	if mirror.awaits(t, "a-1"); !signed {
		t.Error("the receiver did not get what the files say")
	}
	w.happens("a-2")
	w.once(s)
	if r := w.record("audit"); r.Error != "what answers does not speak HTTP as it should, or not with TLS" {
		t.Errorf("%+v", r)
	}
	for file, says := range map[string]string{
		"token": "tokenFile: " + filepath.Join(dir, "token") + " does not hold one line", "key": "signatureFile: ", "url": "urlFile: ",
	} {
		write(file, "hidden-1\nhidden-2")
		w.lead()
		retry := w.record("audit")
		retry.Failures = 0
		if _, err := w.store.Sinks.Keep(t.Context(), w.since, "audit", retry); err != nil {
			t.Fatal(err)
		}
		w.once(s)
		if r := w.record("audit"); !strings.Contains(r.Error, says) || r.Failures != 1 {
			t.Errorf("%+v", r)
		}
		write(file, map[string]string{"token": "hidden-token", "key": "hidden-key", "url": mirror.URL + "/hidden-path"}[file])
	}
	all, err := w.store.Client.Get(t.Context(), "", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range all.Kvs {
		if bytes.Contains(kv.Value, []byte("hidden")) {
			t.Errorf("%s: %s", kv.Key, kv.Value)
		}
	}
	if strings.Contains(w.logged(), "hidden") {
		t.Error(w.logged())
	}
}

// TestRedirectsAreNotFollowed: another server gets neither the event nor the token.
func TestRedirectsAreNotFollowed(t *testing.T) {
	w := newWorld(t)
	other := newReceiver(t, nil)
	r := newReceiver(t, func(_ []string, w http.ResponseWriter, _ *http.Request) int {
		w.Header().Set("Location", other.URL)
		return http.StatusTemporaryRedirect
	})
	s := to("chat", r)
	w.once(s)
	w.happens("a-1")
	w.once(s)
	if got := w.record("chat"); !strings.Contains(got.Error, "307 Temporary Redirect: redirects are not followed") || got.Waiting != 1 {
		t.Errorf("%+v", got)
	}
	other.awaits(t)
}

// TestWaits: pauses grow from a second to five minutes, and what a receiver asks for is bounded as well.
func TestWaits(t *testing.T) {
	for failures, want := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 9: 256 * time.Second, 10: mostWait, 1 << 30: mostWait} {
		if got := wait(failures, io.EOF); got != want {
			t.Errorf("%d: %s", failures, got)
		}
	}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "-1": 0, "99999999": mostWait, "99999999999999999999999": 0, "soon": 0,
		now.Add(time.Minute).Format(http.TimeFormat): time.Minute, now.Add(-time.Minute).Format(http.TimeFormat): 0,
	} {
		if got := retryAfter(text, now); got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
}

// TestJudge: what a receiver does not take of one event drops it. What is wrong with the token, the address or the
// moment drops nothing.
func TestJudge(t *testing.T) {
	for code, drops := range map[int]bool{400: true, 410: true, 413: true, 422: true, 401: false, 403: false, 404: false, 405: false, 408: false, 429: false, 500: false, 503: false} {
		err := judge(&http.Response{StatusCode: code, Header: http.Header{}}, time.Now())
		if _, dropped := errors.AsType[refusedError](err); err == nil || dropped != drops {
			t.Errorf("%d: %v", code, err)
		}
	}
	if err := judge(&http.Response{StatusCode: 204}, time.Now()); err != nil {
		t.Error(err)
	}
}
