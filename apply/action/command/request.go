package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/lazyregexp"
	"github.com/pullet/pullet/internal/safetext"
	"github.com/pullet/pullet/render"
)

// Request sends a request to a web server. It succeeds when the answer has an expected status. Later steps read the
// status as ExitCode and, in words, as State, the body as StdOut (the first MiB of it) and, where it is JSON, its
// content as Data.
//
// Headers that hold a secret stand in a file on the host: what is sent is shown nowhere, neither headers nor body. A
// redirect to another host gets neither these headers nor the body, and one from https to http is not followed. No
// proxy is used.
//
// With creates, removes, unless or onlyif it is sent whenever they say so. Without, it is sent once for each version
// and set of parameters; runs: always makes it be sent at every pull. GET, HEAD and OPTIONS only read, and never count
// as a change.
//
// Example:
//
//	steps:
//	  - name: announce
//	    action: http.request
//	    parameters:
//	      url: https://deploy.example.org/api/hosts/{{ server.name }}
//	      method: PUT
//	      headersFile: /etc/pullet/deploy.headers
//	      json: {version: "{{ pullet.version }}"}
//	      status: [200, 201]
type Request struct {
	// http or https, without a password
	URL     string            `yaml:"url,required"`
	Method  string            `yaml:"method" words:"GET HEAD POST PUT PATCH DELETE OPTIONS"` // what to do; default GET
	Headers map[string]string `yaml:"headers"`                                               // sent with it
	// more of them, a line for each (Name: value), in a file of mode 0600
	HeadersFile string          `yaml:"headersFile"`
	Body        string          `yaml:"body"`      // what is sent, as it stands
	JSON        any             `yaml:"json"`      // what is sent, as JSON
	Status      render.Strings  `yaml:"status"`    // expected: numbers, or classes such as 2xx; default 2xx
	Redirects   int             `yaml:"redirects"` // how many are followed; 0: a redirect is the answer; default 10
	Timeout     render.Duration `yaml:"timeout"`   // for the whole exchange, and for each guard; default 30s
	CA          string          `yaml:"ca"`        // certificates to trust instead of the system's, a file on the host
	Cert        string          `yaml:"cert"`      // certificate to show, a file on the host
	Key         string          `yaml:"key"`       // key of cert, in a file of mode 0600
	Guards      `yaml:",inline"`

	body []byte
}

// newRequest has the defaults.
func newRequest() apply.Action {
	return &Request{Method: http.MethodGet, Redirects: 10, Timeout: render.Duration(30 * time.Second)}
}

// Bind checks the parameters.
func (a *Request) Bind(apply.Binding) error {
	paths := map[string]string{"headersFile": a.HeadersFile, "ca": a.CA, "cert": a.Cert, "key": a.Key}
	for _, err := range []error{a.checkURL(), absolute(paths), a.checkPaths(), a.checkStatus(), a.checkHeaders()} {
		if err != nil {
			return err
		}
	}
	switch {
	case (a.Cert == "") != (a.Key == ""):
		return apply.BadParam("cert", "cert and key belong together: give both")
	case a.Body != "" && a.JSON != nil:
		return apply.BadParam("json", "body and json exclude each other: keep one")
	case a.Redirects < 0:
		return apply.BadParam("redirects", "is less than 0")
	case a.Timeout <= 0:
		return apply.BadParam("timeout", "must be more than 0")
	}
	a.body = []byte(a.Body)
	if a.JSON != nil {
		var err error
		if a.body, err = json.Marshal(a.JSON); err != nil {
			return &apply.ParamError{Param: "json", Err: err}
		}
	}
	return nil
}

func (a *Request) checkURL() error {
	u, err := url.Parse(a.URL)
	switch {
	case err != nil: // it quotes the whole url
		return apply.BadParam("url", "cannot be parsed: write https://HOST/PATH")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return apply.BadParam("url", "%q is no address of a web server: write https://HOST/PATH", safetext.URL(u))
	case u.User != nil:
		return apply.BadParam("url", "holds a user or password: put an Authorization header into headersFile")
	case a.HeadersFile != "" && apply.Cleartext(u):
		return apply.BadParam("url", "is http, and the secrets of headersFile could be read on the way: use https")
	}
	return nil
}

var statusPattern = lazyregexp.New(`^[1-5]([0-9][0-9]|xx)$`)

func (a *Request) checkStatus() error {
	for _, s := range a.Status {
		if !statusPattern.MatchString(s) {
			return apply.BadParam("status", "%q is no status: write a number such as 204, or a class such as 2xx", s)
		}
	}
	return nil
}

// expected reports that the answer is as it should be.
func (a *Request) expected(code int) bool {
	wanted := a.Status
	if len(wanted) == 0 {
		wanted = render.Strings{"2xx"}
	}
	number := fmt.Sprint(code)
	return slices.Contains(wanted, number) || slices.Contains(wanted, number[:1]+"xx")
}

func (a *Request) checkHeaders() error {
	for name, value := range a.Headers {
		if err := checkHeader(name, value); err != nil {
			return &apply.ParamError{Param: "headers", Err: err}
		}
	}
	return nil
}

var headerName = lazyregexp.New("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

// checkHeader finds what cannot be sent, without showing the value.
func checkHeader(name, value string) error {
	if !headerName.MatchString(name) {
		return fmt.Errorf("%q is no name of a header", name)
	}
	if strings.ContainsAny(value, "\r\n\x00") {
		return fmt.Errorf("the value of %s has more than one line", name)
	}
	return nil
}

// String is the request in a few words, without what may be a secret.
func (a *Request) String() string {
	u, err := url.Parse(a.URL)
	if err != nil {
		return a.Method
	}
	return a.Method + " " + safetext.URL(u)
}

// reads reports a method that changes nothing.
func (a *Request) reads() bool {
	return a.Method == http.MethodGet || a.Method == http.MethodHead || a.Method == http.MethodOptions
}

// Check asks the guards. The server is not asked.
func (a *Request) Check(ctx context.Context, h *apply.Host) (apply.Change, error) {
	permitted, lack, err := a.permit(h, func(param string, args []string) (apply.Output, error) {
		ctx, cancel := context.WithTimeout(ctx, a.Timeout.Std())
		defer cancel()
		return h.Run(ctx, apply.Command{Args: args, Theirs: param})
	})
	if err != nil || !permitted {
		return apply.Change{}, err
	}
	return apply.Change{Summary: a.String(), Same: a.reads(), Lacks: lack}, nil
}

// Apply sends the request.
func (a *Request) Apply(ctx context.Context, h *apply.Host, change apply.Change) (apply.Output, error) {
	if err := change.Unanswered(); err != nil {
		return apply.Output{}, err
	}
	timeout := a.Timeout.Std()
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer within %s", timeout))
	defer cancel()
	out, err := a.exchange(ctx, h)
	var whole *url.Error // it quotes the whole url
	switch {
	case err == nil:
		return out, nil
	case ctx.Err() != nil:
		err = apply.WhyEnded(ctx)
	case errors.As(err, &whole):
		err = whole.Err
	}
	return out, fmt.Errorf("%s: %w", a, err)
}

// Reaction is what React does.
func (a *Request) Reaction() string { return "send again" }

// React sends the request again because something that it watches changed.
func (a *Request) React(ctx context.Context, h *apply.Host) (apply.Output, error) {
	return a.Apply(ctx, h, apply.Change{})
}

// Reads refuses methods that change something on the server, and guards.
func (a *Request) Reads() error {
	switch {
	case !a.reads():
		return fmt.Errorf("method %s changes the server, and a macro only reads: use GET", a.Method)
	case !a.Unchecked():
		return errors.New("a macro always sends its request: leave out creates, removes, unless and onlyif")
	}
	return nil
}

// Read is the body of the answer.
func (a *Request) Read(ctx context.Context, h *apply.Host) (string, error) {
	if err := h.MayRun("the request"); err != nil {
		return "", err
	}
	out, err := a.Apply(ctx, h, apply.Change{})
	return out.StdOut, err
}
