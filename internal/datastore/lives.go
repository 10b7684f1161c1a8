package datastore

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/pullet/pullet/internal/durable"
	"github.com/pullet/pullet/state"
)

// life is a cluster of etcd as the member of this host knew it last. It is kept beside the record, which may be
// damaged.
type life struct {
	Cluster uint64        `json:"cluster"`
	Self    uint64        `json:"self"`   // the member of this host
	Others  []otherMember `json:"others"` // that serve clients
}

// otherMember is another member.
type otherMember struct {
	ID       uint64 `json:"id"`
	Endpoint string `json:"endpoint"`
}

// lifeOf is the life that a list of members is of.
func lifeOf(listed *clientv3.MemberListResponse) life {
	out := life{Cluster: listed.Header.ClusterId, Self: listed.Header.MemberId, Others: []otherMember{}}
	for _, m := range listed.Members {
		if m.ID != out.Self && len(m.ClientURLs) > 0 {
			out.Others = append(out.Others, otherMember{m.ID, m.ClientURLs[0]})
		}
	}
	return out
}

// lives knows of the life of this host's datastore, and of the others that it may have had since.
type lives struct {
	Options
	now atomic.Pointer[life] // nil: none began here
}

// note keeps the life for the next start, where it is another one than was kept.
func (l *lives) note(now life) error {
	if before := l.now.Load(); before != nil && reflect.DeepEqual(*before, now) {
		return nil
	}
	if err := durable.WriteJSON(l.file(lifeFile), now); err != nil {
		return err
	}
	l.now.Store(&now)
	return nil
}

// remember reads which members there were when this one ran last. One that begins has no file.
func (l *lives) remember() error {
	var was life
	err := durable.ReadJSON(l.file(lifeFile), &was)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		l.now.Store(&was)
	}
	return err
}

// endedError says why this host is to serve its record no more.
type endedError struct{ why string }

func (e *endedError) Error() string { return e.why }

// putsAside reports an error with which what this host kept is put aside.
func putsAside(err error) bool {
	_, ended := errors.AsType[*endedError](err)
	return ended || errors.Is(err, errRemoved)
}

// watch ends with an *endedError when another member went on alone with the record of this one's cluster, and with
// errRemoved when the others removed this one. It asks before this member starts, and of the first as long as ctx
// lives: two that come back together would be enough to serve a record that the fleet left behind.
func (l *lives) watch(ctx context.Context, end context.CancelCauseFunc) error {
	if err := l.remember(); err != nil {
		return err
	}
	if err := l.ended(ctx, true); err != nil {
		return err
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
			err := l.ended(ctx, false)
			if putsAside(err) {
				end(err)
				return
			} else if err != nil {
				l.Log.WithError(err).Warn("whether another member went on alone: asked again in a moment")
			}
		}
	}()
	return nil
}

// ended asks the other members once whether one of them went on alone. A member that starts asks whether they removed
// it, too: etcd says that to those alone that it runs. No answer is none.
func (l *lives) ended(ctx context.Context, starts bool) error {
	now := l.now.Load()
	if now == nil || len(now.Others) == 0 {
		return nil
	}
	client, err := l.asKeeper()
	if err != nil {
		return err
	}
	defer client.Close()
	var others []*pb.Member
	for _, p := range now.Others {
		others = append(others, &pb.Member{ID: p.ID, ClientURLs: []string{p.Endpoint}})
	}
	answers := statuses(ctx, client, others)
	for _, p := range now.Others {
		switch a := answers[p.ID]; {
		case a == nil:
		case a.Header.ClusterId == now.Cluster:
			if starts && l.removed(ctx, now.Self, p.Endpoint) {
				return errRemoved
			}
		default:
			if r, ended := l.endOf(ctx, now.Cluster, p.Endpoint); ended {
				return &endedError{fmt.Sprintf("the datastore was recovered on %s at %s, without this host",
					r.Node, r.At.Format(time.RFC3339))}
			}
		}
	}
	return nil
}

// removed asks a member of the same cluster whether this one is none any more. Its answer is that of a quorum.
func (l *lives) removed(ctx context.Context, self uint64, endpoint string) bool {
	client, err := l.asKeeper(endpoint)
	if err != nil {
		return false
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	listed, err := client.MemberList(ctx)
	return err == nil && !slices.ContainsFunc(listed.Members, func(m *pb.Member) bool { return m.ID == self })
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
