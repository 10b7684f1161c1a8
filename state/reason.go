package state

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
)

// reason is why there is no connection, such as a certificate that expired: etcd's client says only that time is over.
type reason struct {
	mu   sync.Mutex
	text string
}

var connectionError = regexp.MustCompile(`desc = ("(?:[^"\\]|\\.)*")$`)

// note keeps what was said of the connection since an operation had an answer.
func (r *reason) note(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	err := invoke(ctx, method, req, reply, conn, opts...)
	said := connectionError.FindStringSubmatch(status.Convert(err).Message())
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil:
		r.text = ""
	case said != nil:
		r.text, _ = strconv.Unquote(said[1]) // the pattern is that of a quoted text
	}
	return err
}

// of adds to an error why there is no connection, where that is known.
func (r *reason) of(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.text == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, r.text)
}
