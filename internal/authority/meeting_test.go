package authority

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/internal/freeport"
)

// TestJoinStrangers: whoever answers in the place of the fleet's door hears nothing, not even the path.
func TestJoinStrangers(t *testing.T) {
	now := time.Now()
	fleet, other := created(t, "prod", now), created(t, "prod", now)
	here := []string{"127.0.0.1"}
	leafOnly := func(credentials []byte) []byte {
		return credentials[:strings.LastIndex(string(credentials), "-----BEGIN CERTIFICATE")]
	}
	his := credentialsOf(t, other, door1, here, now)
	node := credentialsOf(t, fleet, Subject{"prod", "web1", Node}, nil, now)
	for what, c := range map[string]struct {
		credentials []byte
		err         string
	}{
		"another authority":                        {his, "presents an authority " + other.Fingerprint() + ", the invitation names " + fleet.Fingerprint() + ": it is another fleet, or somebody answers in its place"},
		"no authority":                             {leafOnly(his), "presents no authority"},
		"no authority, but of this one":            {leafOnly(credentialsOf(t, fleet, door1, here, now)), "presents no authority"},
		"this authority shown by another's server": {joined(leafOnly(his), fleet.Bundle()), "the fleet's authority did not sign it"},
		"both authorities":                         {joined(his, fleet.Bundle()), "the fleet's authority did not sign it"},
		"a host of the fleet":                      {node, "the certificate of node web1"},
		"the fleet's server of another address":    {credentialsOf(t, fleet, door1, []string{"10.0.0.1", "door1"}, now), "not for the address 127.0.0.1"},
		"the authority itself":                     {fleet.Encode(), "presents no authority"},
	} {
		address, heard := serve(t, c.credentials, http.NotFoundHandler())
		_, err := Join(t.Context(), address, fleet.Fingerprint(), Asked{Token: "secret"})
		wantError(t, what, err, c.err)
		if !heardNothing(heard) {
			t.Errorf("%s: it hears the request", what)
		}
	}
}

// TestJoinClocks: a server's certificate counts only while it is valid, and the error names the host's clock.
func TestJoinClocks(t *testing.T) {
	f, address := openFleet(t)
	_, csr, err := Request()
	if err != nil {
		t.Fatal(err)
	}
	for after, want := range map[time.Duration]string{
		-2 * time.Hour: "it is valid from", DefaultLife + time.Hour: "it ended at", 20 * 365 * 24 * time.Hour: "it ended at",
	} {
		j, err := newJoining(address, f.authority.Fingerprint(), Asked{Token: f.invite(t, time.Now().Add(time.Hour)), Request: string(csr)})
		if err != nil {
			t.Fatal(err)
		}
		j.now = func() time.Time { return time.Now().Add(after) }
		_, err = j.ask(t.Context())
		wantError(t, after.String(), err, want)
		wantError(t, after.String(), err, "the clock of this host says")
	}
}

// TestMeetServersAlone: a certificate that the authority signed is not enough. It has to be for servers, and of one.
func TestMeetServersAlone(t *testing.T) {
	a := created(t, "prod", noon)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		s     Subject
		usage x509.ExtKeyUsage
		err   string
	}{
		"a server":             {door1, x509.ExtKeyUsageServerAuth, ""},
		"a client":             {door1, x509.ExtKeyUsageClientAuth, "it is not for this use"},
		"a host":               {Subject{"prod", "web1", Node}, x509.ExtKeyUsageServerAuth, "is the node web1, and not a server of the fleet prod"},
		"another fleet's":      {Subject{"test", "door1", Server}, x509.ExtKeyUsageServerAuth, "is of the fleet test, and its authority of another"},
		"a name of no subject": {Subject{"prod", "root", Server}, x509.ExtKeyUsageServerAuth, "the name of the keeper"},
	} {
		der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
			SerialNumber: serial(), Subject: c.s.name(), NotBefore: noon, NotAfter: noon.Add(time.Hour), DNSNames: []string{"door1"},
			ExtKeyUsage: []x509.ExtKeyUsage{c.usage},
		}, a.certificates[0], key.Public(), a.key)
		if err != nil {
			t.Fatal(err)
		}
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		m := &meeting{address: "door1:2390", host: "door1", pin: a.Fingerprint(), now: func() time.Time { return noon }}
		got, err := m.meet([]*x509.Certificate{cert, a.certificates[0]})
		wantError(t, what, err, c.err)
		if err == nil && got != c.s {
			t.Error(what, got)
		}
	}
	_, err = (&meeting{address: "door1:2390"}).meet(nil)
	wantError(t, "nothing", err, "presents no certificate")
}

// TestJoinNobody: what is said when no door is there.
func TestJoinNobody(t *testing.T) {
	a := created(t, "prod", time.Now())
	closed, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	_, err = Join(t.Context(), closed, a.Fingerprint(), Asked{})
	wantError(t, "a closed port", err, "nobody answers at "+closed)

	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = Join(ctx, silent.Addr().String(), a.Fingerprint(), Asked{})
	wantError(t, "a silent port", err, "nobody answers at "+silent.Addr().String()+" in time")

	plain := &http.Server{Handler: http.NotFoundHandler(), ErrorLog: log.New(io.Discard, "", 0)}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = plain.Serve(listener) }()
	defer func() { _ = plain.Close() }()
	_, err = Join(t.Context(), listener.Addr().String(), a.Fingerprint(), Asked{})
	wantError(t, "without TLS", err, "not a fleet's door")

	credentials := credentialsOf(t, a, door1, []string{"127.0.0.1"}, time.Now())
	pair, err := tls.X509KeyPair(credentials, credentials)
	if err != nil {
		t.Fatal(err)
	}
	old, heard := serveWith(t, &tls.Config{Certificates: []tls.Certificate{pair}, MaxVersion: tls.VersionTLS12}, http.NotFoundHandler())
	_, err = Join(t.Context(), old, a.Fingerprint(), Asked{})
	wantError(t, "TLS 1.2", err, "not a fleet's door")
	if !heardNothing(heard) {
		t.Error("a server of TLS 1.2 hears the request")
	}
}

// TestJoinCanceled: who cancels is not told that nobody answers.
func TestJoinCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Join(ctx, "127.0.0.1:9", created(t, "prod", noon).Fingerprint(), Asked{})
	if !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "nobody") {
		t.Error(err)
	}
}
