// Package webhook turns what other systems send over HTTP into events of the fleet and into news of pushes.
//
// Whoever reaches the port can send anything. So nothing of a request is read as more than bytes before its sender
// proved that it has the hook's secret, and what was proved is still data within bounds: it can start what the
// repository's reactions say, and have hosts look for a commit, which they fetch and verify as at any other time.
package webhook

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/pullet/pullet/internal/safetext"
	"github.com/pullet/pullet/state"
)

// Path is where hooks are: the name of one follows.
const Path = "/hooks/"

// Hook is a webhook: who sends to /hooks/NAME, and what becomes of it.
type Hook struct {
	Name string `yaml:"name"` // at the end of its path: letters, digits, dots, dashes and underscores
	Type string `yaml:"type"` // alertmanager, github, gitlab, gitea, forgejo, hmac or json
	// TokenFile holds the token that alertmanager and json send, as "Authorization: Bearer TOKEN" or as the password of
	// basic authentication. A line is a token and each counts, so that one can be exchanged; mode 0600.
	TokenFile string `yaml:"tokenFile"`
	// SecretFile holds the secret with which forges and hmac sign, and the token of gitlab. A line is a secret and each
	// counts; mode 0600.
	SecretFile string `yaml:"secretFile"`
	Header     string `yaml:"header"`     // that has the signature of hmac; default X-Signature
	Repository string `yaml:"repository"` // that is pushed to, by its name among repositories: for forges and hmac
	Event      string `yaml:"event"`      // the name of the event that json or hmac raises, such as door/opened
	// RouteLabels are the labels of an alert, or the keys of what json and hmac send, whose values are the hosts that the
	// event is about; default instance for alertmanager, and none for the others.
	RouteLabels []string `yaml:"routeLabels"`
}

// kind is what the hooks of a type have in common.
type kind struct {
	token bool // it is proved by a token in a header, and by a signature otherwise
	push  bool // it tells of pushes alone
	prove prover
	read  func(h *endpoint, header http.Header, body []byte) (*content, error)
}

// kinds are the types.
func kinds() map[string]kind {
	return map[string]kind{
		"alertmanager": {token: true, prove: byToken, read: readAlerts},
		"json":         {token: true, prove: byToken, read: readData},
		"hmac":         {prove: byOwnHeader, read: readSigned},
		"github":       {push: true, prove: byGitHub, read: readPush("X-GitHub-Event")},
		"gitea":        {push: true, prove: byGitea, read: readPush("X-Gitea-Event")},
		"forgejo":      {push: true, prove: byForgejo, read: readPush("X-Forgejo-Event", "X-Gitea-Event")},
		"gitlab":       {push: true, prove: byGitLab, read: readGitLab},
	}
}

// Check says what is wrong with hooks, all at once; nil: nothing. Repositories are the names that may be pushed to.
func Check(hooks []Hook, repositories []string) error {
	var errs []error
	seen := map[string]bool{}
	for _, h := range hooks {
		if !safetext.Name(h.Name) {
			err := fmt.Errorf("webhook %q: name: use letters, digits, dots, dashes and underscores", h.Name)
			errs = append(errs, err)
			continue
		}
		if seen[h.Name] {
			errs = append(errs, fmt.Errorf("webhook %s: the name is used twice", h.Name))
		}
		seen[h.Name] = true
		if err := h.check(repositories); err != nil {
			errs = append(errs, fmt.Errorf("webhook %s: %w", h.Name, err))
		}
	}
	return errors.Join(errs...)
}

// check is what is wrong with a hook first.
func (h Hook) check(repositories []string) error {
	k, known := kinds()[h.Type]
	switch {
	case !known:
		return fmt.Errorf("type: there is no %q: use %s", h.Type, strings.Join(slices.Sorted(maps.Keys(kinds())), ", "))
	case k.token && (h.TokenFile == "" || h.SecretFile != ""):
		return fmt.Errorf("tokenFile is missing: it holds the token that the sender of %s shows; secretFile is for those "+
			"that sign", h.Type)
	case !k.token && (h.SecretFile == "" || h.TokenFile != ""):
		return fmt.Errorf("secretFile is missing: it holds the secret of the sender of %s; tokenFile is for alertmanager "+
			"and json", h.Type)
	case h.Header != "" && h.Type != "hmac":
		return errors.New("header is for the type hmac")
	case len(h.RouteLabels) > 0 && h.makesPush():
		return errors.New("routeLabels are for events: a push is about no host")
	}
	if h.makesPush() {
		return h.checkPush(repositories)
	}
	return h.checkEvent()
}

// makesPush reports a hook that tells of pushes.
func (h Hook) makesPush() bool { return kinds()[h.Type].push || h.Repository != "" }

func (h Hook) checkPush(repositories []string) error {
	switch {
	case kinds()[h.Type].token:
		return fmt.Errorf("repository is for forges and hmac: %s raises events", h.Type)
	case h.Event != "":
		return errors.New("it has a repository, of which it tells pushes, or an event, which it raises, and not both")
	case !slices.Contains(repositories, h.Repository):
		return fmt.Errorf("repository: there is no %q: use %s", h.Repository, strings.Join(repositories, ", "))
	}
	return nil
}

func (h Hook) checkEvent() error {
	if h.Type == "alertmanager" {
		if h.Event != "" {
			return errors.New("event: alerts have names of their own: prometheus/alert/NAME")
		}
		return nil
	}
	if h.Event == "" {
		return errors.New("event is missing: the name of what it raises, such as door/opened")
	}
	if err := state.CheckEventName(h.Event); err != nil {
		return fmt.Errorf("event: %w", err)
	}
	return nil
}

// secretFile is the file that proves a sender.
func (h Hook) secretFile() string { return h.TokenFile + h.SecretFile } // check allows one of them

// minSecret is how many characters a secret has at least: a shorter one can be guessed.
const minSecret = 16

// secrets are the lines of a file.
func secrets(file string, text []byte) (out []string, err error) {
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if len(line) < minSecret {
			return nil, fmt.Errorf("a secret in %s has %d characters, and needs %d: openssl rand -hex 32", file, len(line),
				minSecret)
		}
		out = append(out, line)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s holds no secret: openssl rand -hex 32", file)
	}
	return out, nil
}
