package trust

import (
	"bytes"
	"crypto/rsa"
	"fmt"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// allowedSigner is a line of a file of allowed signers. The format is in ssh-keygen(1), ALLOWED SIGNERS.
type allowedSigner struct {
	principals    []string
	namespaces    patterns // none: all
	after, before time.Time
	key           []byte // in wire format
}

// validAt reports whether the line counts at a time.
func (a allowedSigner) validAt(at time.Time) bool {
	return (a.after.IsZero() || !at.Before(a.after)) && (a.before.IsZero() || at.Before(a.before))
}

// maxSigners bounds the lines of a file.
const maxSigners = 10_000

// readAllowedSigners reads a file of allowed signers. A line that cannot be read is an error, not a key less.
func readAllowedSigners(f File) (all []allowedSigner, err error) {
	number := 0
	for line := range bytes.Lines(f.Content) {
		number++
		text := strings.TrimSpace(string(line))
		if text == "" || text[0] == '#' {
			continue
		}
		a, err := parseAllowedSigner(text)
		if err != nil {
			return nil, &LineError{f.Name, number, err}
		}
		if all = append(all, a); len(all) > maxSigners {
			return nil, &LineError{f.Name, number, fmt.Errorf("more than %d signers", maxSigners)}
		}
	}
	return all, nil
}

// parseAllowedSigner reads a line: principals, options, key.
func parseAllowedSigner(line string) (a allowedSigner, err error) {
	principals, rest, err := firstField(line)
	if err != nil {
		return a, err
	}
	a.principals = strings.Split(principals, ",")
	key, _, options, _, err := ssh.ParseAuthorizedKey([]byte(rest))
	if err != nil {
		return a, fmt.Errorf("no key after the principals: %w", err)
	}
	if err := strong(key); err != nil {
		return a, err
	}
	a.key = key.Marshal()
	for _, option := range options {
		if err := a.option(option); err != nil {
			return a, err
		}
	}
	return a, nil
}

// leastRSA is how many bits an RSA key needs.
const leastRSA = 2048

// strong refuses keys that do not hold.
func strong(key ssh.PublicKey) error {
	switch key := key.(type) {
	case *ssh.Certificate:
		return fmt.Errorf("a certificate is not a key that signs: list the key")
	case ssh.CryptoPublicKey:
		if public, ok := key.CryptoPublicKey().(*rsa.PublicKey); ok && public.N.BitLen() < leastRSA {
			return fmt.Errorf("an RSA key of %d bits: at least %d are needed", public.N.BitLen(), leastRSA)
		}
	}
	if key.Type() == "ssh-dss" {
		return fmt.Errorf("a DSA key is not safe: sign with another one")
	}
	return nil
}

// firstField splits a line behind its first field, which may be quoted.
func firstField(line string) (field, rest string, err error) {
	if quoted, ok := strings.CutPrefix(line, `"`); ok {
		if field, rest, ok = strings.Cut(quoted, `"`); !ok {
			return "", "", fmt.Errorf("the quote of the principals is not closed")
		}
		return field, strings.TrimLeft(rest, " \t"), nil
	}
	at := strings.IndexAny(line, " \t")
	if at < 0 {
		return "", "", fmt.Errorf("no key after the principals")
	}
	return line[:at], strings.TrimLeft(line[at:], " \t"), nil
}

// option reads one of a line's options.
func (a *allowedSigner) option(option string) (err error) {
	name, value, _ := strings.Cut(option, "=")
	value = strings.Trim(value, `"`)
	switch strings.ToLower(name) {
	case "namespaces":
		a.namespaces = strings.Split(value, ",")
	case "valid-after":
		a.after, err = parseTime(value)
	case "valid-before":
		a.before, err = parseTime(value)
	case "cert-authority":
		err = fmt.Errorf("option cert-authority: certificates are not supported: list the keys that sign")
	default:
		err = fmt.Errorf("unknown option %q: there are namespaces, valid-after and valid-before", name)
	}
	return err
}

// parseTime reads a time as ssh-keygen does: YYYYMMDD[HHMM[SS]], in the host's time zone, or in UTC with a Z.
func parseTime(text string) (time.Time, error) {
	zone := time.Local
	digits, utc := strings.CutSuffix(text, "Z")
	if utc {
		zone = time.UTC
	}
	for _, layout := range []string{"20060102", "200601021504", "20060102150405"} {
		if len(layout) == len(digits) {
			if at, err := time.ParseInLocation(layout, digits, zone); err == nil {
				return at, nil
			}
		}
	}
	return time.Time{}, fmt.Errorf("invalid time %q: write YYYYMMDD[HHMM[SS]], with a Z for UTC", text)
}
