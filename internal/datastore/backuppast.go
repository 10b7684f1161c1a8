package datastore

import (
	"os"
	"path/filepath"
	"time"

	"github.com/pullet/pullet/internal/authority"
	"github.com/pullet/pullet/internal/durable"
)

// Made is a backup that was made.
type Made struct {
	At        time.Time `json:"at"`
	To        string    `json:"to"` // the directory or the URL, without what may be a secret
	Name      string    `json:"name"`
	Revision  int64     `json:"revision"`  // of the record
	Size      int64     `json:"size"`      // in bytes
	Sealed    bool      `json:"sealed"`    // encrypted, and with the key of the authority
	Authority string    `json:"authority"` // the fingerprint of the one whose keeper signed it
}

// Failed is how often it was tried in vain since.
type Failed struct {
	Times int       `json:"times"`
	At    time.Time `json:"at"` // the last time
	Why   string    `json:"why"`
}

// Past is what is known of the backups to the configured place.
type Past struct {
	To     string `json:"to"`
	Last   Made   `json:"last"`
	Failed Failed `json:"failed"`
}

const pastFile = "backups.json"

// PastBackups reads what is known of the backups to the configured place. A backup to another place counts no more, nor
// one that is gone from its directory, nor one that another authority vouches for: after a rotation the restore would
// refuse it.
func PastBackups(c Config) (Past, error) {
	var p Past
	if err := durable.ReadJSON(c.file(pastFile), &p); err != nil {
		return Past{}, err
	}
	if p.To != shown(c.Backup.To) {
		return Past{To: shown(c.Backup.To)}, nil
	}
	signs, err := c.signs()
	if err != nil {
		return Past{}, err
	}
	gone := false
	if toURL, _ := place(c.Backup.To); !toURL {
		_, err := os.Stat(filepath.Join(c.Backup.To, p.Last.Name))
		gone = err != nil
	}
	if gone || p.Last.Authority != signs {
		p.Last = Made{}
	}
	return p, nil
}

// signs is the fingerprint of the authority of the keeper, who signs backups.
func (c Config) signs() (string, error) {
	text, err := os.ReadFile(c.file(keeperFile))
	if err != nil {
		return "", err
	}
	return authority.SignedBy(text)
}
