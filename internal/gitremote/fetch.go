package gitremote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
)

// Request is what is to be fetched.
type Request struct {
	Wants []plumbing.Hash
	// Haves are commits that the store has with all their history, or down to Shallow. A server may acknowledge each
	// of them before it reads the next: with some ten thousands both sides would wait for each other.
	Haves []plumbing.Hash
	// Shallow are the commits at which the store's history ends.
	Shallow []plumbing.Hash
	// Depth is how many commits of a history come; 0 is all. Repositories on
	// this machine ignore it.
	Depth int
	// Place takes a file with the name that it is to have among the packs of the
	// store: first the index, then the pack. It may move it away.
	Place func(name, file string) error
}

// Fetched is what a fetch brought.
type Fetched struct {
	Shallow []plumbing.Hash // where the history ends now, beside the request's
}

// encode returns the request as git's protocol has it, to a server with these capabilities. It asks for no thin pack:
// one that is whole in itself can be checked by itself. Some servers refuse a request without multi_ack, which is of
// no use to one that ends with done.
func (q Request) encode(server Listing) ([]byte, error) {
	var buf bytes.Buffer
	e := pktline.NewEncoder(&buf)
	caps := " ofs-delta no-progress"
	if server.sideband {
		caps += " side-band-64k"
	}
	if server.multiAck != "" {
		caps += " " + server.multiAck
	}
	if q.Depth > 0 || len(q.Shallow) > 0 {
		caps += " shallow"
	}
	var errs []error
	for _, id := range q.Wants {
		errs = append(errs, e.Encodef("want %s%s\n", id, caps))
		caps = ""
	}
	for _, id := range q.Shallow {
		errs = append(errs, e.Encodef("shallow %s\n", id))
	}
	if q.Depth > 0 {
		errs = append(errs, e.Encodef("deepen %d\n", q.Depth))
	}
	errs = append(errs, e.Flush())
	for _, id := range q.Haves {
		errs = append(errs, e.Encodef("have %s\n", id))
	}
	errs = append(errs, e.EncodeString("done\n"))
	return buf.Bytes(), errors.Join(errs...)
}

// session is one conversation with a server.
type session interface {
	refs(context.Context) (io.Reader, error)
	pack(ctx context.Context, request []byte) (io.Reader, error)
	abort() // makes readers fail, where their context does not
	io.Closer
}

func (r Remote) open(ctx context.Context) (session, error) {
	ep, err := r.Endpoint()
	if err != nil {
		return nil, err
	}
	if ep.Protocol == "ssh" {
		return r.openShell(ctx, ep)
	}
	return r.openWeb()
}

// advertised reads what a server says it has, within the time for that.
func advertised(ctx context.Context, s session) (l Listing, err error) {
	ctx, cancel := deadline(ctx, listTime)
	defer cancel()
	stop := context.AfterFunc(ctx, s.abort)
	defer stop()
	refs, err := s.refs(ctx)
	if err == nil {
		l, err = readListing(refs)
	}
	return l, cause(ctx, err)
}

// receive fetches a pack from a server into a file.
func (c Client) receive(ctx context.Context, r Remote, q Request, to *incoming) (shallow []plumbing.Hash, err error) {
	s, err := r.open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	l, err := advertised(ctx, s)
	if err != nil {
		return nil, err
	}
	request, err := q.encode(l)
	if err != nil {
		return nil, err
	}
	answer, err := s.pack(ctx, request)
	if err != nil {
		return nil, err
	}
	limit := c.Limits.Whole().Disk
	lines := newLines(
		&boundedReader{answer, limit, &LimitError{What: "the pack", Setting: "disk", Limit: bytesText(limit)}},
	)
	if shallow, err = lines.beforePack(q.Depth > 0); err != nil {
		return nil, err
	}
	return shallow, to.fill(lines.packReader(), c.Limits.Whole())
}

// cause is why a context ended, or else the error.
func cause(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

const maxShallow = 100_000

// beforePack reads what precedes a pack: where the history is cut off, and
// which of our commits the server knows, which does not matter here.
func (l lines) beforePack(deepened bool) (shallow []plumbing.Hash, err error) {
	for deepened {
		line, err := l.next()
		switch word, id, _ := strings.Cut(string(line), " "); {
		case err != nil:
			return nil, tooEarly(err)
		case word == "shallow" && plumbing.IsHash(id) && len(shallow) < maxShallow:
			shallow = append(shallow, plumbing.NewHash(id))
		case word == "unshallow" && plumbing.IsHash(id):
		case len(line) == 0:
			deepened = false
		default:
			return nil, &ProtocolError{
				fmt.Sprintf("%q where the ends of the history are expected", clean(string(line))),
			}
		}
	}
	return shallow, l.acknowledgements()
}

// acknowledgements reads over one or more of them.
func (l lines) acknowledgements() error {
	for {
		line, err := l.next()
		if word, _, _ := strings.Cut(string(line), " "); err == nil && word != "NAK" && word != "ACK" {
			return &ProtocolError{fmt.Sprintf("%q where an acknowledgement is expected", clean(string(line)))}
		}
		if err != nil {
			return tooEarly(err)
		}
		start, err := l.in.Peek(7)
		if err != nil || string(start[4:]) != "ACK" && string(start[4:]) != "NAK" {
			return nil // what comes is the pack; its reader sees the error
		}
	}
}

func tooEarly(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return &ProtocolError{"its answer is cut short"}
	}
	return err
}

// packReader is the pack behind an answer, in a sideband or bare.
func (l lines) packReader() io.Reader {
	if start, err := l.in.Peek(4); err == nil && string(start) == "PACK" {
		return l.in
	}
	return &sideband{lines: l}
}

// sideband reads the first of the three channels that a server writes: the
// second is progress, the third an error.
type sideband struct {
	lines lines
	left  []byte
	ended bool
}

func (s *sideband) Read(p []byte) (int, error) {
	for len(s.left) == 0 {
		if s.ended {
			return 0, io.EOF
		}
		line, err := s.lines.raw()
		if err != nil {
			return 0, tooEarly(err)
		}
		switch {
		case len(line) == 0:
			s.ended = true
		case line[0] == 1:
			s.left = line[1:]
		case line[0] == 3:
			return 0, &ServerError{clean(string(line[1:]))}
		case line[0] != 2:
			return 0, &ProtocolError{"a channel of the sideband that there is not"}
		}
	}
	n := copy(p, s.left)
	s.left = s.left[n:]
	return n, nil
}
