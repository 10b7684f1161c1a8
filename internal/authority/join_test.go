package authority

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// fleet is a fleet whose door is open: the admit of its door is that of a real one, with invitations in memory.
type fleet struct {
	authority *Authority
	mu        sync.Mutex
	open      map[string]Invitation
	spoil     func(*Answer) // what the server does wrong
}

func (f *fleet) admit(_ context.Context, a Asked) (Answer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	id, err := TokenID(a.Token)
	if err != nil {
		return Answer{}, err
	}
	if err := f.open[id].Opens(a.Token, time.Now()); err != nil {
		return Answer{}, err
	}
	s := Subject{Fleet: "prod", Name: f.open[id].Name, Kind: f.open[id].Kind}
	chain, err := f.authority.Issue([]byte(a.Request), s, nil, DefaultLife, time.Now())
	if err != nil {
		return Answer{}, err
	}
	delete(f.open, id)
	answer := Answer{Name: s.Name, Fleet: s.Fleet, Certificate: string(chain), Bundle: string(f.authority.Bundle()),
		Endpoints: []string{"https://10.0.0.1:2379"}, Configuration: "fleet: prod\n", Files: map[string][]byte{"keys.txt": {0, 1}}}
	if f.spoil != nil {
		f.spoil(&answer)
	}
	return answer, nil
}

func (f *fleet) invite(t *testing.T, until time.Time) (token string) {
	t.Helper()
	i, token, err := Invite("web1", Node, "ada", until)
	if err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open[i.ID] = i
	return token
}

// serve answers at an address of its own with these credentials, and counts what it hears.
func serve(t *testing.T, credentials []byte, handler http.Handler) (address string, heard *sync.Map) {
	t.Helper()
	pair, err := tls.X509KeyPair(credentials, credentials)
	if err != nil {
		t.Fatal(err)
	}
	return serveWith(t, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13}, handler)
}

func serveWith(t *testing.T, config *tls.Config, handler http.Handler) (address string, heard *sync.Map) {
	t.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	heard = &sync.Map{}
	server := &http.Server{
		ErrorLog: log.New(io.Discard, "", 0),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			heard.Store(r.RemoteAddr, r.URL.Path)
			if got := r.Header.Get("Content-Type"); got != "application/json" {
				t.Errorf("the request is %q", got)
			}
			handler.ServeHTTP(w, r)
		}),
	}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return listener.Addr().String(), heard
}

func heardNothing(heard *sync.Map) bool {
	nothing := true
	heard.Range(func(any, any) bool { nothing = false; return false })
	return nothing
}

var door1 = Subject{Fleet: "prod", Name: "door1", Kind: Server}

// openFleet is a fleet and where its door is.
func openFleet(t *testing.T) (f *fleet, address string) {
	t.Helper()
	f = &fleet{authority: created(t, "prod", time.Now()), open: map[string]Invitation{}}
	credentials := credentialsOf(t, f.authority, door1, []string{"127.0.0.1", "door1"}, time.Now())
	address, _ = serve(t, credentials, Handler(f.admit, func(err error) { t.Error(err) }))
	return f, address
}

func TestJoin(t *testing.T) {
	f, address := openFleet(t)
	token := f.invite(t, time.Now().Add(time.Hour))
	key, csr, err := Request()
	if err != nil {
		t.Fatal(err)
	}
	asked := Asked{Token: token, Request: string(csr)}
	answer, err := Join(t.Context(), address, strings.ToUpper(f.authority.Fingerprint()), asked)
	if err != nil {
		t.Fatal(err)
	}
	credentials := append(key, answer.Certificate...)
	if _, err := tls.X509KeyPair(credentials, credentials); err != nil {
		t.Error(err)
	}
	if c, err := Inspect(credentials); err != nil || c.Subject != (Subject{"prod", "web1", Node}) || answer.Configuration != "fleet: prod\n" ||
		string(answer.Files["keys.txt"]) != "\x00\x01" || len(answer.Endpoints) != 1 {
		t.Error(c, answer, err)
	}
	late := f.invite(t, time.Now().Add(-time.Minute))
	for what, c := range map[string]struct{ token, err string }{
		"a token used twice": {token, "refuses this host: the token is wrong"},
		"a wrong token":      {aToken(t), "refuses this host: the token is wrong"},
		"no token":           {"please", "refuses this host: the token is wrong"},
		"a late token":       {late, "the invitation of web1 ended at"},
	} {
		_, err := Join(t.Context(), address, f.authority.Fingerprint(), Asked{Token: c.token, Request: string(csr)})
		wantError(t, what, err, c.err)
		var refusal *Refusal
		if !errors.As(err, &refusal) {
			t.Errorf("%s: %v is not the door's refusal", what, err)
		}
	}
	_, err = Join(t.Context(), address, f.authority.Fingerprint(), Asked{Token: f.invite(t, time.Now().Add(time.Hour)), Request: "x"})
	wantError(t, "no request", err, "refuses this host: the request for a certificate cannot be read")
}

// TestJoinAnswers: what a believed server says is held to what was asked.
func TestJoinAnswers(t *testing.T) {
	f, address := openFleet(t)
	other := created(t, "prod", time.Now())
	_, csr, err := Request()
	if err != nil {
		t.Fatal(err)
	}
	stolen := string(credentialsOf(t, f.authority, Subject{"prod", "web1", Node}, nil, time.Now()))
	for what, c := range map[string]struct {
		spoil func(*Answer)
		err   string
	}{
		"as it is":              {func(*Answer) {}, ""},
		"both authorities":      {func(a *Answer) { a.Bundle += string(other.Bundle()) }, ""},
		"no bundle":             {func(a *Answer) { a.Bundle = "" }, "the bundle of authorities: there are 0"},
		"another bundle":        {func(a *Answer) { a.Bundle = string(other.Bundle()) }, "without the authority that the invitation names"},
		"a bundle with a key":   {func(a *Answer) { a.Bundle = string(f.authority.Encode()) }, "in the place of a certificate"},
		"no certificate":        {func(a *Answer) { a.Certificate = "" }, "its certificate: there is none"},
		"another key":           {func(a *Answer) { a.Certificate = stolen }, "a key that this host did not ask for"},
		"another authority's":   {func(a *Answer) { a.Certificate = string(reissued(t, other, csr)) }, "did not sign it"},
		"another name":          {func(a *Answer) { a.Name = "web2" }, "it is for web2 of the fleet prod, its certificate for web1"},
		"another fleet":         {func(a *Answer) { a.Fleet = "test" }, "it is for web1 of the fleet test"},
		"a file elsewhere":      {func(a *Answer) { a.Files = map[string][]byte{"../a": nil} }, `its file "../a"`},
		"a file of a directory": {func(a *Answer) { a.Files = map[string][]byte{"a/b": nil} }, `its file "a/b"`},
		"a hidden file":         {func(a *Answer) { a.Files = map[string][]byte{".a": nil} }, `its file ".a"`},
		"an endpoint of two":    {func(a *Answer) { a.Endpoints = []string{"a\nb"} }, "its endpoint"},
	} {
		f.mu.Lock()
		f.spoil = c.spoil
		f.mu.Unlock()
		_, err := Join(t.Context(), address, f.authority.Fingerprint(), Asked{Token: f.invite(t, time.Now().Add(time.Hour)), Request: string(csr)})
		wantError(t, what, err, c.err)
	}
}

// reissued is a certificate of another authority for the same key.
func reissued(t *testing.T, a *Authority, csr []byte) []byte {
	t.Helper()
	chain, err := a.Issue(csr, Subject{"prod", "web1", Node}, nil, DefaultLife, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return chain
}

// TestJoinGarbage: a believed server may be ill, or another program's.
func TestJoinGarbage(t *testing.T) {
	a := created(t, "prod", time.Now())
	var answer http.HandlerFunc
	address, _ := serve(t, credentialsOf(t, a, door1, []string{"127.0.0.1"}, time.Now()), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answer(w, r) }))
	says := func(status int, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, text)
		}
	}
	for what, c := range map[string]struct {
		answer http.HandlerFunc
		err    string
	}{
		"garbage":                {says(200, "<html>"), "not the JSON that is expected"},
		"an unknown field":       {says(200, `{"name":"a","run":"rm"}`), "not the JSON that is expected"},
		"nothing":                {says(200, ""), "not the JSON that is expected"},
		"a huge answer":          {says(200, `{"name":"`+strings.Repeat("a", maxAnswer)), "more than 4194304 bytes"},
		"a web server":           {says(404, "<html>"), "status 404, which is not what an authority says"},
		"a huge refusal":         {says(403, strings.Repeat("a", maxAnswer)), "status 403, which is not what an authority says"},
		"no reason":              {says(403, `{"error":""}`), "status 403, which is not what an authority says"},
		"a reason for terminals": {says(403, `{"error":"no\u001b[2J\nroot #"}`), "refuses this host: no\u241b[2J root #"},
		"no answer now":          {says(500, `{"error":"the authority cannot answer now"}`), "has no certificate for this host: the authority cannot answer now"},
		"another address": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://"+address+"/elsewhere", http.StatusTemporaryRedirect)
		}, "status 307"},
		"no end": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "went away without an answer"},
	} {
		answer = c.answer
		_, err := Join(t.Context(), address, a.Fingerprint(), Asked{})
		wantError(t, what, err, c.err)
	}
}

// TestJoinWaits: while the door is too busy Join asks again, until its time is over.
func TestJoinWaits(t *testing.T) {
	f := &fleet{authority: created(t, "prod", time.Now()), open: map[string]Invitation{}}
	busy := 2
	door := Handler(f.admit, func(err error) { t.Error(err) })
	address, _ := serve(t, credentialsOf(t, f.authority, door1, []string{"127.0.0.1"}, time.Now()), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if busy > 0 {
			busy--
			reply(w, http.StatusTooManyRequests, refused{Error: "later"})
			return
		}
		door.ServeHTTP(w, r)
	}))
	_, csr, err := Request()
	if err != nil {
		t.Fatal(err)
	}
	j, err := newJoining(address, f.authority.Fingerprint(), Asked{Token: f.invite(t, time.Now().Add(time.Hour)), Request: string(csr)})
	if err != nil {
		t.Fatal(err)
	}
	j.pause = time.Millisecond
	if _, err := j.ask(t.Context()); err != nil || busy != 0 {
		t.Error(err, busy)
	}
	busy, j.pause = 1, time.Hour
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err = j.ask(ctx)
	wantError(t, "always busy", err, "the authority is too busy")
}

func TestJoinMistakes(t *testing.T) {
	good := created(t, "prod", noon).Fingerprint()
	for what, c := range map[string]struct{ address, fingerprint, err string }{
		"no port":              {"door1", good, "write HOST:PORT"},
		"a port by name":       {"door1:https", good, "write HOST:PORT"},
		"port 0":               {"door1:0", good, "write HOST:PORT"},
		"no host":              {":2390", good, "write HOST:PORT"},
		"a URL":                {"https://door1:2390", good, "write HOST:PORT"},
		"a user":               {"a@door1:2390", good, "write HOST:PORT"},
		"a zone":               {"[fe80::1%eth0]:2390", good, "write HOST:PORT"},
		"a path":               {"door1/a?:2390", good, "write HOST:PORT"},
		"no fingerprint":       {"door1:2390", "", "the fingerprint"},
		"half a fingerprint":   {"door1:2390", good[:40], "the fingerprint"},
		"another hash":         {"door1:2390", "sha1:" + good[7:], "the fingerprint"},
		"not all is a number":  {"door1:2390", good[:len(good)-1] + "g", "the fingerprint"},
		"more than the digits": {"door1:2390", good + "00", "the fingerprint"},
	} {
		_, err := Join(t.Context(), c.address, c.fingerprint, Asked{})
		wantError(t, what, err, c.err)
	}
}
