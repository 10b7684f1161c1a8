package state

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"

	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc"
)

// BrokenError says that the embedded member cannot go on, and with it nothing of this process that needs it: the next
// process starts it anew.
type BrokenError struct {
	Dir string // of the member
	Err error
}

func (e *BrokenError) Error() string {
	do := fmt.Sprintf(
		"where its files are damaged, move %s away: this node's record then starts anew",
		filepath.Join(e.Dir, "member"),
	)
	var host syscall.Errno
	switch {
	case errors.Is(e.Err, syscall.ENOSPC), errors.Is(e.Err, syscall.EDQUOT):
		do = "make room: the next pull starts it again"
	case errors.As(e.Err, &host): // its files are not to blame
		do = "fix that: the next pull starts it again"
	}
	return fmt.Sprintf("the embedded etcd in %s stopped: %v; %s", e.Dir, e.Err, do)
}

func (e *BrokenError) Unwrap() error { return e.Err }

// crash is the end of a member that cannot go on, such as on a full disk. etcd would end the whole process then,
// without a word.
type crash struct {
	context.Context
	cancel context.CancelCauseFunc
	member *embedded // its lock stays this process's: what is left of the member has the files
}

func newCrash(e *embedded) *crash {
	ctx, cancel := context.WithCancelCause(context.Background())
	return &crash{ctx, cancel, e}
}

// OnWrite is called by etcd's logger in place of os.Exit and of a panic. The goroutine goes no further: what it holds
// is in no order.
func (f *crash) OnWrite(entry *zapcore.CheckedEntry, fields []zapcore.Field) {
	err := errors.New(entry.Message)
	for _, field := range fields {
		if cause, ok := field.Interface.(error); ok {
			err = fmt.Errorf("%s: %w", entry.Message, cause)
		}
	}
	f.fail(err)
	select {}
}

// fail tells everybody why. The first reason counts.
func (f *crash) fail(err error) { f.cancel(&BrokenError{f.member.dir, err}) }

// broken is why the member cannot go on; nil while it does.
func (f *crash) broken() error {
	if f.Err() == nil {
		return nil
	}
	return context.Cause(f)
}

// guard ends an operation at once that the member would never answer.
func (f *crash) guard(
	ctx context.Context,
	method string,
	req, reply any,
	conn *grpc.ClientConn,
	invoke grpc.UnaryInvoker,
	opts ...grpc.CallOption,
) error {
	if f.broken() != nil { // it might still answer: it ends goroutine by goroutine
		return f.broken()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(f, cancel)()
	err := invoke(ctx, method, req, reply, conn, opts...)
	if err != nil && f.broken() != nil {
		return f.broken()
	}
	return err
}
