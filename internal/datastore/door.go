package datastore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/pullet/pullet/internal/authority"
	"github.com/pullet/pullet/internal/unixsocket"
	"github.com/pullet/pullet/state"
)

// closeTime is how long a door has to answer who stands in it.
const closeTime = 5 * time.Second

// doors are where somebody with an invitation asks for a certificate, and root of this host for more.
type doors struct{ *keeper }

// open opens the door for root of this host, and where one is wanted the one on the network.
func (k doors) open(ctx context.Context) (closed func(), err error) {
	handler := authority.Handler(k.admit, func(err error) { k.Log.WithError(err).Warn("somebody could not join") })
	if err := os.Remove(k.DoorSocket()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	inside, err := unixsocket.Listen(k.DoorSocket()) // its directory is root's alone
	if err != nil {
		return nil, fmt.Errorf("the door of this host: %w", err)
	}
	all := http.NewServeMux()
	all.Handle("/", handler)
	all.HandleFunc("POST "+rotatePath, rotateHandler(k.keeper))
	all.HandleFunc("POST "+wantedPath, wantedHandler(k.keeper))
	all.HandleFunc("POST "+turnPath, turnHandler(k.keeper))
	all.HandleFunc("POST "+shutPath, shutHandler(k.keeper))
	doors := []*http.Server{k.serve(ctx, inside, all)}
	if k.Door != "" {
		outside, err := net.Listen("tcp", listening(k.Door))
		if err != nil {
			return nil, errors.Join(fmt.Errorf("datastore.door: %w", err), doors[0].Close())
		}
		c := &tls.Config{MinVersion: tls.VersionTLS13, GetCertificate: k.serverCertificate}
		doors = append(doors, k.serve(ctx, tls.NewListener(limit(outside, maxVisitors), c), handler))
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
		defer cancel()
		for _, d := range doors {
			_ = d.Shutdown(ctx) // who asks gets no answer then, and asks again
		}
	}, nil
}

// serve serves one door.
func (k doors) serve(ctx context.Context, at net.Listener, handler http.Handler) *http.Server {
	door := &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 10 * time.Second, MaxHeaderBytes: 16 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    log.New(io.Discard, "", 0), // strangers would fill the log
	}
	go func() {
		if err := door.Serve(at); !errors.Is(err, http.ErrServerClosed) {
			k.Log.WithError(err).Error("the door is closed")
		}
	}()
	return door
}

// serverCertificate reads the credentials at each connection: they are renewed while the door is open.
func (k doors) serverCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(k.file(serverFile), k.file(serverFile))
	return &pair, err
}

// admit gives somebody with an invitation a certificate. The token is used when that is sure to work.
func (k doors) admit(ctx context.Context, asked authority.Asked) (authority.Answer, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	i, err := k.invitation(ctx, asked.Token, now)
	if err != nil {
		return authority.Answer{}, err
	}
	c, err := k.store.Identities.All(ctx)
	if err != nil {
		return authority.Answer{}, err
	}
	have, known := c.Identities[i.Name]
	if known && have.Kind != i.Kind {
		return authority.Answer{}, &authority.Refusal{Reason: fmt.Sprintf("%s is the name of %s already", i.Name, have.Kind)}
	}
	next, err := k.keys.certificate(i.Name, state.Identity{Kind: i.Kind, By: i.By}, asked.Request, now)
	if err != nil {
		return authority.Answer{}, err
	}
	a := k.keys.answer(i.Name, next)
	if len(c.Authority.Endpoints) > 0 {
		a.Endpoints = c.Authority.Endpoints
	}
	if err := k.Invited(i, &a); err != nil {
		return authority.Answer{}, err
	}
	if used, err := k.store.Identities.Use(ctx, i.ID); err != nil || !used {
		return authority.Answer{}, errors.Join(err, noInvitation(err))
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime) // who leaves now leaves nothing half done
	defer cancel()
	k.Log.WithField("name", i.Name).Info("joined")
	next.Uses = next.Serials[0].Number
	return a, k.enter(ctx, i.Name, next, c, now)
}

// invitation is the one that a token opens.
func (k doors) invitation(ctx context.Context, token string, now time.Time) (state.Invitation, error) {
	id, err := authority.TokenID(token)
	if err != nil {
		return state.Invitation{}, err
	}
	i, found, err := k.store.Identities.Invited(ctx, id)
	if err == nil && !found {
		err = noInvitation(nil)
	}
	if err == nil {
		err = i.Opens(token, now)
	}
	return i, err
}

// noInvitation refuses a token that nobody knows, unless there is another error.
func noInvitation(err error) error {
	if err != nil {
		return err
	}
	return &authority.Refusal{
		Reason: "the token was used, or its invitation ended, or it is of another fleet: " +
			"pullet fleet invite NAME makes another one",
	}
}

// enter lets somebody in, and strikes the certificates that the name had before. Etcd knows the user before the record
// has it: a user who is not on record is removed by the next round, so a kill in between leaves nobody half let in.
func (k doors) enter(ctx context.Context, name string, i state.Identity, c state.Credentials, now time.Time) error {
	if before := c.Identities[name].Serials; len(before) > 0 {
		if err := k.store.Identities.Strike(ctx, name, before); err != nil {
			return err
		}
		numbers := slices.Collect(maps.Keys(c.Revoked))
		for _, one := range before {
			numbers = append(numbers, one.Number)
		}
		if err := k.revoke(numbers, now); err != nil {
			return err
		}
	}
	if err := k.users.grant(ctx, name, i.Kind); err != nil {
		return err
	}
	return k.store.Identities.Admit(ctx, name, i, c.Revision)
}
