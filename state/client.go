package state

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"
)

// client is the configuration of the etcd client.
func (c Config) client(endpoints []string) (clientv3.Config, error) {
	out := clientv3.Config{
		Endpoints: endpoints, DialTimeout: c.patience(), DialKeepAliveTime: 10 * time.Second,
		DialKeepAliveTimeout: 5 * time.Second,
		Logger:               zap.NewNop(), // what goes wrong is in the errors
		MaxUnaryRetries:      2,            // the client's own 100 would make minutes of operationTimeout
		DialOptions: []grpc.DialOption{
			grpc.WithChainUnaryInterceptor(Bounded), grpc.WithChainStreamInterceptor(telling),
		},
	}
	if c.Username != "" {
		password, err := os.ReadFile(c.PasswordFile)
		if err != nil {
			return out, fmt.Errorf("etcd.passwordFile: %w", err)
		}
		out.Username, out.Password = c.Username, strings.TrimSpace(string(password))
	}
	if c.TLS == (TLS{}) {
		return out, nil
	}
	var err error
	out.TLS, err = c.TLS.config()
	return out, err
}

// Connect is a client of the store, which is asked nothing yet: for what its members answer without a quorum, too.
func Connect(c Config) (*clientv3.Client, error) {
	config, err := c.client(c.Endpoints)
	if err != nil {
		return nil, err
	}
	return clientv3.New(config)
}

// operationTimeout is how long one read or write may take.
const operationTimeout = 10 * time.Second

// refusedTime is how long an operation may take that begins while every attempt to connect fails: a store that starts
// again is back soon. The client makes two of it where it reads.
const refusedTime = 3 * time.Second

// limit is how long an operation on a connection may take.
func limit(conn *grpc.ClientConn) time.Duration {
	if conn.GetState() == connectivity.TransientFailure {
		return refusedTime
	}
	return operationTimeout
}

// Bounded is an interceptor for the operations of a client. One that gets no answer ends, and sooner where there is no
// connection: the client alone would wait as long as its caller. One that etcd did not begin with, because too many are
// on their way, is tried again, later each time.
func Bounded(
	ctx context.Context,
	method string,
	req, reply any,
	conn *grpc.ClientConn,
	invoke grpc.UnaryInvoker,
	opts ...grpc.CallOption,
) error {
	ctx, cancel := context.WithTimeout(ctx, limit(conn))
	defer cancel()
	for later := 400 * time.Millisecond; ; later = min(2*later, 2*time.Second) {
		err := invoke(ctx, method, req, reply, conn, opts...)
		if rpctypes.ErrorDesc(err) != rpctypes.ErrorDesc(rpctypes.ErrGRPCRequestTooManyRequests) {
			return err
		}
		Pause(ctx, later/2+rand.N(later/2))
	}
}

// telling is an interceptor for the streams of a client. When something is sent on a stream that a member ended,
// because it is stopping, gRPC returns io.EOF. With that, etcd's client gives up the renewal of a lease that it would
// otherwise retry. The interceptor returns the code for that.
func telling(
	ctx context.Context,
	of *grpc.StreamDesc,
	conn *grpc.ClientConn,
	method string,
	begin grpc.Streamer,
	opts ...grpc.CallOption,
) (grpc.ClientStream, error) {
	s, err := begin(ctx, of, conn, method, opts...)
	if err != nil {
		return nil, err
	}
	return tellingStream{s}, nil
}

type tellingStream struct{ grpc.ClientStream }

func (s tellingStream) SendMsg(m any) error {
	err := s.ClientStream.SendMsg(m)
	if !errors.Is(err, io.EOF) {
		return err
	}
	Pause(s.Context(), endedPause) // etcd's client tries again at once
	// Why, only RecvMsg knows, in which another goroutine may wait: two must not.
	return status.Error(codes.Unavailable, "etcd ended the stream")
}

// endedPause is how long it takes until another stream is tried.
const endedPause = 50 * time.Millisecond

func (t TLS) config() (*tls.Config, error) {
	out := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.CA != "" {
		pem, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, fmt.Errorf("etcd.tls.ca: %w", err)
		}
		out.RootCAs = x509.NewCertPool()
		if !out.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("etcd.tls.ca: %s holds no certificate", t.CA)
		}
	}
	if t.Cert != "" || t.Key != "" {
		pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
		if err != nil {
			return nil, fmt.Errorf("etcd.tls.cert and key: %w", err)
		}
		out.Certificates = []tls.Certificate{pair}
	}
	return out, nil
}
