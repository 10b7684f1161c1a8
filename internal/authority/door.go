package authority

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"
)

const (
	failuresAtOnce    = 50 // requests that fail before the door is closed for a while
	failuresPerSecond = 10 // after these
	bodyTime          = 10 * time.Second
)

// Handler is the door, where a new host gets its certificate: POST /join with an Asked, and the Answer of admit. Its
// server speaks TLS 1.3 with a Server's credentials, whose chain has the authority's certificate, which Join looks for;
// it bounds connections, and the time for handshakes and headers.
//
// A *Refusal of admit becomes the status 403 with its reason. The client does not see another error, which becomes 500,
// and goes to log; admit and log are called by several goroutines at once. An answer may be lost on its way: admit sees
// to what a token is worth then.
//
// Bodies are read for ten seconds and up to 64 KiB. Over all clients, 50 requests may fail at once and then ten a
// second; others get the status 429, with which Join waits. So a flood cannot try tokens, and costs the fleet's record
// next to nothing; while it lasts, new hosts wait, too.
func Handler(admit func(ctx context.Context, a Asked) (Answer, error), log func(error)) http.Handler {
	d := &door{admit: admit, log: log, patience: bodyTime, failures: newBucket(failuresAtOnce, failuresPerSecond)}
	mux := http.NewServeMux()
	mux.Handle("POST "+joinPath, d)
	return mux
}

type door struct {
	admit    func(ctx context.Context, a Asked) (Answer, error)
	log      func(error)
	patience time.Duration
	failures *bucket
}

// ServeHTTP answers one host. A request whose form is wrong is refused before it counts as a try.
func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	asked, status, err := d.read(w, r)
	if err != nil {
		reply(w, status, refused{Error: err.Error()})
		return
	}
	if !d.failures.take(time.Now()) {
		w.Header().Set("Retry-After", "1")
		reply(w, http.StatusTooManyRequests, refused{Error: "too many hosts were refused just now: try again in a moment"})
		return
	}
	answer, err := d.admit(r.Context(), asked)
	if err != nil {
		d.refuse(w, err)
		return
	}
	text, err := json.Marshal(answer)
	if err != nil || len(text) >= maxAnswer { // a line end follows
		d.refuse(w, fmt.Errorf("the answer for %s has %d bytes: a host takes %d at most", answer.Name, len(text), maxAnswer))
		return
	}
	d.failures.giveBack()
	reply(w, http.StatusOK, json.RawMessage(text))
}

// read reads what a host asks, or says with which status it is refused.
func (d *door) read(w http.ResponseWriter, r *http.Request) (asked Asked, status int, err error) {
	deadline := http.NewResponseController(w)
	_ = deadline.SetReadDeadline(time.Now().Add(d.patience)) // a connection that has none is one of a test
	err = decode(http.MaxBytesReader(w, r.Body, maxAsked), maxAsked, &asked)
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		return Asked{}, http.StatusRequestEntityTooLarge, fmt.Errorf("the request has more than %d bytes", maxAsked)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return Asked{}, http.StatusRequestTimeout, fmt.Errorf("the request did not arrive within %s", d.patience)
	case err != nil:
		return Asked{}, http.StatusBadRequest, fmt.Errorf("the request: %w", err)
	}
	_ = deadline.SetReadDeadline(time.Time{}) // it would end the context of the request
	if _, err := TokenID(asked.Token); err != nil {
		return Asked{}, http.StatusForbidden, err
	}
	return asked, http.StatusOK, nil
}

// refuse answers a host that gets no certificate.
func (d *door) refuse(w http.ResponseWriter, err error) {
	var r *Refusal
	if errors.As(err, &r) {
		reply(w, http.StatusForbidden, refused{Error: r.Reason})
		return
	}
	d.log(err)
	reply(w, http.StatusInternalServerError, refused{Error: "the authority cannot answer now"})
}

// reply writes a value as the body of an answer.
func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // a client that left does not miss it
}
