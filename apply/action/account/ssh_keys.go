package account

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"
)

// keyLine is a line of an authorized_keys file.
type keyLine struct {
	options []string
	key     ssh.PublicKey
	comment string
}

// parseKey reads a line. Its errors never hold the text, which may be a private key.
func parseKey(text string) (*keyLine, error) {
	text = strings.TrimSpace(text)
	switch {
	case strings.Contains(text, "PRIVATE KEY"):
		return nil, errors.New(
			"is a private key: give the public one, from the .pub file, and replace the pair, which is in the history now",
		)
	case strings.ContainsAny(text, "\n\r"):
		return nil, errors.New("has several lines: one key each")
	}
	key, comment, options, _, err := ssh.ParseAuthorizedKey([]byte(text))
	if err != nil {
		return nil, errors.New("is no public key: write its type and its long word, as in the .pub file")
	}
	return &keyLine{options, key, comment}, nil
}

// id is what makes two lines the same key.
func (l *keyLine) id() string { return string(l.key.Marshal()) }

func (l *keyLine) String() string {
	out := string(bytes.TrimSpace(ssh.MarshalAuthorizedKey(l.key)))
	if len(l.options) > 0 {
		out = strings.Join(l.options, ",") + " " + out
	}
	if l.comment != "" {
		out += " " + l.comment
	}
	return out
}

// keyEdit goes through a file line by line.
type keyEdit struct {
	exclusive, remove       bool
	want                    map[string]*keyLine // by id
	done                    map[string]bool     // what stands in the new text
	out                     strings.Builder
	added, changed, removed int
}

// keep writes a line, which ends where it stands at the end of a file without a line break.
func (e *keyEdit) keep(line string) {
	e.out.WriteString(strings.TrimSuffix(line, "\n") + "\n")
}

// line decides about one line of the old text.
func (e *keyEdit) line(text string) {
	trimmed := strings.TrimSpace(text)
	if trimmed == "" || trimmed[0] == '#' {
		e.keep(text)
		return
	}
	have, err := parseKey(trimmed)
	if err != nil { // sshd may still see something in it
		e.foreign(text)
		return
	}
	want := e.want[have.id()]
	switch {
	case want == nil:
		e.foreign(text)
	case e.remove || e.done[have.id()]: // a second line of a key could have fewer restrictions
		e.removed++
	default:
		e.done[have.id()] = true
		e.own(text, have, want)
	}
}

// foreign is a line of somebody else's.
func (e *keyEdit) foreign(text string) {
	if e.exclusive {
		e.removed++
		return
	}
	e.keep(text)
}

// own is the line of a key that should be there.
func (e *keyEdit) own(text string, have, want *keyLine) {
	right := *want
	if right.options == nil {
		right.options = have.options
	}
	if right.comment == "" {
		right.comment = have.comment
	}
	if strings.Join(right.options, ",") == strings.Join(have.options, ",") && right.comment == have.comment {
		e.keep(text)
		return
	}
	e.changed++
	e.keep(right.String())
}

// words say what was done.
func (e *keyEdit) words() []string {
	var out []string
	for _, c := range []struct {
		did string
		n   int
	}{{"add", e.added}, {"change", e.changed}, {"remove", e.removed}} {
		switch {
		case c.n == 1:
			out = append(out, c.did+" a key")
		case c.n > 1:
			out = append(out, fmt.Sprintf("%s %d keys", c.did, c.n))
		}
	}
	return out
}
