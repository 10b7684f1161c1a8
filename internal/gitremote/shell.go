package gitremote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing/transport"
	"golang.org/x/crypto/ssh"
)

// shell speaks git's protocol with git-upload-pack over ssh.
type shell struct {
	client  *ssh.Client
	session *ssh.Session
	in      io.WriteCloser
	out     io.Reader
	said    said
	stop    func() bool
}

// openShell connects and logs in within the time of a listing; the context
// ends the connection.
func (r Remote) openShell(ctx context.Context, ep *transport.Endpoint) (*shell, error) {
	login, err := newLogin(ep, r.Auth)
	if err != nil {
		return nil, err
	}
	conn, err := (&net.Dialer{Timeout: listTime}).DialContext(ctx, "tcp", login.addr)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(listTime)); err != nil {
		return nil, err
	}
	c, channels, requests, err := ssh.NewClientConn(conn, login.addr, login.config())
	if err != nil {
		stop()
		if closed := conn.Close(); !errors.Is(closed, net.ErrClosed) {
			err = errors.Join(err, closed)
		}
		return nil, login.explain(err)
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return nil, err
	}
	s := &shell{client: ssh.NewClient(c, channels, requests), stop: stop}
	if err := s.start(ep.Path); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// start runs git-upload-pack on the server.
func (s *shell) start(path string) (err error) {
	if s.session, err = s.client.NewSession(); err != nil {
		return err
	}
	s.session.Stderr = &s.said
	s.in, err = s.session.StdinPipe()
	if err != nil {
		return err
	}
	if s.out, err = s.session.StdoutPipe(); err != nil {
		return err
	}
	return s.session.Start(uploadPack + " '" + strings.ReplaceAll(path, "'", `'\''`) + "'")
}

func (s *shell) refs(context.Context) (io.Reader, error) { return explained{s}, nil }

func (s *shell) pack(_ context.Context, request []byte) (io.Reader, error) {
	_, err := s.in.Write(request)
	return explained{s}, err
}

// explained adds to an end that comes too early what the server says of it.
type explained struct{ s *shell }

func (e explained) Read(p []byte) (int, error) {
	n, err := e.s.out.Read(p)
	if !errors.Is(err, io.EOF) || n > 0 {
		return n, err
	}
	ended := e.s.session.Wait()
	if exited, ok := errors.AsType[*ssh.ExitError](ended); ok {
		if text := clean(string(e.s.said.text)); text != "" {
			return 0, &ServerError{text}
		}
		return 0, &ServerError{fmt.Sprintf("git-upload-pack ended with status %d", exited.ExitStatus())}
	}
	return 0, err
}

func (s *shell) abort() { _ = s.client.Close() } // the reader's error says what came of it

// Close ends the connection. A request that was not sent is taken back by a
// flush, as the protocol wants it.
func (s *shell) Close() error {
	s.stop()
	if s.in != nil {
		_, _ = io.WriteString(s.in, "0000") // the server may have ended it first
	}
	if err := s.client.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// said keeps the beginning of what a server says beside the protocol.
type said struct{ text []byte }

func (s *said) Write(p []byte) (int, error) {
	s.text = append(s.text, p[:min(len(p), 1024-len(s.text))]...)
	return len(p), nil
}

const defaultSSHPort = 22

// address is where an ssh endpoint listens.
func address(ep *transport.Endpoint) string {
	port := ep.Port
	if port <= 0 {
		port = defaultSSHPort
	}
	return net.JoinHostPort(ep.Host, strconv.Itoa(port))
}
