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
	host, _ := newKey(t)
	_, key := newKey(t)
	c := &ssh.ServerConfig{PublicKeyCallback: func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) { return nil, nil }}
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
