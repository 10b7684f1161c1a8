package agent

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/pullet/pullet/internal/safetext"
	"github.com/pullet/pullet/internal/upload"
)

// MostOfLog is how much of a log is fetched, in bytes: a step's output has a MiB of each stream at most.
const MostOfLog = 32 << 20

// LogAddress is where the log of a run of a node is by agent.logs.put of this host, without what may be a secret; ""
// without a log store. A run and a version come from the fleet's record, so they are parts of the path and no more.
func LogAddress(c Config, node, run, version string) string {
	if c.Agent.Logs.Put == "" {
		return ""
	}
	c.Node.Name = node
	_, shown := c.target(url.PathEscape(run), url.PathEscape(version))
	return shown
}

// FetchLog fetches the log of a run of a node. It asks the server of agent.logs.put alone, with the credentials of this
// host: an address that the fleet's record has is never asked, because any node may have written it there. A redirect
// is not followed. Of a log longer than MostOfLog the beginning is returned, and cut is true.
func FetchLog(ctx context.Context, c Config, node, run, version string) (text []byte, cut bool, err error) {
	l := c.Agent.Logs
	dots := func(word string) bool { return word != "" && strings.Trim(word, ".") == "" }
	if !safetext.Name(node) || !safetext.Word(run) || dots(run) || dots(version) {
		return nil, false, fmt.Errorf("%q is no run of a node", safetext.Line(node+"/"+run, 100))
	}
	c.Node.Name = node
	at, shown := c.target(url.PathEscape(run), url.PathEscape(version))
	ctx, cancel := context.WithTimeout(ctx, l.Timeout.Std())
	defer cancel()
	req, err := l.request(ctx, http.MethodGet, at, shown, nil)
	if err != nil {
		return nil, false, err
	}
	client, err := upload.Client(l.CA)
	if err != nil {
		return nil, false, fmt.Errorf("agent.logs.ca: %w", err)
	}
	defer client.CloseIdleConnections()
	answer, err := client.Do(req)
	if err = upload.WithoutURL(err); err != nil {
		return nil, false, fmt.Errorf("the log of run %s cannot be fetched from %s: %w", run, shown, err)
	}
	defer answer.Body.Close() // it was read as far as it matters
	if answer.StatusCode != http.StatusOK {
		return nil, false, fmt.Errorf("the log of run %s is not given by %s: %s", run, shown, answer.Status)
	}
	var b bytes.Buffer
	if _, err := io.Copy(&b, io.LimitReader(answer.Body, MostOfLog+1)); err != nil {
		return nil, false, fmt.Errorf("the log of run %s came from %s only in part: %w", run, shown, err)
	}
	text = b.Bytes()
	return text[:min(len(text), MostOfLog)], len(text) > MostOfLog, nil
}
