package account

import (
	"context"
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/passwd"
	"github.com/pullet/pullet/apply/action/place"
	"github.com/pullet/pullet/render"
)

// KnownHost is the public key of a host, so that ssh does not ask whether it is the right one: a line of
// /etc/ssh/ssh_known_hosts, or of a user's own .ssh/known_hosts, where the same care is taken as by ssh.authorized_key.
// Another key of the same type is replaced, also in a hashed line; keys of other types stay. The key is never asked of
// the network: who answers there may be anybody.
//
// Example:
//
//	steps:
//	  - name: the host of our repositories
//	    action: ssh.known_host
//	    parameters:
//	      host: git.example.org
//	      key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDmQMr2tQW0PdmoQ1e5d9gmPsKTxgS+nPDOLaHEVWcaI
type KnownHost struct {
	Host string `yaml:"host,required"` // name or address, as ssh is called with it
	Port int    `yaml:"port"`          // where its ssh listens; default 22
	Key  string `yaml:"key"`           // its public key: type and long word, or a line of ssh-keyscan
	User string `yaml:"user"`          // only for this user; default: for all of the host
	// absent removes the host's key, or without key all of them; default present
	State string `yaml:"state" words:"present absent"`

	want ssh.PublicKey
}

// sshKnownHosts is the file for all users.
const sshKnownHosts = "/etc/ssh/ssh_known_hosts"

// knownHosts is the file of a user in its .ssh.
const knownHosts = "known_hosts"

// Bind reads the key.
func (a *KnownHost) Bind(b apply.Binding) error {
	switch {
	case a.Host == "" || strings.ContainsAny(a.Host, " \t\n,#*?!|[]@"):
		return apply.BadParam("host", "%q is no name of one host, nor an address", a.Host)
	case a.Port < 1 || a.Port > 65535:
		return apply.BadParam("port", "%d is no port: 1 to 65535", a.Port)
	case a.Key == "" && a.State != "absent":
		return apply.BadParam(
			"key",
			"is missing: ssh-keyscan %s shows it; compare it with what the host itself says",
			a.Host,
		)
	}
	if a.User != "" {
		if err := passwd.CheckName("user", a.User); err != nil {
			return err
		}
	}
	if a.Key == "" {
		return nil
	}
	line, err := parseKey(a.Key) // a host in front of the key reads as an option
	if err != nil {
		return render.ErrorList{{Pos: b.Step.Params.Position("key", b.Step.Pos), Message: "key: " + err.Error()}}
	}
	a.want = line.key
	return nil
}

// name is the host as known_hosts names it.
func (a *KnownHost) name() string {
	if a.Port != 22 {
		return fmt.Sprintf("[%s]:%d", strings.ToLower(a.Host), a.Port)
	}
	return strings.ToLower(a.Host)
}

// Manages is the host's key.
func (a *KnownHost) Manages() []apply.Resource {
	if a.State == "absent" {
		return nil
	}
	params := map[string]any{"host": a.Host, "port": a.Port, "key": a.Key, "state": "absent"}
	id := "known host " + a.Host
	if a.User != "" {
		params["user"], id = a.User, id+" of "+a.User
	}
	return []apply.Resource{{ID: id, Absent: "ssh.known_host", Params: params}}
}

// Check compares the lines of the file.
func (a *KnownHost) Check(_ context.Context, h *apply.Host) (apply.Change, error) {
	name, have, err := a.read(h)
	if err != nil {
		return apply.Change{}, err
	}
	text, did := a.edit(have)
	if did == "" {
		return apply.Change{}, nil
	}
	return apply.Change{Summary: did, Diff: place.Diff(name, []byte(have), []byte(text))}, nil
}

// read is the file, and its name for messages.
func (a *KnownHost) read(h *apply.Host) (name, text string, err error) {
	if a.User == "" {
		file, err := place.ReadText(h, sshKnownHosts)
		return sshKnownHosts, file.Text, err
	}
	f, err := openSSH(h, a.User, knownHosts)
	if errors.Is(err, errNoUser) || errors.Is(err, errNoHome) { // an earlier step may make them
		return "~" + a.User + "/.ssh/known_hosts", "", nil
	}
	if err != nil {
		return "", "", err
	}
	return f.path(".ssh", f.name), string(f.data), f.close()
}

// Apply writes the file.
func (a *KnownHost) Apply(ctx context.Context, h *apply.Host, _ apply.Change) (apply.Output, error) {
	edit := func(text string) string {
		text, _ = a.edit(text)
		return text
	}
	if a.User != "" {
		return apply.Output{State: a.State}, editSSH(ctx, h, a.User, knownHosts, edit)
	}
	return apply.Output{State: a.State}, place.EditText(ctx, h, sshKnownHosts, edit)
}

// edit gives the text of the file as it should be, and in words what is different.
func (a *KnownHost) edit(text string) (string, string) {
	var out strings.Builder
	there, removed := false, 0
	for line := range strings.Lines(text) {
		keep, right, found := a.line(line)
		if found && there { // a second time
			keep = ""
		}
		there = there || found && right
		if keep != line {
			removed++
		}
		if keep != "" {
			out.WriteString(strings.TrimSuffix(keep, "\n") + "\n")
		}
	}
	switch {
	case a.State == "absent" && removed == 0:
		return text, ""
	case a.State == "absent":
		return out.String(), "remove"
	case there && removed == 0:
		return text, ""
	case there:
		return out.String(), "remove other keys"
	}
	fmt.Fprintf(&out, "%s %s", a.name(), ssh.MarshalAuthorizedKey(a.want))
	if removed > 0 {
		return out.String(), "another key"
	}
	return out.String(), "add"
}

// line is what is kept of a line, and whether it has the host with the wanted key.
func (a *KnownHost) line(line string) (keep string, right, found bool) {
	hosts, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	if hosts == "" || hosts[0] == '#' || hosts[0] == '@' || !a.named(hosts) {
		return line, false, false
	}
	have, _, _, _, err := ssh.ParseAuthorizedKey([]byte(rest))
	if err != nil || a.want != nil && have.Type() != a.want.Type() {
		return line, false, false
	}
	same := a.want != nil && string(have.Marshal()) == string(a.want.Marshal())
	if a.State != "absent" && same {
		return line, true, true
	}
	if a.State == "absent" && a.want != nil && !same {
		return line, false, false
	}
	others := slices.DeleteFunc(
		strings.Split(hosts, ","),
		func(h string) bool { return strings.EqualFold(h, a.name()) || hashed(h, a.name()) },
	)
	if len(others) == 0 {
		return "", false, false
	}
	return strings.Join(others, ",") + " " + rest + "\n", false, false
}

// named reports that the first word of a line stands for the host.
func (a *KnownHost) named(hosts string) bool {
	return slices.ContainsFunc(
		strings.Split(hosts, ","),
		func(h string) bool { return strings.EqualFold(h, a.name()) || hashed(h, a.name()) },
	)
}

// hashed reports that a word is the hash of a name: |1|salt|sum.
func hashed(word, name string) bool {
	f := strings.Split(word, "|")
	if len(f) != 4 || f[0] != "" || f[1] != "1" {
		return false
	}
	salt, err := base64.StdEncoding.DecodeString(f[2])
	if err != nil {
		return false
	}
	sum, err := base64.StdEncoding.DecodeString(f[3])
	mac := hmac.New(sha1.New, salt)
	mac.Write([]byte(name))
	return err == nil && hmac.Equal(sum, mac.Sum(nil))
}
