package agent

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/net/netutil"

	"github.com/pullet/pullet/internal/event/webhook"
	"github.com/pullet/pullet/internal/gitremote"
	"github.com/pullet/pullet/internal/metrics"
	"github.com/pullet/pullet/internal/ownfile"
	"github.com/pullet/pullet/state"
)

// maxConnections is how many clients are heard at a time; others wait.
const maxConnections = 64

// closeTime is how long requests may take to their end when the loop ends.
const closeTime = 5 * time.Second

// listen serves webhooks, metrics and whether the agent is well until it is closed. With no address it does nothing.
func (a *Agent) listen() (closes func(), err error) {
	if a.config.Agent.Listen == "" {
		return func() {}, nil
	}
	hooks, err := a.hooks()
	if err != nil {
		return nil, err
	}
	listener, err := a.config.Agent.listener()
	if err != nil {
		return nil, err
	}
	a.logger.Infof("listening for webhooks and monitoring at %s", listener.Addr())
	if a.monitoring.mayRead() == nil {
		a.logger.Warn("/metrics is not served: " +
			"agent.listen can be reached from elsewhere, and agent.metrics.tokenFile is missing")
	}
	a.monitoring.hooks.Store(hooks)
	return serve(listener, metrics.Handler(metrics.Served{
		View: a.monitoring.watched, May: a.monitoring.mayRead(), Healthy: a.monitoring.healthy, Ready: a.monitoring.ready,
		Others: hooks,
	}), a.logger), nil
}

// CanListen is why this agent could not listen in the place of one that listens somewhere now; nil: it could.
func (a *Agent) CanListen(now string) error {
	if _, err := a.hooks(); err != nil {
		return err
	}
	l := a.config.Agent
	if l.Listen == "" || l.Listen == now {
		_, err := l.TLS.open()
		return err
	}
	listener, err := l.listener()
	if err != nil {
		return err
	}
	return listener.Close()
}

// hooks are the webhooks of the configuration. It fails where a secret that listening takes cannot be read.
func (a *Agent) hooks() (*webhook.Handler, error) {
	hooks, err := webhook.New(a.config.Agent.Webhooks, webhook.Outside{
		Secret: readOwnSecret, Pushed: a.announce, Log: a.logger,
		Deliver: func(ctx context.Context, events []state.Event) error { return a.raise(ctx, events...) },
	})
	if err != nil {
		return nil, fmt.Errorf("agent.webhooks: %w", err)
	}
	if file := a.config.Agent.Metrics.TokenFile; file != "" {
		if _, err := hasToken(http.Header{}, file); err != nil {
			return nil, fmt.Errorf("agent.metrics: %w", err)
		}
	}
	return hooks, nil
}

// readOwnSecret reads a file that nobody else can read or write.
func readOwnSecret(file string) ([]byte, error) {
	if err := ownfile.Check(file); err != nil {
		return nil, err
	}
	return gitremote.ReadSecret(file)
}

// listener is where the configuration says that the agent listens.
func (l Loop) listener() (net.Listener, error) {
	files, err := l.TLS.open()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", l.Listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("agent.listen: another program listens at %s: find it with ss -ltnp, or give another port",
			l.Listen)
	}
	if err != nil {
		return nil, fmt.Errorf("agent.listen: %w", err)
	}
	listener = netutil.LimitListener(listener, maxConnections)
	if files != nil {
		listener = tls.NewListener(listener, &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: files.get})
	}
	return listener, nil
}

// serve answers clients until it is closed. Each step of a request has a time, so that nobody keeps a connection.
func serve(listener net.Listener, handler http.Handler, log *logrus.Entry) (closes func()) {
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second,
		WriteTimeout: 30 * time.Second, IdleTimeout: 30 * time.Second, MaxHeaderBytes: 16 << 10,
		ErrorLog: quiet(log),
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.WithError(err).Error("the agent listens no more: restart the agent")
		}
	}()
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTime)
		defer cancel()
		if err := server.Shutdown(ctx); err != nil {
			err = errors.Join(err, server.Close())
			log.WithError(err).Debug("requests that did not come to their end")
		}
		<-ended
	}
}
