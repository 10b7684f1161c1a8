package state

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// probeTime is how long one endpoint has to show its certificate.
const probeTime = 2 * time.Second

// refusedTLS is why an endpoint of a store that does not answer refuses the connection, or is refused: the etcd client
// only says that time ran out. Nil: that is not it.
func refusedTLS(endpoints []string, c *tls.Config) error {
	if c == nil {
		return nil
	}
	for _, endpoint := range endpoints {
		at, err := url.Parse(endpoint)
		if err != nil || at.Scheme != "https" {
			continue
		}
		var bad *tls.CertificateVerificationError
		err = shakeHands(at.Host, c)
		switch {
		case errors.As(err, &bad):
			return err
		case isAlert(err) && strings.Contains(err.Error(), "bad certificate"): // TLS has no word for one that was revoked
			return fmt.Errorf("it refuses this host (etcd.tls.cert and key): %w: it was revoked, or the server wants "+
				"another one", err)
		case isAlert(err):
			return fmt.Errorf("it refuses this host (etcd.tls.cert and key): %w", err)
		case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
			return errors.New("it ends the connection when it knows the certificate of this host (etcd.tls.cert): " +
				"it was revoked, or the server wants another one")
		}
	}
	return nil
}

// isAlert reports that the other side ended the connection for a reason of TLS, which has no type of its own.
func isAlert(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error"
}

// shakeHands connects, and waits a moment for a server that refuses this host's certificate: it says so behind its own
// part.
func shakeHands(host string, c *tls.Config) error {
	ctx, cancel := context.WithTimeout(context.Background(), probeTime)
	defer cancel()
	conn, err := (&tls.Dialer{Config: c.Clone()}).DialContext(ctx, "tcp", host)
	if err != nil {
		return err
	}
	defer conn.Close() // nothing was written
	if err := conn.SetReadDeadline(time.Now().Add(probeTime / 4)); err != nil {
		return err
	}
	_, err = conn.Read(make([]byte, 1))
	return err
}
