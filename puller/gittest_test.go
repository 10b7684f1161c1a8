package puller

import (
	"context"
	"crypto/ed25519"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sirupsen/logrus"
	"golang.org/x/crypto/ssh"

	"github.com/pullet/pullet/internal/gitremote"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func quiet() *logrus.Entry {
	l := logrus.New()
	l.SetOutput(io.Discard)
	return logrus.NewEntry(l)
}

// open opens a puller in a directory, until the test ends.
func open(t testing.TB, dir string, sources ...Source) *Puller {
	t.Helper()
	p, err := Open(dir, sources, gitremote.Limits{}, quiet())
	must(t, err)
	t.Cleanup(func() { p.Close() })
	return p
}

// pull pulls the only repository.
func pull(t testing.TB, p *Puller) Head {
	t.Helper()
	heads, err := p.Pull(context.Background())
	must(t, err)
	return heads[0]
}

// content reads a file at a head.
func content(t testing.TB, p *Puller, h Head, path string) string {
	t.Helper()
	s, err := p.Snapshot(context.Background(), []Head{h})
	must(t, err)
	f, err := s.Layers[0].FS.Open(path)
	must(t, err)
	data, err := io.ReadAll(f)
	must(t, err)
	return string(data)
}

// expect fails unless the error's text has all parts.
func expect(t testing.TB, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error; want one with %q", parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error lacks %q:\n%v", part, err)
		}
	}
}

// webServer serves repositories with git's own http backend.
type webServer struct {
	url      string
	requests atomic.Int64
	arrived  chan bool // tells of requests that nobody has noticed yet
	down     atomic.Bool
	token    string // required as password, if set
}

// execPath returns the directory of git's own programs.
var execPath = sync.OnceValue(func() string {
	out, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		panic(err)
	}
	return strings.TrimSpace(string(out))
})

func serveHTTP(t testing.TB, u *upstream) *webServer {
	t.Helper()
	backend := &cgi.Handler{
		Path: filepath.Join(execPath(), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + filepath.Dir(u.dir), "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1"},
	}
	w := &webServer{arrived: make(chan bool, 1)}
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		w.requests.Add(1)
		select {
		case w.arrived <- true:
		default:
		}
		_, password, _ := req.BasicAuth()
		switch {
		case w.down.Load():
			http.Error(rw, "down", http.StatusServiceUnavailable)
		case w.token != "" && password != w.token:
			http.Error(rw, "no", http.StatusUnauthorized)
		default:
			backend.ServeHTTP(rw, req)
		}
	}))
	t.Cleanup(srv.Close)
	w.url = srv.URL + "/state.git"
	return w
}

// sshServer serves repositories with git-upload-pack.
type sshServer struct {
	addr string
	host ssh.PublicKey
	auth gitremote.Auth // with a key that the server accepts and its host key
}

func serveSSH(t testing.TB) *sshServer {
	t.Helper()
	hostKey, _ := newKey(t)
	userKey, userPEM := newKey(t)
	cfg := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if string(key.Marshal()) != string(userKey.PublicKey().Marshal()) {
			return nil, errors.New("unknown key")
		}
		return nil, nil
	}}
	cfg.AddHostKey(hostKey)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go serveConn(conn, cfg)
		}
	}()
	dir := t.TempDir()
	s := &sshServer{addr: l.Addr().String(), host: hostKey.PublicKey()}
	s.auth = gitremote.Auth{SSHKey: filepath.Join(dir, "key"), KnownHosts: filepath.Join(dir, "known_hosts")}
	must(t, os.WriteFile(s.auth.SSHKey, userPEM, 0o600))
	s.know(t, s.host)
	return s
}

// know makes a key the only one in the known hosts.
func (s *sshServer) know(t testing.TB, key ssh.PublicKey) {
	t.Helper()
	host, port, _ := net.SplitHostPort(s.addr)
	line := fmt.Sprintf("[%s]:%s %s", host, port, ssh.MarshalAuthorizedKey(key))
	must(t, os.WriteFile(s.auth.KnownHosts, []byte(line), 0o644))
}

func newKey(t testing.TB) (ssh.Signer, []byte) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(nil)
	must(t, err)
	block, err := ssh.MarshalPrivateKey(private, "")
	must(t, err)
	signer, err := ssh.NewSignerFromKey(private)
	must(t, err)
	return signer, pem.EncodeToMemory(block)
}

func serveConn(conn net.Conn, cfg *ssh.ServerConfig) {
	_, channels, requests, err := ssh.NewServerConn(conn, cfg)
	if err != nil {
		conn.Close()
		return
	}
	go ssh.DiscardRequests(requests)
	for c := range channels {
		ch, reqs, err := c.Accept()
		if err != nil {
			return
		}
		go serveExec(ch, reqs)
	}
}

// serveExec runs what the client asks for, which is only git-upload-pack.
func serveExec(ch ssh.Channel, reqs <-chan *ssh.Request) {
	for req := range reqs {
		if req.Type != "exec" {
			req.Reply(false, nil)
			continue
		}
		req.Reply(true, nil)
		cmd := exec.Command("/bin/sh", "-c", string(req.Payload[4:]))
		cmd.Stdin, cmd.Stdout, cmd.Stderr = ch, ch, ch.Stderr()
		status := []byte{0, 0, 0, 0}
		if cmd.Run() != nil {
			status[3] = 1
		}
		ch.SendRequest("exit-status", false, status)
		ch.Close()
	}
}
