package datastore

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/pullet/pullet/state"
)

// life is a cluster of etcd with the members that one of them knows.
type life struct {
	cluster uint64
	members []*pb.Member
}

// lives knows of the life of this host's datastore, and of the others that it may have had since.
type lives struct {
	Options
	now atomic.Pointer[life] // nil: none began here
}

// endedError says that another host went on alone with the record of this one's cluster.
type endedError struct{ state.Recovery }

func (e *endedError) Error() string {
	return fmt.Sprintf("the datastore was recovered on %s at %s, without this host", e.Node, e.At.Format(time.RFC3339))
}

// untilEnded ends what it returns with an *endedError as its cause when another member went on alone. It asks before
// this member starts, and as long as it runs: two that come back together would be enough to serve a record that the
// fleet left behind.
func (l *lives) untilEnded(ctx context.Context) (context.Context, context.CancelFunc, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	end := func() { cancel(nil) }
	if err := l.remember(); err != nil {
		return ctx, end, err
	}
	if err := l.ended(ctx); err != nil {
		return ctx, end, err
	}
	go func() {
		every := time.NewTicker(cmp.Or(l.every, tendEvery))
		defer every.Stop()
		for {
			select {
			case <-every.C:
			case <-ctx.Done():
				return
			}
			err := l.ended(ctx)
			if _, ended := errors.AsType[*endedError](err); ended {
				cancel(err)
			} else if err != nil {
				l.Log.WithError(err).Warn("whether another member went on alone: asked again in a moment")
			}
		}
	}()
	return ctx, end, nil
}

// remember reads which members there were when this one ran last. One that begins has no files.
func (l *lives) remember() error {
	at := memberFiles(l.file(memberDir))
	if _, err := os.Stat(at.log()); err != nil {
		return nil // found said before whether it has to be there, and etcd says what is wrong with it
	}
	have, err := at.kept()
	if err != nil {
		return fmt.Errorf("the log of the fleet's record: %w", err)
	}
	members, err := at.members()
	if err != nil {
		return fmt.Errorf("the fleet's record: %w", err)
	}
	l.now.Store(&life{have.cluster, members})
	return nil
}

// ended asks the other members once whether one of them went on alone. No answer is none.
func (l *lives) ended(ctx context.Context) error {
	now := l.now.Load()
	if now == nil || len(now.members) < 2 {
		return nil
	}
	client, err := l.asKeeper()
	if err != nil {
		return err
	}
	defer client.Close()
	answers := statuses(ctx, client, now.members)
	for _, m := range now.members {
		if a := answers[m.ID]; a == nil || a.Header.ClusterId == now.cluster {
			continue
		}
		if r, ended := l.endOf(ctx, now.cluster, m.ClientURLs[0]); ended {
			return &endedError{r}
		}
	}
	return nil
}

// endOf asks a member of another cluster whether it goes on from one. Who answers has a certificate that the fleet's
// authority signed for a datastore, and a keeper alone writes what is read there.
func (l *lives) endOf(ctx context.Context, cluster uint64, endpoint string) (state.Recovery, bool) {
	client, err := l.asKeeper(endpoint)
	if err != nil {
		return state.Recovery{}, false
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	all, err := state.Over(client, l.Fleet, nil).Datastores.Recoveries(ctx)
	if err != nil {
		return state.Recovery{}, false
	}
	return all.Of(cluster)
}

// asKeeper is a client of members with the keeper's certificate. It asks nobody until it is used.
func (c Config) asKeeper(endpoints ...string) (*clientv3.Client, error) {
	with, err := c.presents(keeperFile)
	if err != nil {
		return nil, err
	}
	return c.asking(with, endpoints...)
}

// asking is a client of members, at first of the one of this host.
func (c Config) asking(with *tls.Config, endpoints ...string) (*clientv3.Client, error) {
	if len(endpoints) == 0 {
		endpoints = []string{c.loopback()}
	}
	return clientv3.New(clientv3.Config{
		Endpoints: endpoints, DialTimeout: answerTime, Logger: zap.NewNop(), MaxUnaryRetries: 1, TLS: with,
	})
}

// presents is how the datastore of this host connects to another one, with the credentials in a file.
func (c Config) presents(credentials string) (*tls.Config, error) {
	text, err := os.ReadFile(c.file(credentials))
	if err != nil {
		return nil, err
	}
	bundle, err := os.ReadFile(c.file(bundleFile))
	if err != nil {
		return nil, err
	}
	with, err := presenting(text, bundle)
	if err != nil {
		return nil, fmt.Errorf("%s and %s: %w", c.file(credentials), c.file(bundleFile), err)
	}
	return with, nil
}

// presenting presents credentials to whom these authorities vouch for.
func presenting(credentials, bundle []byte) (*tls.Config, error) {
	pair, err := tls.X509KeyPair(credentials, credentials)
	if err != nil {
		return nil, err
	}
	believes := x509.NewCertPool()
	if !believes.AppendCertsFromPEM(bundle) {
		return nil, errors.New("there is no certificate of an authority")
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: believes, MinVersion: tls.VersionTLS12}, nil
}
