package gitremote

import (
	"crypto/ed25519"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"golang.org/x/crypto/ssh"
)

// overSSH serves whatever a test wants in place of git-upload-pack.
func overSSH(t *testing.T, serve func(ch ssh.Channel)) Remote {
	t.Helper()
	return overSSHWith(t, ssh.Config{}, serve)
}

// overSSHWith does the same with some algorithms.
func overSSHWith(t *testing.T, algorithms ssh.Config, serve func(ch ssh.Channel)) Remote {
	t.Helper()
	host, _ := newKey(t)
	_, key := newKey(t)
	c := &ssh.ServerConfig{Config: algorithms, PublicKeyCallback: func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) { return nil, nil }}
	c.AddHostKey(host)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go serveConn(conn, c, serve)
		}
	}()
	dir := t.TempDir()
	r := Remote{URL: "ssh://git@" + l.Addr().String() + "/x.git", Auth: Auth{SSHKey: filepath.Join(dir, "key"), KnownHosts: filepath.Join(dir, "known")}}
	addr, port, _ := net.SplitHostPort(l.Addr().String())
	known := fmt.Sprintf("[%s]:%s %s", addr, port, ssh.MarshalAuthorizedKey(host.PublicKey()))
	if err := errors.Join(os.WriteFile(r.Auth.SSHKey, key, 0o600), os.WriteFile(r.Auth.KnownHosts, []byte(known), 0o644)); err != nil {
		t.Fatal(err)
	}
	return r
}

func newKey(t *testing.T) (ssh.Signer, []byte) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return signer, pem.EncodeToMemory(block)
}

func serveConn(conn net.Conn, c *ssh.ServerConfig, serve func(ssh.Channel)) {
	defer conn.Close()
	_, channels, requests, err := ssh.NewServerConn(conn, c)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for offered := range channels {
		ch, wanted, err := offered.Accept()
		if err != nil {
			return
		}
		go func() {
			for r := range wanted {
				_ = r.Reply(r.Type == "exec", nil) // the client may be gone
				if r.Type == "exec" {
					go serve(ch)
				}
			}
		}()
	}
}

// exit ends a command as git-upload-pack does that fails.
func exit(ch ssh.Channel, status byte) {
	_, _ = ch.SendRequest("exit-status", false, []byte{0, 0, 0, status})
	_ = ch.Close()
}

// untilDone reads a request.
func untilDone(r io.Reader) {
	l := newLines(r)
	for {
		if text, err := l.next(); err != nil || string(text) == "done" {
			return
		}
	}
}

// TestHostileSSH: what a server writes over ssh is bounded as over http, on
// every channel.
func TestHostileSSH(t *testing.T) {
	flood := func(w io.Writer) {
		chunk := []byte(strings.Repeat("x", 32<<10))
		for {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}
	for name, c := range map[string]struct {
		serve func(ssh.Channel)
		want  string
	}{
		"endless list": {func(ch ssh.Channel) {
			for i := 0; ; i++ {
				if _, err := fmt.Fprintf(ch, "%04x%040x refs/heads/%0990d\n", 4+40+1+11+990+1, i+1, i); err != nil {
					return
				}
			}
		}, "its list of references: more than the limit of 32 MiB"},
		"endless errors": {func(ch ssh.Channel) {
			go flood(ch.Stderr())
			oneRef(ch)
			untilDone(ch)
			line(ch, "NAK\n")
			_, _ = ch.Write(newPack(4294967295).end())
		}, "a pack of 4294967295 objects: more than the limit of 100000; if the repository really needs it, raise agent.git.objects"},
		"endless pack": {func(ch ssh.Channel) {
			oneRef(ch)
			untilDone(ch)
			line(ch, "NAK\n")
			_, _ = ch.Write(newPack(1).Bytes())
			flood(ch)
		}, "the pack: more than the limit of 32 MiB; if the repository really needs it, raise agent.git.disk"},
		"refuses": {func(ch ssh.Channel) {
			fmt.Fprint(ch.Stderr(), "fatal: '/x.git' is \x1b[31mnot a repository\n")
			exit(ch, 128)
		}, "the server says: fatal: '/x.git' is [31mnot a repository"},
		"says nothing": {func(ch ssh.Channel) { exit(ch, 1) }, "the server says: git-upload-pack ended with status 1"},
	} {
		t.Run(name, func(t *testing.T) {
			if raced && slices.Contains([]string{"endless list"}, name) {
				t.Skip("a long list takes the race detector longer than a server has")
			}
			r := overSSH(t, c.serve)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := client(t, small).Fetch(t.Context(), r, Request{Wants: []plumbing.Hash{wanted}, Place: func(string, string) error { return nil }})
			runtime.ReadMemStats(&after)
			if err == nil || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
			if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 256<<20 {
				t.Errorf("the heap grew by %d MiB", grown>>20)
			}
		})
	}
}

// TestSSHAlgorithms: an algorithm that is safe is offered, and what a server lacks is named with the setting.
func TestSSHAlgorithms(t *testing.T) {
	for name, c := range map[string]struct {
		server ssh.Config
		want   string
	}{
		"group exchange": {server: ssh.Config{KeyExchanges: []string{"diffie-hellman-group-exchange-sha256"}}},
		"key exchange": {ssh.Config{KeyExchanges: []string{"diffie-hellman-group1-sha1"}},
			"no algorithm for key exchange in common: the server has diffie-hellman-group1-sha1|KexAlgorithms in sshd_config"},
		"cipher": {ssh.Config{Ciphers: []string{"3des-cbc"}},
			"no algorithm for client to server cipher in common: the server has 3des-cbc|Ciphers in sshd_config): aes128-gcm"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := (Client{}).List(t.Context(), overSSHWith(t, c.server, func(ch ssh.Channel) {
				oneRef(ch)
				untilDone(ch)
			}))
			if (err == nil) != (c.want == "") {
				t.Fatalf("got  %v\nwant %s", err, c.want)
			}
			for part := range strings.SplitSeq(c.want, "|") {
				if err != nil && !strings.Contains(err.Error(), part) {
					t.Errorf("got  %v\nwant %s", err, part)
				}
			}
		})
	}
}

// TestKnownHosts: a line that cannot be read is skipped, and named where a host is unknown; nothing is skipped that
// takes trust away.
func TestKnownHosts(t *testing.T) {
	serve := func(ch ssh.Channel) {
		oneRef(ch)
		untilDone(ch)
	}
	for name, c := range map[string]struct {
		line, want string // "": the server is believed
		alone      bool   // without the server's own line
	}{
		"none":                  {},
		"a comment":             {line: "# none"},
		"cut off":               {line: "other.example.org ssh-ed25519 AAAAC3NzaC1lZDI1"},
		"without a key":         {line: "other.example.org"},
		"a key type of before":  {line: "old.example.org ssh-dss AAAAB3NzaC1kc3MAAAABAA=="},
		"a key type to come":    {line: "new.example.org ssh-mldsa65@example.org AAAAFXNzaC1tbGRzYTY1QGV4YW1wbGUub3Jn"},
		"another marker":        {line: "@nosuch other.example.org ssh-ed25519 AAAAC3NzaC1lZDI1"},
		"a hash that is broken": {line: "|1|x|y ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8g"},
		"a broken revocation":   {line: "@revoked * ssh-ed25519 AAAAC3NzaC1lZDI1", want: "cannot read known hosts: FILE:2: "},
		"only a broken line":    {line: "other.example.org", alone: true, want: "; a line of that file was skipped: FILE:2: knownhosts: missing"},
	} {
		t.Run(name, func(t *testing.T) {
			r := overSSH(t, serve)
			own, err := os.ReadFile(r.Auth.KnownHosts)
			if err != nil {
				t.Fatal(err)
			}
			if c.alone {
				own = nil
			}
			if err := os.WriteFile(r.Auth.KnownHosts, append([]byte("\n"+c.line+"\n"), own...), 0o644); err != nil {
				t.Fatal(err)
			}
			_, err = (Client{}).List(t.Context(), r)
			if want := strings.ReplaceAll(c.want, "FILE", r.Auth.KnownHosts); (err == nil) != (want == "") ||
				err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
}

// TestParseURL: addresses of IPv6 are read as git reads them.
func TestParseURL(t *testing.T) {
	for raw, want := range map[string]string{
		"ssh://git@[::1]/x.git":           "ssh git [::1]:22 /x.git",
		"ssh://git@[2001:db8::1]:2222/x":  "ssh git [2001:db8::1]:2222 /x",
		"git@[2001:db8::1]:x/y.git":       "ssh git [2001:db8::1]:22 x/y.git",
		"[fe80::1%eth0]:/srv/x.git":       "ssh  [fe80::1%eth0]:22 /srv/x.git",
		"git@git.example.org:x.git":       "ssh git git.example.org:22 x.git",
		"ssh://git@git.example.org:2/x":   "ssh git git.example.org:2 /x",
		"/srv/[::1]:x":                    "file   /srv/[::1]:x",
		"https://[2001:db8::1]:8443/x":    "https  [2001:db8::1] /x",
		"https://git.example.org/[::1]:x": "https  git.example.org /[::1]:x",
	} {
		ep, err := ParseURL(raw)
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		host := ep.Host
		if ep.Protocol == "ssh" {
			host = address(ep)
		}
		if got := strings.Join([]string{ep.Protocol, ep.User, host, ep.Path}, " "); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", raw, got, want)
		}
	}
}
