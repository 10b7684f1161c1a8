package datastore

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/pullet/pullet/internal/trust"
	"github.com/pullet/pullet/render"
)

// Backups says where backups of the fleet's record go, how often, and who can read them.
type Backups struct {
	Every render.Duration `yaml:"every"` // between two; nothing: pullet datastore backup alone makes them
	To    string          `yaml:"to"`    // a directory, or an https URL of one, for root only
	Keep  int             `yaml:"keep"`  // how many stay in a directory; default 7

	// age or SSH keys (ssh-ed25519, ssh-rsa) for which they are encrypted, with the key of the authority in them.
	// Nothing: they are not encrypted, and without that key
	Recipients render.Strings `yaml:"recipients"`

	HeadersFile string `yaml:"headersFile"` // with headers for the URL, one a line: "Name: value"; mode 0600
	CA          string `yaml:"ca"`          // that signed the certificate of the URL's server; nothing: one of the host
}

// defaultKeep is how many backups stay in a directory.
const defaultKeep = 7

// shortest is between two backups: their names tell seconds.
const shortest = render.Duration(time.Second)

// set reports that something is said of backups.
func (b Backups) set() bool {
	return b.Every != 0 || b.To+b.HeadersFile+b.CA != "" || b.Keep != 0 || len(b.Recipients) > 0
}

// check says what is wrong with the settings.
func (b Backups) check() error {
	if !b.set() {
		return nil
	}
	_, bad := b.recipients()
	switch toURL, err := place(b.To); {
	case b.To == "":
		return errors.New("to is missing: it says where backups go")
	case err != nil:
		return fmt.Errorf("to: %w", err)
	case b.Every != 0 && b.Every < shortest:
		return errors.New("every: it has to be some time, such as 24h")
	case b.Keep < 0:
		return fmt.Errorf("keep: %d is not a number of backups from 1 on", b.Keep)
	case toURL && b.Keep != 0:
		return errors.New("keep is for directories: the server of the URL removes what is old")
	case !toURL && b.HeadersFile+b.CA != "":
		return errors.New("headersFile and ca are for URLs, and to is a directory")
	case bad != nil:
		return fmt.Errorf("recipients: %w", bad)
	}
	return nil
}

// place tells a URL from a directory, and says what is wrong with one that is neither. An error does not quote a URL,
// which may hold a secret.
func place(to string) (toURL bool, err error) {
	if !strings.Contains(to, "://") {
		if !filepath.IsAbs(to) {
			return false, fmt.Errorf("%s is neither an absolute directory nor an https URL", to)
		}
		return false, nil
	}
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		return true, errors.New("write an https URL, such as https://backup.example.org/pullet, or a directory")
	}
	return true, nil
}

// shown is a place without what may be a secret: the query of a URL, and who it is for.
func shown(to string) string {
	u, err := url.Parse(to)
	if err != nil || u.Scheme == "" {
		return to
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// recipients are those for whom backups are encrypted.
func (b Backups) recipients() (out []trust.Recipient, err error) {
	for _, text := range b.Recipients {
		r, err := trust.ParseRecipient(text)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}
