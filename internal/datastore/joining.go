package datastore

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
)

// How etcd begins to say why a host does not become a member, as it has no types for that.
const (
	membersChanged  = "error validating peerURLs"
	membersUnheard  = "cannot fetch cluster info"
	joinedElsewhere = "this host was told of other members than there are now: it is told again, with its next pull"
)

// joining is a host that becomes a member.
type joining struct{ Config }

// why is what an error of etcd means that does not start.
func (c joining) why(err error, now time.Time) error {
	switch text := err.Error(); {
	case strings.HasPrefix(text, membersChanged):
		return errors.New(joinedElsewhere)
	case strings.HasPrefix(text, membersUnheard):
		return errors.Join(c.unheard(now), err)
	}
	return err
}

// unheard says why no member hears this one.
func (c joining) unheard(now time.Time) error {
	cluster, err := os.ReadFile(c.file(clusterFile))
	if err != nil {
		return err
	}
	var out []string
	for _, one := range strings.Split(strings.TrimSpace(string(cluster)), ",") {
		name, at, _ := strings.Cut(one, "=")
		u, err := url.Parse(at)
		if err != nil || at == c.peerURL() {
			continue
		}
		if err := c.hears(u.Host); err != nil {
			out = append(out, fmt.Sprintf("%s (%s): %s", name, u.Host, err))
		}
	}
	if len(out) == 0 {
		return nil
	}
	slices.Sort(out)
	return fmt.Errorf("the clock of this host says %s, and no member hears it: %s",
		now.UTC().Format(time.RFC3339), strings.Join(out, "; "))
}

// hears connects as a member. A server refuses a certificate behind its own part of the handshake.
func (c joining) hears(at string) error {
	with, err := c.presents(serverFile)
	if err != nil {
		return err
	}
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: answerTime}, "tcp", at, with)
	if err != nil {
		return err
	}
	defer conn.Close() // nothing was written
	if err := conn.SetReadDeadline(time.Now().Add(answerTime / 4)); err != nil {
		return err
	}
	if _, err = conn.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return err
}
