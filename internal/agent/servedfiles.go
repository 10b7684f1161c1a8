package agent

import (
	"crypto/tls"
	"fmt"
	"log"
	"os"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pullet/pullet/internal/ownfile"
)

// certificateFiles is a certificate in files, which are looked at when a client comes.
type certificateFiles struct {
	Served
	mu      sync.Mutex
	read    *tls.Certificate
	changed [2]time.Time // of the files that were read
}

// open reads the files; nil where there are none.
func (s Served) open() (*certificateFiles, error) {
	if s == (Served{}) {
		return nil, nil
	}
	c := &certificateFiles{Served: s}
	if _, err := c.get(nil); err != nil {
		return nil, fmt.Errorf("agent.tls: %w", err)
	}
	return c, nil
}

// get is the certificate as the files have it, or as they had it last while they cannot be used: one is exchanged
// before the other.
func (c *certificateFiles) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed := [2]time.Time{changedAt(c.Cert), changedAt(c.Key)}
	if c.read != nil && changed == c.changed {
		return c.read, nil
	}
	fresh, err := c.load()
	if err == nil {
		c.read, c.changed = fresh, changed
	}
	if c.read != nil {
		return c.read, nil
	}
	return nil, err
}

func (c *certificateFiles) load() (*tls.Certificate, error) {
	for _, file := range []string{c.Cert, c.Key} {
		if err := ownfile.Check(file); err != nil {
			return nil, err
		}
	}
	if err := ownfile.Private(c.Key); err != nil {
		return nil, err
	}
	both, err := tls.LoadX509KeyPair(c.Cert, c.Key)
	return &both, err
}

// changedAt is when a file was changed; never is one that is not there.
func changedAt(file string) time.Time {
	info, err := os.Stat(file)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// quiet is a log of what clients do wrong, such as to speak no TLS: whoever reaches the port can fill it.
func quiet(to *logrus.Entry) *log.Logger { return log.New(debugLines{to}, "", 0) }

type debugLines struct{ to *logrus.Entry }

func (d debugLines) Write(line []byte) (int, error) {
	d.to.Debug(string(line))
	return len(line), nil
}
