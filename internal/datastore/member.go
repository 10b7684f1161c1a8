package datastore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc"

	"github.com/pullet/pullet/internal/authority"
	"github.com/pullet/pullet/internal/datastore/membership"
	"github.com/pullet/pullet/state"
)

const (
	startTimeout = time.Minute
	keptHistory  = "1h" // of the record: etcd forgets older revisions

	// compactedAtOnce is how many revisions etcd forgets together. It rests for 10 ms behind each part, and the keeper
	// waits for the whole of a record that somebody filled with millions.
	compactedAtOnce = 10_000
)

// member is the etcd of a datastore that this process runs.
type member struct {
	Config
	server  *embed.Etcd
	level   zap.AtomicLevel // of what etcd logs
	release func() error    // see shorten
}

// startMember starts the member and waits until it serves. Together with others it waits for so many of them that they
// have a quorum.
func startMember(ctx context.Context, c Config, name string, options []grpc.ServerOption) (*member, error) {
	config, err := c.member(name)
	if err != nil {
		return nil, err
	}
	config.GRPCAdditionalServerOptions = options
	// What it warns of is what the keeper looks up, such as whether a user is there.
	level := zap.NewAtomicLevelAt(zapcore.DPanicLevel) // why it does not start is returned
	config.ZapLoggerBuilder = loggedFrom(level)
	if err := errors.Join(c.diskRoom(), c.bornAnew(), state.AwaitUnlocked(ctx, config.Dir)); err != nil {
		return nil, err
	}
	release, err := shorten(config, c.Dir)
	if err != nil {
		return nil, err
	}
	server, err := embed.StartEtcd(config)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("etcd does not start: %w", joining{c}.why(err, time.Now())), release())
	}
	level.SetLevel(zapcore.ErrorLevel)
	m := &member{c, server, level, release}
	// From here on it has a record: begun anew without one, it would be another member under the same name.
	if err := os.Remove(c.file(joiningFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		m.stop()
		return nil, err
	}
	var late <-chan time.Time
	if !c.among() {
		late = time.After(startTimeout)
	}
	select {
	case <-server.Server.ReadyNotify():
		return m, nil
	case err = <-m.failed():
		err = m.why(err)
	case <-m.removed():
		err = errRemoved
	case <-ctx.Done():
		err = ctx.Err()
	case <-late:
		err = fmt.Errorf("etcd is not ready after %s", startTimeout)
	}
	server.Server.HardStop() // Close alone would wait until it is ready
	m.stop()
	return nil, err
}

// bornAnew removes what the very first start left, if that was killed: a log without an entry, with which etcd would
// wait for a leader for good. Where anybody was ever recorded firstFile is gone, and the log stays as it is: a damaged
// one may look empty, too. A member among others gets the entries from these.
func (c Config) bornAnew() error {
	at := memberFiles(c.file(memberDir))
	if c.among() || !c.recorded() || !c.has(firstFile) {
		return nil
	}
	if k, err := at.kept(); err != nil || k.index > 0 { // of a log that cannot be read etcd says what is wrong
		return nil
	}
	return os.RemoveAll(string(at))
}

// loggedFrom has etcd log to stderr from a level on.
func loggedFrom(level zap.AtomicLevel) func(*embed.Config) error {
	encoder := zapcore.NewConsoleEncoder(zap.NewProductionEncoderConfig())
	return embed.NewZapLoggerBuilder(zap.New(zapcore.NewCore(encoder, zapcore.Lock(os.Stderr), level)))
}

// errRemoved says that the other members removed this one.
var errRemoved = errors.New("it is no member of the datastore any more")

// member is how etcd runs: for clients with a certificate of the authority alone.
func (c Config) member(name string) (*embed.Config, error) {
	out := embed.NewConfig()
	out.Name, out.Dir = name, c.file(memberDir)
	client, err := url.Parse("https://" + listening(c.Client))
	if err != nil {
		return nil, fmt.Errorf("datastore.client: %w", err)
	}
	advertised, err := url.Parse(c.Endpoint())
	if err != nil {
		return nil, fmt.Errorf("datastore.client: %w", err)
	}
	out.ListenClientUrls, out.AdvertiseClientUrls = []url.URL{*client}, []url.URL{*advertised}
	out.ClientTLSInfo = transport.TLSInfo{
		CertFile: c.file(serverFile), KeyFile: c.file(serverFile), TrustedCAFile: c.file(bundleFile),
		ClientCertAuth: true, CRLFile: c.file(crlFile),
	}
	out.EnableGRPCGateway = false // it would act with the certificate of the server
	// Calls alone come to the port for clients: where HTTP does, too, etcd answers calls with nonsense while it stops.
	out.ListenClientHttpUrls = []url.URL{{Scheme: "unix", Host: filepath.Join(c.Dir, "http.sock:0")}}
	out.QuotaBackendBytes = c.quota()
	out.CompactionBatchLimit = compactedAtOnce
	out.AutoCompactionMode, out.AutoCompactionRetention = "periodic", keptHistory
	out.MaxLearners = membership.MaxLearners
	out.StrictReconfigCheck = false // it lets no learner in while a member is away; package membership watches the quorum
	if c.among() {
		return out, c.withPeers(out)
	}
	peer := url.URL{Scheme: "unix", Path: filepath.Join(c.Dir, "peer.sock:0")} // the port means nothing
	// Of a peer's URL etcd listens at the host: with a path alone it would take an abstract socket, open to everybody.
	out.ListenPeerUrls, out.AdvertisePeerUrls = []url.URL{{Scheme: peer.Scheme, Host: peer.Path}}, []url.URL{peer}
	out.InitialCluster = name + "=" + peer.String()
	return out, nil
}

// among reports a member that others may reach.
func (c Config) among() bool { return c.has(clusterFile) }

// withPeers has a member listen to others: to those with a certificate of a datastore.
func (c Config) withPeers(out *embed.Config) error {
	cluster, err := os.ReadFile(c.file(clusterFile))
	if err != nil {
		return err
	}
	listen, err := url.Parse("https://" + listening(c.peer()))
	if err != nil {
		return fmt.Errorf("datastore.peer: %w", err)
	}
	advertised, err := url.Parse(c.peerURL())
	if err != nil {
		return fmt.Errorf("datastore.peer: %w", err)
	}
	out.ListenPeerUrls, out.AdvertisePeerUrls = []url.URL{*listen}, []url.URL{*advertised}
	out.InitialCluster, out.ClusterState = strings.TrimSpace(string(cluster)), embed.ClusterStateFlagExisting
	out.PeerTLSInfo = out.ClientTLSInfo
	out.PeerTLSInfo.AllowedCNs = []string{authority.ServerName}
	out.PeerTLSInfo.SkipClientSANVerify = true // a host may have addresses beside that at which others find it
	return nil
}

// connect opens the record as the keeper.
func (c Config) connect(ctx context.Context, fleet string) (*state.Store, error) {
	file := c.file(keeperFile)
	return state.Open(ctx, state.Config{
		Endpoints: []string{c.loopback()}, Fleet: fleet, AnyFormat: true, // without it nobody would reach the record
		TLS: state.TLS{CA: c.file(bundleFile), Cert: file, Key: file},
	})
}

// stop ends the member in order. etcd takes each listener that is closed for an error. Where etcd ended by itself, as a
// member does that others removed, its record is closed already, and a call may hang on a lock of it for good: stop
// waits for calls no longer than stopTime then.
func (m *member) stop() {
	m.level.SetLevel(zapcore.DPanicLevel)
	var late <-chan time.Time
	select {
	case <-m.removed():
		late = time.After(stopTime)
	default:
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		m.server.Close()
	}()
	select {
	case <-closed:
	case <-late:
	}
	_ = m.release() // nothing was written through it
}

// failed is why etcd ended by itself.
func (m *member) failed() <-chan error { return m.server.Err() }

// stopTime is how long etcd takes to stop.
const stopTime = 5 * time.Second

// why is what an error of etcd means: one that is removed fails at this and that, and stops then.
func (m *member) why(err error) error {
	select {
	case <-m.removed():
		return errRemoved
	case <-time.After(stopTime):
		return fmt.Errorf("etcd ended: %w", err)
	}
}

// removed is closed when etcd ended because it is no member any more.
func (m *member) removed() <-chan struct{} { return m.server.Server.StopNotify() }

// leaderChanged is closed when another member leads, or this one.
func (m *member) leaderChanged() <-chan struct{} { return m.server.Server.LeaderChangedNotify() }

// learns reports a member that gets the record and does not count yet.
func (m *member) learns() bool { return m.server.Server.IsLearner() }

// leads reports that it leads the members, as far as it knows.
func (m *member) leads() bool { return m.server.Server.Leader() == m.server.Server.MemberID() }
