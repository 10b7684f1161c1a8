package gitremote

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"
)

// Limits bound what one fetch may take. A zero is the default, which is enough
// for a repository of 1 GB.
type Limits struct {
	Memory  int64         // bytes of the process that reads a pack; default 1 GiB
	Disk    int64         // bytes received, and so of one pack; default 4 GiB
	Objects int           // in one pack; default 4 million
	Time    time.Duration // of one fetch, and of the processor; default 10 minutes
}

const (
	listTime   = 30 * time.Second // for a listing, and to connect
	maxListing = 32 << 20         // bytes: about half a million references
	maxRefs    = 500_000
	maxName    = 4096 // bytes of a reference's name
)

// Whole are the limits with their defaults.
func (l Limits) Whole() Limits {
	return Limits{
		Memory:  cmp.Or(l.Memory, 1<<30),
		Disk:    cmp.Or(l.Disk, 4<<30),
		Objects: cmp.Or(l.Objects, 4_000_000),
		Time:    cmp.Or(l.Time, 10*time.Minute),
	}
}

// maxResolved is how large an object may be that is stored as a delta, or that
// deltas are based on: it has to be in memory, beside its base.
func (l Limits) maxResolved() int64 { return l.Memory / 8 }

// deadline ends a context with an error that says so.
func deadline(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %s", limit))
}

// boundedReader fails with an error once more than left bytes were read.
type boundedReader struct {
	io.Reader
	left int64
	err  error
}

func (b *boundedReader) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, b.err
	}
	n, err := b.Reader.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// bytesText is a size for people.
func bytesText(n int64) string {
	switch {
	case n >= 1<<30 && n%(1<<30) == 0:
		return fmt.Sprintf("%d GiB", n>>30)
	case n >= 1<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d bytes", n)
}
