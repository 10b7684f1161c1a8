package state

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"github.com/pullet/pullet/internal/freeport"
	"github.com/pullet/pullet/internal/patience"
	"github.com/pullet/pullet/internal/tier"
)

// testAuthority signs certificates for tests, and is one itself.
type issuer struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string
}

func newAuthority(t *testing.T, dir, name string) *issuer {
	a := &issuer{t: t}
	a.key, _ = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	a.cert = &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	a.file, _ = a.write(dir, name, a.cert, a.key)
	return a
}

// sign makes a certificate for this machine that is good for a time from now on.
func (a *issuer) sign(dir, name string, lasts time.Duration) (cert, key string) {
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(a.t, err)
	return a.write(dir, name, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(lasts),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, own)
}

func (a *issuer) write(dir, name string, c *x509.Certificate, own *ecdsa.PrivateKey) (cert, key string) {
	a.t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, &own.PublicKey, a.key)
	must(a.t, err)
	secret, err := x509.MarshalECPrivateKey(own)
	cert, key = filepath.Join(dir, name+".pem"), filepath.Join(dir, name+".key")
	must(a.t, err, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600),
		os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret}), 0o600))
	return cert, key
}

// serveTLS runs an etcd that shows a certificate and asks for one of an authority; it returns its URL.
func serveTLS(t *testing.T, ca *issuer, cert, key string) string {
	t.Helper()
	free, err := freeport.Address()
	must(t, err)
	at := url.URL{Scheme: "https", Host: free}
	dir := t.TempDir()
	c := embed.NewConfig()
	c.Dir, c.ZapLoggerBuilder = dir, embed.NewZapLoggerBuilder(zap.NewNop())
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{at}, []url.URL{at}
	peer := socketURL(dir, "peer")
	c.ListenPeerUrls, c.AdvertisePeerUrls, c.InitialCluster = []url.URL{peer}, []url.URL{peer}, c.Name+"="+peer.String()
	c.TickMs, c.ElectionMs = 10, 50
	c.ClientTLSInfo = transport.TLSInfo{CertFile: cert, KeyFile: key, TrustedCAFile: ca.file, ClientCertAuth: true}
	e, err := embed.StartEtcd(c)
	must(t, err)
	t.Cleanup(e.Close)
	<-e.Server.ReadyNotify()
	return at.String()
}

// TestUnreachableSaysWhy: what keeps a host from its fleet's record is said, not only that it has no answer.
func TestUnreachableSaysWhy(t *testing.T) {
	tier.Long(t, "waits for answers that do not come")
	dir := t.TempDir()
	ca, other := newAuthority(t, dir, "ca"), newAuthority(t, dir, "other")
	cert, key := ca.sign(dir, "server", time.Hour)
	old, oldKey := ca.sign(dir, "expired", -time.Minute)
	strange, strangeKey := other.sign(dir, "strange", time.Hour)
	good, expired := serveTLS(t, ca, cert, key), serveTLS(t, ca, old, oldKey)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { silent.Close() })
	for name, c := range map[string]struct {
		url  string
		tls  TLS
		want string
	}{
		"nobody listens":           {"http://127.0.0.1:1", TLS{}, "connection refused"},
		"nobody answers":           {"http://" + silent.Addr().String(), TLS{}, "no answer within 5s"},
		"a certificate of another": {good, TLS{CA: other.file, Cert: cert, Key: key}, "certificate signed by unknown authority"},
		"an expired certificate":   {expired, TLS{CA: ca.file, Cert: cert, Key: key}, "certificate has expired"},
		// What a server refuses after the handshake gRPC does not always pass on.
		"ours is of another": {good, TLS{CA: ca.file, Cert: strange, Key: strangeKey}, "refuses this host (etcd.tls.cert and key): remote error: tls: "},
		"ours is expired":    {good, TLS{CA: ca.file, Cert: old, Key: oldKey}, "refuses this host (etcd.tls.cert and key): remote error: tls: "},
		"without ours":       {good, TLS{CA: ca.file}, "refuses this host (etcd.tls.cert and key): remote error: tls: certificate required"},
		"without TLS":        {strings.Replace(good, "https", "http", 1), TLS{}, "no answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			_, err := Open(ctx, Config{Fleet: "f", Endpoints: []string{c.url}, TLS: c.tls})
			if took := time.Since(began); took > dialTimeout+patience.Stretch(time.Second) {
				t.Errorf("it took %s", took)
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v", err)
			}
		})
	}
}
