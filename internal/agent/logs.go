package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/gitremote"
	"github.com/pullet/pullet/internal/lazyregexp"
	"github.com/pullet/pullet/internal/upload"
	"github.com/pullet/pullet/state"
)

var logWord = lazyregexp.New(`\{[^{}]*\}`)

// check finds what is wrong with the URL before it is needed.
func (l Logs) check() error {
	if l.Put == "" {
		if l != (Logs{Timeout: l.Timeout}) {
			return errors.New("agent.logs.put is missing: it says where logs are sent")
		}
		return nil
	}
	for _, word := range logWord.FindAllString(l.Put, -1) {
		if !slices.Contains([]string{"{fleet}", "{node}", "{run}", "{version}"}, word) {
			return fmt.Errorf("agent.logs.put: there is no %s: use {fleet}, {node}, {run} and {version}", word)
		}
	}
	u, err := url.Parse(logWord.ReplaceAllString(l.Put, "x"))
	switch secret := l.HeadersFile + l.TokenFile; {
	case err != nil: // the cause quotes the URL, which may be a secret
		return errors.New("agent.logs.put is no URL")
	case u.Scheme != "https" && u.Scheme != "http" || u.Host == "":
		return errors.New(
			"agent.logs.put: write an https or http URL, such as https://logs.example.org/{fleet}/{node}/{run}.log",
		)
	case secret != "" && apply.Cleartext(u):
		return errors.New("agent.logs: headersFile and tokenFile hold secrets: put has to be an https URL")
	case l.Timeout <= 0:
		return errors.New("agent.logs.timeout: it has to be some time, such as 10s")
	}
	return nil
}

// target is where the log of a run goes, and how that is shown: without what may be a secret, such as the signature of
// a presigned URL.
func (c *Config) target(run, version string) (put, shown string) {
	put = strings.NewReplacer("{fleet}", url.PathEscape(c.Fleet), "{node}", url.PathEscape(c.Node.Name), "{run}", run,
		"{version}", version).
		Replace(c.Agent.Logs.Put)
	u, err := url.Parse(put)
	if err != nil { // checked with the configuration
		return put, "agent.logs.put"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return put, u.String()
}

// sendLogs sends the logs of failed runs, the last one first, within the time that is given to that. What cannot be
// sent is tried again at the next pull: the pull itself did not fail for it.
func (r *reports) sendLogs(ctx context.Context) {
	if r.config.Agent.Logs.Put == "" || ctx.Err() != nil {
		return
	}
	if err := r.sendAll(ctx); err != nil {
		r.out.warn(fmt.Errorf("logs: %w; the next pull tries again", err))
	}
}

func (r *reports) sendAll(ctx context.Context) error {
	files, unread := state.Reports(r.config.Paths.State)
	files = slices.DeleteFunc(files, func(f state.ReportFile) bool { return !f.ToSend })
	if len(files) == 0 && r.unkept == nil {
		return unread
	}
	l := r.config.Agent.Logs
	ctx, cancel := context.WithTimeout(ctx, l.Timeout.Std())
	defer cancel()
	client, err := upload.Client(l.CA)
	if err != nil {
		return fmt.Errorf("agent.logs.ca: %w", err)
	}
	defer client.CloseIdleConnections()
	if r.unkept != nil {
		if err := r.send(ctx, client, r.unkept); err != nil {
			return err
		}
	}
	return errors.Join(unread, r.sendKept(ctx, client, files))
}

// sendKept sends what the reports on disk say. A report that cannot be read is not tried again.
func (r *reports) sendKept(ctx context.Context, client *http.Client, files []state.ReportFile) error {
	for _, f := range slices.Backward(files) {
		var report apply.Report
		err := f.Load(&report)
		if err == nil {
			if err := r.send(ctx, client, &report); err != nil {
				return err
			}
		}
		if err := errors.Join(err, f.Sent()); err != nil {
			return err
		}
	}
	return nil
}

// send puts the log of one run where it is wanted, and tells the fleet where that is.
func (r *reports) send(ctx context.Context, client *http.Client, report *apply.Report) error {
	put, shown := r.config.target(report.Run, report.Version)
	req, err := r.config.Agent.Logs.request(ctx, http.MethodPut, put, shown, strings.NewReader(report.Log()))
	if err != nil {
		return err
	}
	if _, set := req.Header["Content-Type"]; !set { // by the file of headers
		req.Header.Set("Content-Type", "text/plain; charset=utf-8")
	}
	answer, err := client.Do(req)
	if err = upload.WithoutURL(err); err != nil {
		return fmt.Errorf("the log of run %s cannot be put to %s: %w", report.Run, shown, err)
	}
	if err := answer.Body.Close(); err != nil {
		r.log.WithError(err).Debug("the answer of the log store")
	}
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("the log of run %s was refused by %s: %s", report.Run, shown, answer.Status)
	}
	r.log.WithField("log", shown).Info("the log was sent")
	if r.store == nil {
		return nil
	}
	if err := r.store.Statuses.LinkLog(ctx, r.config.Node.Name, report.Run, shown); err != nil {
		return fmt.Errorf(
			"the log of run %s is at %s, but the fleet does not know it: %w",
			report.Run,
			shown,
			r.store.Explain(err),
		)
	}
	return nil
}

// request is a request to the log store, with the credentials as the files have them now. Errors name its address as
// it may be shown.
func (l Logs) request(ctx context.Context, method, at, shown string, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, at, body)
	if err != nil {
		return nil, fmt.Errorf("%s is no URL", shown)
	}
	return req, l.login(req.Header)
}

// login adds the headers and the token, as the files have them now. An error names the file and the line, never what is
// in it.
func (l Logs) login(header http.Header) error {
	if l.HeadersFile != "" {
		if err := upload.SetHeaders(header, l.HeadersFile); err != nil {
			return fmt.Errorf("agent.logs.headersFile: %w", err)
		}
	}
	if l.TokenFile != "" {
		token, err := gitremote.ReadSecret(l.TokenFile)
		if err != nil {
			return fmt.Errorf("agent.logs.tokenFile: %w", err)
		}
		header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	return nil
}
