package state

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pullet/pullet/internal/lazyregexp"
)

// reason is why there is no connection, such as a certificate that expired: etcd's client says only that time is over.
type reason struct {
	mu     sync.Mutex
	text   string
	silent bool // the operation that ended last had no answer
}

// note keeps what was said of the connection since an operation had an answer.
func (r *reason) note(
	ctx context.Context,
	method string,
	req, reply any,
	conn *grpc.ClientConn,
	invoke grpc.UnaryInvoker,
	opts ...grpc.CallOption,
) error {
	err := invoke(ctx, method, req, reply, conn, opts...)
	r.mu.Lock()
	defer r.mu.Unlock()
	if code := status.Code(err); code != codes.Canceled { // that says nothing of the store
		r.silent = code == codes.DeadlineExceeded || code == codes.Unavailable
	}
	switch {
	case err == nil:
		r.text = ""
	case strings.Contains(err.Error(), "connection error: desc = "):
		r.text = plainly(err).Error()
	}
	return err
}

// lasts reports that the operation which ended last had no answer.
func (r *reason) lasts() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.silent
}

// of is an error in plain words, with why there is no connection where only that is known.
func (r *reason) of(err error) error {
	said := plainly(err)
	late := said.Error() == context.DeadlineExceeded.Error() // that says little
	if !late && said.Error() != err.Error() {
		return said
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.text == "" && late:
		return &plainError{err, "no answer in time"}
	case r.text == "":
		return err
	case late || errors.Is(err, context.DeadlineExceeded):
		return &plainError{err, r.text}
	}
	return fmt.Errorf("%w: %s", err, r.text)
}

// jargon is what the client puts around why it has no connection.
var jargon = lazyregexp.New(
	`rpc error: code = \w+ desc = (?:latest balancer error: )?(?:connection error: desc = )?` +
		`(?:"?transport: (?:Error while dialing: )?(?:dial \S+ \S+: )?(?:connect: )?([^"]+)"?)?`,
)

// plainError is an error in fewer words.
type plainError struct {
	error
	text string
}

func (e *plainError) Error() string { return e.text }
func (e *plainError) Unwrap() error { return e.error }

// mute is what the client says of a server that accepts a connection and then says nothing: its port is another one
// each time.
var mute = lazyregexp.New(`"?error reading server preface: .*`)

// cutOff is what the client says of a connection that ended in the middle of a request.
var cutOff = lazyregexp.New(
	`(?:closing transport due to: )?(?:connection error: desc = )?"?error reading from server: .*`,
)

func plainly(err error) error {
	text := jargon.ReplaceAllString(err.Error(), "$1")
	text = mute.ReplaceAllString(text, "it accepts connections and does not answer")
	return &plainError{err, cutOff.ReplaceAllString(text, "the connection broke")}
}
