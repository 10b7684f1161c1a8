package datastore

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc"

	"github.com/pullet/pullet/state"
)

const (
	memberName   = "datastore"
	startTimeout = time.Minute
	keptHistory  = "1h" // of the record: etcd forgets older revisions

	// compactedAtOnce is how many revisions etcd forgets together. It rests for 10 ms behind each part, and the keeper
	// waits for the whole of a record that somebody filled with millions.
	compactedAtOnce = 10_000
)

// member is the etcd of a datastore that this process runs.
type member struct {
	Config
	server *embed.Etcd
	level  zap.AtomicLevel // of what etcd logs
}

// startMember starts the member and waits until it serves.
func startMember(ctx context.Context, c Config, options []grpc.ServerOption) (*member, error) {
	config, err := c.member()
	if err != nil {
		return nil, err
	}
	config.GRPCAdditionalServerOptions = options
	// What it warns of is what the keeper looks up, such as whether a user is there.
	level := zap.NewAtomicLevelAt(zapcore.ErrorLevel)
	encoder := zapcore.NewConsoleEncoder(zap.NewProductionEncoderConfig())
	config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.New(zapcore.NewCore(encoder, zapcore.Lock(os.Stderr), level)))
	server, err := embed.StartEtcd(config)
	if err != nil {
		return nil, fmt.Errorf("etcd does not start: %w", err)
	}
	m := &member{c, server, level}
	select {
	case <-server.Server.ReadyNotify():
		return m, nil
	case err = <-server.Err():
	case <-ctx.Done():
		err = ctx.Err()
	case <-time.After(startTimeout):
		err = fmt.Errorf("etcd is not ready after %s", startTimeout)
	}
	server.Server.HardStop() // Close alone would wait until it is ready
	server.Close()
	return nil, err
}

// member is how etcd runs: for clients with a certificate of the authority alone, and by itself.
func (c Config) member() (*embed.Config, error) {
	out := embed.NewConfig()
	out.Name, out.Dir = memberName, c.file(memberDir)
	client, err := url.Parse("https://" + listening(c.Client))
	if err != nil {
		return nil, fmt.Errorf("datastore.client: %w", err)
	}
	advertised, err := url.Parse(c.Endpoint())
	if err != nil {
		return nil, fmt.Errorf("datastore.client: %w", err)
	}
	peer := url.URL{Scheme: "unix", Path: filepath.Join(c.Dir, "peer.sock:0")} // the port means nothing
	out.ListenClientUrls, out.AdvertiseClientUrls = []url.URL{*client}, []url.URL{*advertised}
	// Of a peer's URL etcd listens at the host: with a path alone it would take an abstract socket, open to everybody.
	out.ListenPeerUrls, out.AdvertisePeerUrls = []url.URL{{Scheme: peer.Scheme, Host: peer.Path}}, []url.URL{peer}
	out.InitialCluster = memberName + "=" + peer.String()
	out.ClientTLSInfo = transport.TLSInfo{
		CertFile: c.file(serverFile), KeyFile: c.file(serverFile), TrustedCAFile: c.file(bundleFile),
		ClientCertAuth: true, CRLFile: c.file(crlFile),
	}
	out.EnableGRPCGateway = false // it would act with the certificate of the server
	out.QuotaBackendBytes = c.quota()
	out.CompactionBatchLimit = compactedAtOnce
	out.AutoCompactionMode, out.AutoCompactionRetention = "periodic", keptHistory
	return out, nil
}

// connect opens the record as the keeper.
func (m *member) connect(ctx context.Context, fleet string) (*state.Store, error) {
	file := m.file(keeperFile)
	return state.Open(ctx, state.Config{
		Endpoints: []string{m.loopback()}, Fleet: fleet,
		TLS: state.TLS{CA: m.file(bundleFile), Cert: file, Key: file},
	})
}

// stop ends the member in order. etcd takes each listener that is closed for an error.
func (m *member) stop() {
	m.level.SetLevel(zapcore.DPanicLevel)
	m.server.Close()
}

// failed is why etcd ended by itself.
func (m *member) failed() <-chan error { return m.server.Err() }
