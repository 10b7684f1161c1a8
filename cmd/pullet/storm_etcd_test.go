package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	mrand "math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/pullet/pullet/state"
)

// stormQuota is the room of a storm's etcd: enough for its record, and filled in no time.
const stormQuota = 96 << 20

// startEtcd starts the members, with users where the storm is to have them.
func (s *storm) startEtcd() {
	if s.kind.secure {
		s.certificate()
	}
	s.cluster = newCluster(s.t, s.dir, s.kind.members, s.scheme(), stormQuota)
	s.connect()
	if s.kind.secure {
		s.users()
		s.connect()
	}
	s.look()
}

func (s *storm) scheme() string {
	if s.kind.secure {
		return "https"
	}
	return "http"
}

// The users of a storm's etcd: nodes can do what docs/node.md says that they have to, the storm itself everything.
const stormUser, stormPassword = "node", "not a secret"

// credentials are what a node's configuration says of its user.
func (s *storm) credentials() string {
	if !s.kind.secure {
		return ""
	}
	return fmt.Sprintf(", tls: {ca: %s/cert.pem}, username: %s, passwordFile: %s/password", s.dir, stormUser, s.dir)
}

// users makes the users, and asks for them from here on.
func (s *storm) users() {
	s.write("password", stormPassword+"\n")
	ctx := s.t.Context()
	_, err := s.client.UserAdd(ctx, "root", stormPassword)
	do := func(next func() error) {
		if err == nil {
			err = next()
		}
	}
	do(func() error { _, err := s.client.UserGrantRole(ctx, "root", "root"); return err })
	do(func() error { _, err := s.client.RoleAdd(ctx, "fleet"); return err })
	do(func() error {
		_, err := s.client.RoleGrantPermission(ctx, "fleet", "/pullet/default/", clientv3.GetPrefixRangeEnd("/pullet/default/"), clientv3.PermissionType(clientv3.PermReadWrite))
		return err
	})
	do(func() error { _, err := s.client.UserAdd(ctx, stormUser, stormPassword); return err })
	do(func() error { _, err := s.client.UserGrantRole(ctx, stormUser, "fleet"); return err })
	do(func() error { _, err := s.client.AuthEnable(ctx); return err })
	if err != nil {
		s.t.Fatal(err)
	}
}

// connect opens the storm's own client, once etcd answers.
func (s *storm) connect() {
	c := clientv3.Config{Endpoints: s.addresses(), Logger: zap.NewNop(), DialTimeout: 5 * time.Second}
	if s.kind.secure {
		text, err := os.ReadFile(filepath.Join(s.dir, "cert.pem"))
		if err != nil {
			s.t.Fatal(err)
		}
		c.TLS = &tls.Config{RootCAs: x509.NewCertPool()}
		c.TLS.RootCAs.AppendCertsFromPEM(text)
		if s.client != nil {
			c.Username, c.Password = "root", stormPassword
		}
	}
	end := time.Now().Add(time.Minute)
	for {
		client, err := clientv3.New(c)
		if err == nil {
			ctx, cancel := context.WithTimeout(s.t.Context(), 5*time.Second)
			_, err = client.Get(ctx, "/")
			cancel()
		}
		if err == nil {
			s.t.Cleanup(func() { client.Close() })
			s.client, s.store = client, state.Over(client, "default", nil)
			return
		}
		if time.Now().After(end) {
			s.t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// look watches etcd from here on.
func (s *storm) look() {
	got, err := s.client.Get(s.t.Context(), "/")
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	s.stop = cancel
	s.watched.Store(got.Header.Revision)
	go s.watch(ctx, s.client, s.era, got.Header.Revision+1)
}

// certificate makes the certificate of all members, which is its own authority.
func (s *storm) certificate() {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		s.t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		s.t.Fatal(err)
	}
	s.write("cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	s.write("key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})))
}

// memberFault kills or stops a member, which is the leader in every other case.
func (s *storm) memberFault(x *mrand.Rand) {
	if !s.etcd.TryLock() {
		return
	}
	defer s.etcd.Unlock()
	lasts := between(x, time.Second, 6*time.Second)
	i := s.cluster.leader(s.client)
	if n := len(s.cluster.members); n > 1 && x.IntN(2) == 0 {
		i = (i + 1 + x.IntN(n-1)) % n
	}
	m := s.cluster.members[i]
	if x.IntN(2) == 0 {
		s.did("member killed", "%s for %s", m.name, lasts/2)
		m.kill(false)
		time.Sleep(lasts / 2)
		m.start(s.t)
		return
	}
	s.did("member stopped", "%s for %s", m.name, lasts)
	all := m.stop(false)
	time.Sleep(lasts)
	all.signal(syscall.SIGCONT)
}

// allDown kills all members, and lets do do something before they start again.
func (s *storm) allDown(lasts time.Duration, do func()) {
	for _, m := range s.cluster.members {
		m.kill(false)
	}
	s.log.say("away")
	time.Sleep(lasts)
	do()
	for _, m := range s.cluster.members {
		m.start(s.t)
	}
	s.log.say("back")
}

func (s *storm) blackout(x *mrand.Rand) {
	s.etcd.Lock()
	defer s.etcd.Unlock()
	lasts := between(x, time.Second, 8*time.Second)
	s.did("all members killed", "for %s", lasts)
	s.allDown(lasts, func() {})
}

// compact forgets the history of etcd, as far as the storm's own watch has seen it.
func (s *storm) compact(*mrand.Rand) {
	ctx, cancel := context.WithTimeout(s.t.Context(), 5*time.Second)
	defer cancel()
	at := s.watched.Load()
	if _, err := s.client.Compact(ctx, at); err == nil {
		s.did("compaction", "to revision %d", at)
	}
}

// restore takes etcd back to where it was some seconds ago, as from a backup. An operator sees it and accepts it, in
// the words of status.
func (s *storm) restore(x *mrand.Rand) {
	s.etcd.Lock()
	defer s.etcd.Unlock()
	copies := filepath.Join(s.dir, "backup")
	each := func(from, to string) {
		for _, m := range s.cluster.members {
			if err := copyState(filepath.Join(from, m.name), filepath.Join(to, m.name)); err != nil {
				s.t.Error(err)
			}
		}
	}
	if err := os.MkdirAll(copies, 0o700); err != nil {
		s.t.Error(err)
	}
	s.allDown(0, func() { each(s.dir, copies) })
	time.Sleep(between(x, 2*time.Second, 12*time.Second))
	s.did("etcd restored", "to where it was")
	for _, m := range s.cluster.members {
		m.kill(false)
	}
	s.stop()
	each(copies, s.dir)
	s.era++
	s.log.say("restored %d", s.era)
	for _, m := range s.cluster.members {
		m.start(s.t)
	}
	s.connect()
	s.lookAgain()
	time.Sleep(between(x, time.Second, 5*time.Second))
	s.accept()
}

// lookAgain watches a restored etcd from the first revision that it still has: what holds there is of the new era, too.
func (s *storm) lookAgain() {
	ctx, cancel := context.WithCancel(s.t.Context())
	s.stop = cancel
	s.watched.Store(0)
	go s.watch(ctx, s.client, s.era, 1)
}

// accept is the operator's word that the fleet goes on with a restored etcd: after a look that nobody is in the middle
// of an upgrade.
func (s *storm) accept() {
	for range 20 {
		if out, err := s.operator("rollout", "resume", "--store", "--force"); err == nil || !strings.Contains(out, "unreachable") {
			break
		}
		time.Sleep(500 * time.Millisecond)
	}
	s.log.say("accepted")
}

// revoke ends the lease of a node, of which that knows nothing.
func (s *storm) revoke(x *mrand.Rand) {
	h := s.hosts[x.IntN(len(s.hosts))]
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*time.Second)
	defer cancel()
	got, err := s.client.Get(ctx, s.store.Presences.AliveKey(h.node))
	if err != nil || len(got.Kvs) == 0 {
		return
	}
	s.did("lease revoked", "%s", h.node)
	_, _ = s.client.Revoke(ctx, clientv3.LeaseID(got.Kvs[0].Lease)) // no answer: it may be done all the same
}

// stormMarker is a key that the storm's own watch sees, and no node: that it is gone says that the watch has come so
// far.
const stormMarker = "/pullet/default~"

// noSpace fills etcd up to its quota for a while, and then makes room as etcd's own documents say: delete, compact,
// defragment, disarm.
func (s *storm) noSpace(x *mrand.Rand) {
	s.etcd.Lock()
	defer s.etcd.Unlock()
	ctx, cancel := context.WithTimeout(s.t.Context(), 20*time.Second)
	defer cancel()
	_, err := s.client.Put(ctx, stormMarker, "")
	block, i := strings.Repeat("x", 1<<20), 0
	for ; err == nil && i < 300; i++ {
		_, err = s.client.Put(ctx, fmt.Sprint("/junk/", i), block)
	}
	if errors.Is(err, rpctypes.ErrNoSpace) {
		lasts := between(x, time.Second, 10*time.Second)
		s.did("etcd out of space", "for %s", lasts)
		time.Sleep(lasts)
	}
	s.makeRoom()
}

// makeRoom lifts the end of space. What fails it tries again: members start and stop.
func (s *storm) makeRoom() {
	for end := time.Now().Add(time.Minute); ; time.Sleep(300 * time.Millisecond) {
		err := s.room()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			s.t.Errorf("no room could be made in etcd: %v", err)
			return
		}
	}
}

func (s *storm) room() error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if _, err := s.client.Delete(ctx, "/junk/", clientv3.WithPrefix()); err != nil {
		return err
	}
	marked, err := s.client.Delete(ctx, stormMarker)
	if err != nil {
		return err
	}
	for marked.Deleted > 0 && s.watched.Load() < marked.Header.Revision {
		if ctx.Err() != nil {
			return fmt.Errorf("the storm's own watch is behind: %w", ctx.Err())
		}
		time.Sleep(20 * time.Millisecond)
	}
	if _, err := s.client.Compact(ctx, s.watched.Load()); err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		return err
	}
	for _, at := range s.addresses() {
		if _, err := s.client.Defragment(ctx, at); err != nil {
			return err
		}
	}
	_, err = s.client.AlarmDisarm(ctx, &clientv3.AlarmMember{})
	return err
}
