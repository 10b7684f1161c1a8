package git_test

import (
	"crypto/ed25519"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/actiontest"
)

// TestCheckoutOverSSH: with a key that the server takes, and a host key that the file has and no other.
func TestCheckoutOverSSH(t *testing.T) {
	t.Parallel()
	s := actiontest.New(t)
	u := newUpstream(s)
	commit := u.commit("echo 1 > a")
	user, key := newSSHKey(t)
	host, _ := newSSHKey(t)
	stranger, other := newSSHKey(t)
	addr := serveSSH(t, host, user.PublicKey())
	hostIP, port, _ := net.SplitHostPort(addr)
	line := func(k ssh.Signer) string {
		return fmt.Sprintf("[%s]:%s %s", hostIP, port, ssh.MarshalAuthorizedKey(k.PublicKey()))
	}
	s.Plant("f k 600 " + key)
	s.Plant("f other 600 " + other)
	s.Plant("f empty 644")
	s.Plant("f wrong 644 " + line(stranger))
	s.Plant("f known 644 " + line(host))
	url := "ssh://git@" + addr + u.dir
	for auth, want := range map[string]string{
		"sshKey: /k, knownHosts: /empty":     "is not in " + s.Path("empty") + ": run: ssh-keyscan -H -p " + port + " 127.0.0.1 >> " + s.Path("empty") + ", and compare the fingerprint",
		"sshKey: /k, knownHosts: /wrong":     "is not the one in " + s.Path("wrong"),
		"sshKey: /other, knownHosts: /known": "the server does not accept auth.sshKey",
	} {
		if r := checkout(s, url, ", auth: {"+auth+"}", apply.Failed); !strings.Contains(r.Reason, want) {
			t.Errorf("%s: %q, want %q", auth, r.Reason, want)
		}
	}
	checkout(s, url, ", auth: {sshKey: /k, knownHosts: /known}", apply.Changed)
	u.isWhole(s.Path("srv/app"), commit)
	checkout(s, url, ", auth: {sshKey: /k, knownHosts: /known}", apply.OK)
}

func newSSHKey(t *testing.T) (ssh.Signer, string) {
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
	return signer, string(pem.EncodeToMemory(block))
}

// serveSSH serves git-upload-pack to who has a key.
func serveSSH(t *testing.T, host ssh.Signer, user ssh.PublicKey) (addr string) {
	t.Helper()
	c := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if string(key.Marshal()) != string(user.Marshal()) {
			return nil, errors.New("unknown key")
		}
		return nil, nil
	}}
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
			go serveSSHConn(conn, c)
		}
	}()
	return l.Addr().String()
}

func serveSSHConn(conn net.Conn, c *ssh.ServerConfig) {
	defer conn.Close()
	_, channels, requests, err := ssh.NewServerConn(conn, c)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for offered := range channels {
		channel, wanted, err := offered.Accept()
		if err != nil {
			return
		}
		go serveSSHExec(channel, wanted)
	}
}

// serveSSHExec runs what the client asks for.
func serveSSHExec(channel ssh.Channel, requests <-chan *ssh.Request) {
	defer channel.Close()
	for r := range requests {
		if r.Type != "exec" {
			_ = r.Reply(false, nil)
			continue
		}
		_ = r.Reply(true, nil)
		cmd := exec.Command("/bin/sh", "-c", string(r.Payload[4:]))
		cmd.Stdin, cmd.Stdout, cmd.Stderr = channel, channel, channel.Stderr()
		status := []byte{0, 0, 0, 0}
		if cmd.Run() != nil {
			status[3] = 1
		}
		_, _ = channel.SendRequest("exit-status", false, status)
		return
	}
}
