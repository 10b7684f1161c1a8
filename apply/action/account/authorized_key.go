package account

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/passwd"
	"github.com/pullet/pullet/apply/action/place"
	"github.com/pullet/pullet/render"
)

// AuthorizedKey is a public key, or several, with which one can log in as a user: lines of .ssh/authorized_keys in its
// home. A key is known by its type and its long word; options and comment of a line that is there stay when none are
// given. Other lines stay as they are, unless exclusive is true.
//
// A missing .ssh is made with mode 0700, the file has mode 0600, and both are the user's. Nothing is read or written
// through a link, or where the home, .ssh or the file is somebody else's: the step fails.
//
// Example:
//
//	steps:
//	  - name: who may deploy
//	    action: ssh.authorized_key
//	    parameters:
//	      user: deploy
//	      exclusive: true
//	      options: [no-port-forwarding, 'from="10.0.0.0/8"']
//	      keys:
//	        - ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDmQMr2tQW0PdmoQ1e5d9gmPsKTxgS+nPDOLaHEVWcaI ci@example.org
type AuthorizedKey struct {
	User string `yaml:"user,required"` // login name
	// a public key: type and long word, or a whole line of an authorized_keys file
	Key       string   `yaml:"key"`
	Keys      []string `yaml:"keys"`                         // several of them
	Options   []string `yaml:"options"`                      // of each of the keys, such as no-pty or from="10.0.0.0/8"
	Comment   string   `yaml:"comment"`                      // at the end of the key's line
	State     string   `yaml:"state" words:"present absent"` // absent removes the key; default present
	Exclusive bool     `yaml:"exclusive"`                    // remove all other keys of the user; with keys: [] all

	want []*keyLine
}

// authorizedKeys is the file that sshd reads.
const authorizedKeys = "authorized_keys"

// Bind reads the keys.
func (a *AuthorizedKey) Bind(b apply.Binding) error {
	if err := passwd.CheckName("user", a.User); err != nil {
		return err
	}
	switch {
	case a.Key != "" && a.Keys != nil:
		return apply.BadParam("keys", "key and keys exclude each other: put all into keys")
	case a.Key == "" && len(a.Keys) == 0 && (!a.Exclusive || a.Keys == nil):
		return apply.BadParam("key", "is missing: give a key, or several in keys")
	case a.Comment != "" && len(a.Keys) > 1:
		return apply.BadParam("comment", "there are several keys: write the comment of each behind it")
	case a.State == "absent" && a.Exclusive:
		return apply.BadParam("exclusive", "with state: absent it says nothing: give the keys that stay, without state")
	}
	texts, param := a.Keys, "keys"
	if a.Key != "" {
		texts, param = []string{a.Key}, "key"
	}
	a.want = nil
	for i, text := range texts {
		line, err := a.line(text)
		if err != nil { // the source is not shown: it may be a private key
			which := ""
			if len(texts) > 1 {
				which = fmt.Sprintf("number %d ", i+1)
			}
			pos := b.Step.Params.Position(param, b.Step.Pos)
			return render.ErrorList{{Pos: pos, Message: param + ": " + which + err.Error()}}
		}
		a.want = append(a.want, line)
	}
	return a.checkTwice()
}

// checkTwice finds a key that is given twice and not in the same way: each pull would write the other line.
func (a *AuthorizedKey) checkTwice() error {
	first := map[string]int{}
	for i, l := range a.want {
		j, known := first[l.id()]
		if known && a.want[j].String() != l.String() {
			return apply.BadParam("keys", "number %d is the same key as number %d, with another comment or other options; "+
				"keep one", i+1, j+1)
		}
		first[l.id()] = i
	}
	return nil
}

// line is a key with the options and the comment that it should have; nil options and no comment leave those that are
// there.
func (a *AuthorizedKey) line(text string) (*keyLine, error) {
	line, err := parseKey(text)
	if err != nil {
		return nil, err
	}
	if a.Options != nil {
		if len(line.options) > 0 {
			return nil, errors.New("has options of its own: leave out options, or write them only there")
		}
		line.options = a.Options
	}
	if a.Comment != "" {
		line.comment = a.Comment
	}
	again, err := parseKey(line.String())
	if err != nil || strings.Join(again.options, ",") != strings.Join(line.options, ",") ||
		again.comment != line.comment {
		return nil, errors.New("has options or a comment that do not make one line: see AUTHORIZED_KEYS in man sshd")
	}
	return line, nil
}

// Manages is the keys, one by one.
func (a *AuthorizedKey) Manages() []apply.Resource {
	if a.State == "absent" {
		return nil
	}
	var out []apply.Resource
	for _, line := range a.want {
		out = append(out, apply.Resource{
			ID: "ssh key " + ssh.FingerprintSHA256(line.key) + " of " + a.User, Absent: "ssh.authorized_key",
			Params: map[string]any{"user": a.User, "key": (&keyLine{key: line.key}).String(), "state": "absent"},
		})
	}
	return out
}

// Check compares the lines of the file.
func (a *AuthorizedKey) Check(_ context.Context, h *apply.Host) (apply.Change, error) {
	f, err := openSSH(h, a.User, authorizedKeys)
	switch {
	case errors.Is(err, errNoUser) || errors.Is(err, errNoHome): // an earlier step may make them
		f = &sshFile{user: a.User, name: authorizedKeys, home: "~" + a.User}
	case err != nil:
		return apply.Change{}, err
	}
	text, did := a.edit(string(f.data))
	if len(a.want) > 0 && a.State != "absent" || len(did) > 0 {
		did = append(did, f.differs()...)
	}
	c := apply.Change{Summary: strings.Join(did, ", ")}
	if !c.Empty() {
		c.Diff = place.Diff(f.path(".ssh", f.name), f.data, []byte(text))
	}
	return c, f.close()
}

// Apply writes the file.
func (a *AuthorizedKey) Apply(ctx context.Context, h *apply.Host, _ apply.Change) (apply.Output, error) {
	return apply.Output{State: a.State}, editSSH(ctx, h, a.User, authorizedKeys, func(text string) string {
		text, _ = a.edit(text)
		return text
	})
}

// edit gives the text of the file as it should be, and in words what is different.
func (a *AuthorizedKey) edit(text string) (string, []string) {
	e := &keyEdit{
		exclusive: a.Exclusive,
		remove:    a.State == "absent",
		done:      map[string]bool{},
		want:      map[string]*keyLine{},
	}
	for _, line := range a.want {
		e.want[line.id()] = line
	}
	for line := range strings.Lines(text) {
		e.line(line)
	}
	for _, line := range a.want {
		if id := line.id(); !e.remove && !e.done[id] {
			e.done[id] = true
			e.keep(line.String())
			e.added++
		}
	}
	return e.out.String(), e.words()
}
