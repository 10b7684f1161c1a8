package gitremote

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// web speaks git's smart protocol over http.
type web struct {
	base   *url.URL // without user and password
	user   *url.Userinfo
	client *http.Client
	bodies []io.Closer // of the answers
}

const maxRedirects = 5

func (r Remote) openWeb() (*web, error) {
	base, user, err := r.webLogin()
	if err != nil {
		return nil, err
	}
	roots, err := r.TLS.roots()
	if err != nil {
		return nil, err
	}
	proxy := http.ProxyFromEnvironment
	if r.Proxy != "" {
		u, err := url.Parse(r.Proxy)
		if err != nil {
			return nil, errors.New("proxy is not a URL")
		}
		proxy = http.ProxyURL(u)
	}
	w := &web{base: base, user: user}
	w.client = &http.Client{CheckRedirect: w.redirect, Transport: &http.Transport{
		Proxy: proxy, TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: listTime, MaxResponseHeaderBytes: 64 << 10, IdleConnTimeout: 10 * time.Second,
	}}
	return w, nil
}

// redirect lets a server move a repository on itself. Another host, port or
// scheme would get the credentials, and be believed in its place.
func (w *web) redirect(next *http.Request, before []*http.Request) error {
	if next.URL.Scheme != w.base.Scheme || next.URL.Host != w.base.Host {
		return &RedirectError{To: clean(next.URL.Scheme + "://" + next.URL.Host)}
	}
	if len(before) > maxRedirects {
		return &ProtocolError{"it redirects without end"}
	}
	return nil
}

const uploadPack = "git-upload-pack"

func (w *web) refs(ctx context.Context) (io.Reader, error) {
	req, err := http.NewRequestWithContext(
		ctx,
		http.MethodGet,
		w.base.JoinPath("info/refs").String()+"?service="+uploadPack,
		nil,
	)
	if err != nil {
		return nil, err
	}
	answer, err := w.do(req, "advertisement")
	if err != nil {
		return nil, err
	}
	// The server may have moved the repository: the request for packs goes to
	// the same place.
	moved := *answer.Request.URL
	moved.RawQuery, moved.Path = "", strings.TrimSuffix(moved.Path, "/info/refs")
	w.base = &moved
	return answer.Body, nil
}

func (w *web) pack(ctx context.Context, request []byte) (io.Reader, error) {
	req, err := http.NewRequestWithContext(
		ctx,
		http.MethodPost,
		w.base.JoinPath(uploadPack).String(),
		bytes.NewReader(request),
	)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-"+uploadPack+"-request")
	answer, err := w.do(req, "result")
	if err != nil {
		return nil, err
	}
	return answer.Body, nil
}

// do sends a request. Errors quote neither the answer's body nor the URL.
func (w *web) do(req *http.Request, kind string) (*http.Response, error) {
	req.Header.Set("User-Agent", "git/pullet") // some servers refuse what does not begin with git/
	want := "application/x-" + uploadPack + "-" + kind
	req.Header.Set("Accept", want)
	if password, _ := w.user.Password(); w.user != nil {
		req.SetBasicAuth(w.user.Username(), password)
	}
	answer, err := w.client.Do(req)
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return nil, wrapped.Err
	}
	if err != nil {
		return nil, err
	}
	w.bodies = append(w.bodies, answer.Body)
	switch answer.StatusCode {
	case http.StatusOK:
	case http.StatusUnauthorized:
		return nil, &AuthError{}
	case http.StatusForbidden:
		return nil, &AuthError{Denied: true}
	case http.StatusNotFound:
		return nil, &NotFoundError{}
	default:
		return nil, &StatusError{answer.StatusCode}
	}
	if kind, _, _ := strings.Cut(answer.Header.Get("Content-Type"), ";"); kind != want {
		return nil, &ProtocolError{"the answer is not that of a git server: check the url"}
	}
	return answer, nil
}

// abort does nothing: requests have a context.
func (w *web) abort() {}

// Close ends the answers and the connection.
func (w *web) Close() error {
	var errs []error
	for _, body := range w.bodies {
		errs = append(errs, body.Close())
	}
	w.client.CloseIdleConnections()
	return errors.Join(errs...)
}
