package gitremote

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
)

// Listing is what a remote says it has. References with names that git would
// not accept are left out.
type Listing struct {
	Refs []Ref
	Head plumbing.ReferenceName // the branch that HEAD names; empty if it names none

	sideband bool   // whether packs come in a sideband
	multiAck string // the way in which the server acknowledges more than one commit; "": it has none
}

// Ref is a reference of a remote.
type Ref struct {
	Name   plumbing.ReferenceName
	ID     plumbing.Hash
	Peeled plumbing.Hash // the commit behind an annotated tag; zero for any other reference
}

// lines reads pkt-lines. What a server refuses with an ERR line is a
// *ServerError.
type lines struct {
	*pktline.Scanner
	in *bufio.Reader
}

func newLines(r io.Reader) lines {
	in := bufio.NewReader(r)
	return lines{pktline.NewScanner(in), in}
}

// next is the next line without its end; a flush is empty.
func (l lines) next() ([]byte, error) {
	line, err := l.raw()
	return bytes.TrimSuffix(line, []byte("\n")), err
}

// raw is the next line as it is.
func (l lines) raw() ([]byte, error) {
	if l.Scan() {
		return l.Bytes(), nil
	}
	err := l.Err()
	if said, ok := errors.AsType[*pktline.ErrorLine](err); ok {
		return nil, &ServerError{clean(said.Text)}
	}
	switch {
	case err == nil:
		return nil, io.ErrUnexpectedEOF
	case errors.Is(err, pktline.ErrInvalidPktLen):
		return nil, &ProtocolError{"a line that does not begin with its length"}
	}
	return nil, err
}

// readListing reads what a server advertises, up to the flush behind it.
func readListing(r io.Reader) (Listing, error) {
	l := newLines(&boundedReader{r, maxListing, tooLong("its list of references", bytesText(maxListing))})
	line, err := l.next()
	if err == nil && bytes.HasPrefix(line, []byte("# service=")) {
		if line, err = l.next(); err == nil && len(line) == 0 {
			line, err = l.next()
		}
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return Listing{}, &ProtocolError{"it ends before its list of references"}
	}
	if err != nil {
		return Listing{}, err
	}
	line, caps, _ := bytes.Cut(line, []byte{0})
	p := listingParser{}
	p.capabilities(string(caps))
	for len(line) > 0 && err == nil {
		if err = p.add(line); err == nil {
			line, err = l.next()
		}
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = &ProtocolError{"its list of references is cut short"}
	}
	if err == nil && len(p.Refs) == 0 && !p.dropped {
		err = &EmptyError{}
	}
	return p.Listing, err
}

func tooLong(what, limit string) error { return &LimitError{What: what, Limit: limit} }

type listingParser struct {
	Listing
	count   int
	dropped bool // whether there was a reference that is left out
}

func (p *listingParser) capabilities(text string) {
	for c := range strings.FieldsSeq(text) {
		switch {
		case c == "side-band-64k":
			p.sideband = true
		case c == "multi_ack_detailed", c == "multi_ack" && p.multiAck == "":
			p.multiAck = c
		}
		if target, ok := strings.CutPrefix(c, "symref=HEAD:"); ok && validName(target) {
			p.Head = plumbing.ReferenceName(target)
		}
	}
}

// add takes one line, ID NAME.
func (p *listingParser) add(line []byte) error {
	id, name, ok := strings.Cut(string(line), " ")
	switch {
	case id == "shallow":
		return nil
	case len(id) == 64 && ok:
		return &ProtocolError{"its object ids are SHA-256; pullet reads SHA-1 repositories"}
	case !ok || !plumbing.IsHash(id):
		return &ProtocolError{fmt.Sprintf("%q is not a reference", clean(string(line)))}
	}
	if p.count++; p.count > maxRefs {
		return tooLong("its list of references", fmt.Sprintf("%d", maxRefs))
	}
	hash := plumbing.NewHash(id)
	if name == "capabilities^{}" {
		return nil
	}
	if of, ok := strings.CutSuffix(name, "^{}"); ok {
		if last := len(p.Refs) - 1; last >= 0 && p.Refs[last].Name.String() == of {
			p.Refs[last].Peeled = hash
		}
		return nil
	}
	if name != "HEAD" && !validName(name) {
		p.dropped = true
		return nil
	}
	p.Refs = append(p.Refs, Ref{Name: plumbing.ReferenceName(name), ID: hash})
	return nil
}

// validName says whether git accepts a name below refs/. C1 control characters are refused beyond that: names are
// printed.
func validName(name string) bool {
	return strings.HasPrefix(name, "refs/") && len(name) <= maxName && plumbing.ReferenceName(name).Validate() == nil &&
		!strings.ContainsFunc(name, func(r rune) bool { return r >= 0x80 && r < 0xa0 || r == '\uFFFD' })
}
