package webhook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/time/rate"

	"github.com/pullet/pullet/state"
)

// Push is a push to a repository.
type Push struct {
	Repository string // its name in the configuration
	Ref        string // refs/heads/main, refs/tags/v1.2.0
	Commit     string // what it is now
}

// Outside is what hooks reach.
type Outside struct {
	Secret  func(file string) ([]byte, error)          // reads a file with secrets
	Deliver func(context.Context, []state.Event) error // keeps events; they have no ID, By and Time yet
	Pushed  func(ctx context.Context, push Push) error // tells the fleet of a push
	Log     *logrus.Entry                              // learns what was refused, once a minute for each hook and reason
	now     func() time.Time
}

// The bounds of requests.
const (
	maxBody     = 1 << 20
	perSecond   = 20  // of a hook, in the long run
	burst       = 100 // of a hook at once
	deliverTime = 10 * time.Second
)

// Handler serves the hooks.
type Handler struct {
	hooks  map[string]*endpoint
	counts counts
	log    *logrus.Entry
	now    func() time.Time
}

// New serves hooks that Check found nothing wrong with. An error says whose secrets cannot be read.
func New(hooks []Hook, o Outside) (*Handler, error) {
	if o.now == nil {
		o.now = time.Now
	}
	out := &Handler{hooks: map[string]*endpoint{}, log: o.Log, now: o.now}
	var errs []error
	for _, h := range hooks {
		e := &endpoint{Hook: h, Outside: o, kind: kinds()[h.Type], limit: rate.NewLimiter(perSecond, burst)}
		if _, err := e.secrets(); err != nil {
			errs = append(errs, fmt.Errorf("webhook %s: %w", h.Name, err))
		}
		out.hooks[h.Name] = e
	}
	return out, errors.Join(errs...)
}

// ServeHTTP answers a request. What is refused changes nothing, and learns no more than that.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, ours := strings.CutPrefix(r.URL.Path, Path)
	hook, known := h.hooks[name]
	answer := unknown
	if ours && known {
		answer = hook.answer(w, r)
	} else {
		name = ""
	}
	h.tell(name, answer)
	for key, value := range answer.header {
		w.Header().Set(key, value)
	}
	if answer.text == "" {
		w.WriteHeader(answer.status)
		return
	}
	http.Error(w, answer.text, answer.status)
}

// tell counts an answer, and says in the log what was refused.
func (h *Handler) tell(hook string, a *answer) {
	n, news := h.counts.add(hook, a.result, h.now())
	if !news || a.status < 300 || a == unknown { // who looks for other things than hooks is no news
		return
	}
	log := h.log.WithFields(logrus.Fields{"hook": hook, "result": a.result, "count": n})
	if a.cause != nil {
		log = log.WithError(a.cause)
	}
	log.Warn("a webhook was refused")
}

// answer is what becomes of a request.
type answer struct {
	status int
	result string // a word for the count
	text   string // for a sender that proved itself; "" is an empty body
	header map[string]string
	cause  error // for the log
}

// What becomes of requests, by the words of the counts.
const (
	accepted = "accepted"
	ignored  = "ignored"
	unusable = "unusable"
	failed   = "failed"
)

// The answers that say the same to everybody.
var (
	done       = &answer{status: http.StatusNoContent, result: accepted}
	passedOver = &answer{status: http.StatusAccepted, result: ignored}
	unknown    = &answer{status: http.StatusNotFound, result: "unknown"}
	noPost     = &answer{
		status: http.StatusMethodNotAllowed, result: "method", header: map[string]string{"Allow": http.MethodPost},
	}
	wrongSecret = &answer{status: http.StatusUnauthorized, result: "secret"}
	tooLarge    = &answer{status: http.StatusRequestEntityTooLarge, result: "size"}
	tooMany     = &answer{
		status: http.StatusTooManyRequests, result: "rate", header: map[string]string{"Retry-After": "1"},
	}
	cutOff   = &answer{status: http.StatusBadRequest, result: unusable}
	replayed = &answer{
		status: http.StatusConflict, result: "replay", text: "this delivery was taken before, or its time is not now",
	}
)

// endpoint is a hook at work.
type endpoint struct {
	Hook
	Outside
	kind   kind
	limit  *rate.Limiter
	memory memory
}

// secrets are those that count now: a file that was exchanged counts from the next request on.
func (e *endpoint) secrets() ([]string, error) {
	text, err := e.Secret(e.secretFile())
	if err != nil {
		return nil, err
	}
	return secrets(e.secretFile(), text)
}

// answer takes one request to its end. Who sent it is proved before anything else is done with it; whoever does not
// have the secret cannot use up what the hook takes in a second.
func (e *endpoint) answer(w http.ResponseWriter, r *http.Request) *answer {
	if r.Method != http.MethodPost {
		return noPost
	}
	secrets, err := e.secrets()
	if err != nil {
		return &answer{status: http.StatusServiceUnavailable, result: failed, cause: err}
	}
	verify := e.kind.prove(e, r.Header, secrets)
	if verify == nil {
		return wrongSecret
	}
	body, refused := readBody(w, r)
	if refused != nil {
		return refused
	}
	ids, refused := verify(body)
	switch {
	case refused != nil:
		return refused
	case !e.limit.AllowN(e.now(), 1):
		return tooMany
	case !e.memory.take(ids, e.now()):
		return replayed
	}
	out := e.act(r.Context(), r.Header, body)
	if out.status >= 300 { // the sender may try the same again
		e.memory.forget(ids)
	}
	return out
}

// readBody reads a body within its bounds.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, *answer) {
	if r.ContentLength > maxBody {
		return nil, tooLarge
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return nil, tooLarge
	}
	if err != nil {
		return nil, cutOff
	}
	return body, nil
}

// content is what a request says: events, or a push; neither: there is nothing to do.
type content struct {
	events []state.Event
	push   *Push
	ping   bool // the sender only tries the hook
}

// act does what a request says that was proved.
func (e *endpoint) act(ctx context.Context, header http.Header, body []byte) *answer {
	says, err := e.kind.read(e, header, body)
	if err == nil {
		err = says.check()
	}
	if err != nil {
		return &answer{status: http.StatusBadRequest, result: unusable, text: err.Error(), cause: err}
	}
	ctx, cancel := context.WithTimeout(ctx, deliverTime)
	defer cancel()
	switch {
	case says.push != nil:
		err = e.Pushed(ctx, *says.push)
	case len(says.events) > 0:
		err = e.Deliver(ctx, says.events)
	case !says.ping:
		return passedOver
	}
	if err != nil {
		return &answer{
			status: http.StatusServiceUnavailable, result: failed, text: "not now: try again", cause: err,
			header: map[string]string{"Retry-After": "10"},
		}
	}
	return done
}

// check finds what the fleet could not keep.
func (c *content) check() error {
	for _, e := range c.events {
		e.ID, e.By = "id", "host" // both are given later
		if err := e.Check(); err != nil {
			return fmt.Errorf("event %s: %w", e.Name, err)
		}
	}
	return nil
}
