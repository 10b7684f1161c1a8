package trust

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"filippo.io/age"
	"filippo.io/age/agessh"
	"golang.org/x/crypto/ssh"
)

// Recipient is a public key that a secret is encrypted for: an age key (age1...), or an SSH key of the kinds
// ssh-ed25519 and ssh-rsa.
type Recipient struct {
	Text string // as it was written, without a comment
	stanza
	to age.Recipient
}

// stanza is how the header of an encrypted file names a recipient. Only SSH keys have a tag there: others cannot be
// told from each other.
type stanza struct{ kind, tag string }

// ParseRecipient reads a public key as it stands in secrets.yaml, or in a .pub file of ssh-keygen.
func ParseRecipient(text string) (Recipient, error) {
	fields := strings.Fields(text)
	switch {
	case strings.ContainsAny(strings.TrimSpace(text), "\r\n"):
		return Recipient{}, errors.New("invalid key: it has more than one line")
	case strings.HasPrefix(text, "AGE-SECRET-KEY-") || strings.Contains(text, "PRIVATE KEY"):
		return Recipient{}, errors.New(
			"this is a private key, and now a known one: replace it, and write the public key here",
		)
	case len(fields) == 1 && strings.HasPrefix(fields[0], "age1"):
		return parseAgeRecipient(fields[0])
	case len(fields) >= 2 && strings.Contains(fields[0], "-"):
		return parseSSHRecipient(fields[0], fields[1])
	}
	return Recipient{}, fmt.Errorf("invalid key %.40q: write age1..., ssh-ed25519 KEY or ssh-rsa KEY", text)
}

func parseAgeRecipient(text string) (Recipient, error) {
	if strings.HasPrefix(text, "age1pq1") {
		to, err := age.ParseHybridRecipient(text)
		return Recipient{text, stanza{kind: "mlkem768x25519"}, to}, readable(err)
	}
	to, err := age.ParseX25519Recipient(text)
	return Recipient{text, stanza{kind: "X25519"}, to}, readable(err)
}

// readable says in our words what the library says of a key that it cannot read.
func readable(err error) error {
	if err != nil {
		return errors.New("invalid age key: it is damaged, or of a kind that is not supported")
	}
	return nil
}

func parseSSHRecipient(kind, key string) (Recipient, error) {
	if kind != ssh.KeyAlgoED25519 && kind != ssh.KeyAlgoRSA {
		return Recipient{}, fmt.Errorf(
			"SSH keys of the kind %.40q cannot encrypt: use ssh-ed25519, ssh-rsa or an age key",
			kind,
		)
	}
	wire, err := base64.StdEncoding.DecodeString(key)
	if err != nil {
		return Recipient{}, errors.New("invalid SSH key: it is damaged")
	}
	to, err := agessh.ParseRecipient(kind + " " + key)
	if err != nil {
		return Recipient{}, errors.New("invalid SSH key: it is damaged, or an RSA key of less than 2048 bits")
	}
	sum := sha256.Sum256(wire)
	return Recipient{kind + " " + key, stanza{kind, base64.RawStdEncoding.EncodeToString(sum[:4])}, to}, nil
}

// IsSSH reports an SSH key: the header of a file names it, and it can sign.
func (r Recipient) IsSSH() bool { return r.tag != "" }

// Readers are the recipients that the header of an encrypted file names. Nothing in it is signed: it says who can read
// the file, if what wrote the file was honest.
type Readers []stanza

// Has reports whether the file is encrypted for a key. Sure is false for age keys, of which a header says only how many
// there are.
func (r Readers) Has(key Recipient) (has, sure bool) {
	for _, one := range r {
		has = has || one == key.stanza
	}
	return has, !has || key.tag != ""
}

// Fits reports a file that is surely encrypted for these keys and no others. Of age keys nobody can be sure.
func (r Readers) Fits(keys []Recipient) bool {
	for _, key := range keys {
		if has, _ := r.Has(key); !has || !key.IsSSH() {
			return false
		}
	}
	return r.Others(keys) == 0
}

// Others counts the recipients that none of the keys can be: former readers, most likely.
func (r Readers) Others(keys []Recipient) int {
	free := map[stanza]int{}
	for _, k := range keys {
		free[k.stanza]++
	}
	others := 0
	for _, one := range r {
		if one.kind == "grease" {
			continue
		}
		if free[one]--; free[one] < 0 {
			others++
		}
	}
	return others
}
