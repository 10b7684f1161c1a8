package offer

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/safetext"
	"github.com/pullet/pullet/render"
)

// Wait waits until enough instances of a service are known to the fleet. Too few is no failure: the step is pending,
// says what is missing, and which hosts should offer it by base/services.yaml and do not; the next pull goes on with
// it. What comes after it in its job waits with it, so that nothing is written from half of the data; in other orders
// than ansible, what requires it. Other jobs go on. While etcd is away, what the host saw last counts.
//
// Example:
//
//	steps:
//	  - name: databases answer
//	    action: service.wait
//	    parameters: {name: db, count: 2, reachable: tcp, timeout: 5m}
type Wait struct {
	Name  string `yaml:"name,required"` // of the service
	Count int    `yaml:"count"`         // how many instances; default 1
	// ready: on hosts that were validated; announced: their addresses are enough; default ready
	Kind string `yaml:"kind" words:"announced ready"`
	// they also have to answer: a connection, or GET of path with a status below 400
	Reachable string          `yaml:"reachable" words:"tcp http"`
	Path      string          `yaml:"path"`     // of the request; default /
	Tag       string          `yaml:"tag"`      // only instances with this tag count
	Timeout   render.Duration `yaml:"timeout"`  // how long to wait in one pull; default 10m
	Interval  render.Duration `yaml:"interval"` // between two looks; default 5s

	offerers []string // who should offer it
}

// How long service.wait waits, how often it looks, and how long an instance has to answer.
const (
	defaultServiceWait = 10 * time.Minute
	defaultServiceLook = 5 * time.Second
	answerTime         = 3 * time.Second
)

// Bind checks the parameters.
func (a *Wait) Bind(b apply.Binding) error {
	switch {
	case !render.ValidServiceName(a.Name):
		return apply.BadParam("name", "%q: a service is named with letters, digits and dashes", a.Name)
	case a.Count < 0:
		return apply.BadParam("count", "%d is no number of instances", a.Count)
	case a.Path != "" && a.Reachable != "http":
		return apply.BadParam("path", "path is for reachable: http")
	}
	if a.Count == 0 {
		a.Count = 1
	}
	if a.Timeout == 0 {
		a.Timeout = render.Duration(defaultServiceWait)
	}
	if a.Interval == 0 {
		a.Interval = render.Duration(defaultServiceLook)
	}
	a.offerers = b.Catalog.Offerers(a.Name)
	return nil
}

// Check looks who is missing.
func (a *Wait) Check(ctx context.Context, h *apply.Host) (apply.Change, error) {
	missing, err := a.missing(ctx, h)
	if err != nil || missing == "" {
		return apply.Change{}, err
	}
	return apply.Change{Summary: "wait: " + missing}, nil
}

// Apply looks again; it is asked until nobody is missing.
func (a *Wait) Apply(ctx context.Context, h *apply.Host, _ apply.Change) (apply.Output, error) {
	missing, err := a.missing(ctx, h)
	if err != nil || missing == "" {
		return apply.Output{}, err
	}
	if h.Fleet.Stale() != "" { // to look again would show the same
		return apply.Output{}, &apply.PendingError{Reason: missing}
	}
	return apply.Output{}, &apply.PendingError{Reason: missing, Every: a.Interval.Std(), Within: a.Timeout.Std()}
}

// missing says what there is not enough of; "" is nothing.
func (a *Wait) missing(ctx context.Context, h *apply.Host) (string, error) {
	if h.Fleet == nil {
		return "", errNoFleet
	}
	all, err := h.Fleet.Services(ctx, a.Name)
	if err != nil { // it may be back before the wait is over
		return "", &apply.PendingError{Reason: away(err).Error(), Every: a.Interval.Std(), Within: a.Timeout.Std()}
	}
	var good, bad []string
	for _, s := range all {
		switch why := a.wrong(ctx, s); why {
		case "":
			good = append(good, s.Node)
		default:
			bad = append(bad, s.Node+" ("+why+")")
		}
	}
	if len(good) >= a.Count {
		return "", nil
	}
	text := fmt.Sprintf("%d of %d instances of service %s", len(good), a.Count, a.Name)
	if len(good) > 0 {
		text += ": " + safetext.Some(good, maxHosts)
	}
	if len(bad) > 0 {
		text += "; not yet " + safetext.Some(bad, maxHosts)
	}
	if absent := a.absent(all); len(absent) > 0 {
		text += "; not there " + safetext.Some(absent, maxHosts)
	}
	if stale := h.Fleet.Stale(); stale != "" {
		text += " (" + stale + ")"
	}
	return text, nil
}

// absent are those who should offer the service and did not announce it.
func (a *Wait) absent(all []render.Service) []string {
	var out []string
	for _, node := range a.offerers {
		if !slices.ContainsFunc(all, func(s render.Service) bool { return s.Node == node }) {
			out = append(out, node)
		}
	}
	return out
}

// maxHosts is how many hosts a message names.
const maxHosts = 10

// wrong says why an instance does not count; "" if it does.
func (a *Wait) wrong(ctx context.Context, s render.Service) string {
	hasTag := a.Tag == ""
	for _, t := range s.Tags {
		hasTag = hasTag || t == a.Tag
	}
	switch {
	case !hasTag:
		return "no tag " + a.Tag
	case a.Kind != "announced" && !s.Ready && s.Why != "":
		return "announced, not ready: " + s.Why
	case a.Kind != "announced" && !s.Ready:
		return "announced, not ready"
	case a.Reachable == "":
		return ""
	case s.Address == "" || s.Port == 0:
		return "no address and port to ask"
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	if err := a.reach(ctx, net.JoinHostPort(s.Address, strconv.Itoa(s.Port))); err != nil {
		return err.Error()
	}
	return ""
}

// reach asks an instance.
func (a *Wait) reach(ctx context.Context, address string) error {
	if a.Reachable == "tcp" {
		return connect(ctx, address)
	}
	return get(ctx, "http://"+address+"/"+strings.TrimPrefix(a.Path, "/"))
}

// connect asks for a connection.
func connect(ctx context.Context, address string) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}

// get asks for an answer with a status below 400.
func get(ctx context.Context, url string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode >= 400 {
		return fmt.Errorf("%s answers %s", url, answer.Status)
	}
	return nil
}
