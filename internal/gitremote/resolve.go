package gitremote

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

// indexPack reads a pack and writes its index. It is what the child does, so
// memory and time are bounded by the kernel; the bounds here say which of the
// objects is at fault, before that.
func indexPack(pack *os.File, to io.Writer, l Limits) error {
	info, err := pack.Stat()
	if err != nil {
		return err
	}
	s, err := scanPack(pack, info.Size(), l)
	if err != nil {
		return err
	}
	if err := newResolver(s, pack).all(); err != nil {
		return err
	}
	sum := make([]byte, sha1.Size)
	if _, err := pack.ReadAt(sum, info.Size()-sha1.Size); err != nil {
		return err
	}
	return writeIndex(s.entries, plumbing.Hash(sum), to)
}

func writeIndex(entries []entry, sum plumbing.Hash, to io.Writer) error {
	w := &idxfile.Writer{}
	if err := w.OnHeader(uint32(len(entries))); err != nil {
		return err
	}
	seen := make(map[plumbing.Hash]struct{}, len(entries))
	for _, e := range entries {
		if _, twice := seen[e.id]; twice {
			return &PackError{fmt.Sprintf("it has the object %s twice", e.id)}
		}
		seen[e.id] = struct{}{}
		w.Add(e.id, uint64(e.offset), e.crc)
	}
	if err := w.OnFooter(sum); err != nil {
		return err
	}
	index, err := w.Index()
	if err != nil {
		return err
	}
	buffered := bufio.NewWriter(to)
	if _, err := idxfile.NewEncoder(buffered).Encode(index); err != nil {
		return err
	}
	return buffered.Flush()
}

// resolver applies deltas, from each object that is no delta to those that are
// based on it. What it holds is one chain.
type resolver struct {
	*scanner
	pack    io.ReaderAt
	first   []int32 // entry -> the first delta on it, noBase for none
	next    []int32 // delta -> the next one on the same base
	pending int     // deltas that have no id yet
}

func newResolver(s *scanner, pack io.ReaderAt) *resolver {
	r := &resolver{scanner: s, pack: pack, first: make([]int32, len(s.entries)), next: make([]int32, len(s.entries))}
	for i := range r.first {
		r.first[i], r.next[i] = noBase, noBase
	}
	for i := len(s.entries) - 1; i >= 0; i-- {
		if s.entries[i].id.IsZero() {
			r.pending++
		}
		if base := s.entries[i].base; base != noBase {
			r.hang(int32(i), base)
		}
	}
	return r
}

func (r *resolver) hang(delta, base int32) { r.first[base], r.next[delta] = delta, r.first[base] }

// known hangs the deltas that name an object by its id to it.
func (r *resolver) known(i int32) {
	id := r.entries[i].id
	for _, delta := range r.byID[id] {
		r.hang(delta, i)
	}
	delete(r.byID, id)
}

// all gives every delta its id.
func (r *resolver) all() error {
	for i := range r.entries {
		if !isDelta(r.entries[i].kind) {
			r.known(int32(i))
			if err := r.from(int32(i)); err != nil {
				return err
			}
		}
	}
	if r.pending > 0 {
		return &PackError{fmt.Sprintf("%d deltas are based on objects that are not in it", r.pending)}
	}
	return nil
}

func isDelta(kind plumbing.ObjectType) bool {
	return kind == plumbing.OFSDeltaObject || kind == plumbing.REFDeltaObject
}

// link is an object with deltas on it that are yet to be applied.
type link struct {
	data []byte
	left int32 // the next of them
	deep int
}

// from resolves all that is based on an object. An object is forgotten when the
// last delta on it is applied, so that a plain chain takes the memory of two.
func (r *resolver) from(root int32) error {
	if r.first[root] == noBase {
		return nil
	}
	kind := r.entries[root].kind
	if size := r.entries[root].size; size > r.limits.maxResolved() {
		return r.tooLarge(size)
	}
	data, err := r.content(root)
	if err != nil {
		return r.bad(root, err)
	}
	chain := []link{{data, r.first[root], 1}}
	for len(chain) > 0 {
		top := chain[len(chain)-1]
		if top.deep > maxChain {
			return &LimitError{What: "a chain of deltas", Limit: fmt.Sprint(maxChain)}
		}
		i := top.left
		if chain[len(chain)-1].left = r.next[i]; r.next[i] == noBase {
			chain = chain[:len(chain)-1]
		}
		result, err := r.apply(top.data, i, kind)
		if err != nil {
			return r.bad(i, err)
		}
		if r.first[i] != noBase {
			chain = append(chain, link{result, r.first[i], top.deep + 1})
		}
	}
	return nil
}

// apply applies one delta.
func (r *resolver) apply(base []byte, i int32, kind plumbing.ObjectType) ([]byte, error) {
	delta, err := r.content(i)
	if err != nil {
		return nil, err
	}
	result, err := packfile.PatchDelta(base, delta)
	if err != nil {
		return nil, errors.New("its delta does not fit its base")
	}
	r.entries[i].id = plumbing.ComputeHash(kind, result)
	r.pending--
	r.known(i)
	return result, nil
}

// content inflates an object or a delta. Its place and size were checked by the
// scan.
func (r *resolver) content(i int32) ([]byte, error) {
	e := r.entries[i]
	end := r.size - sha1.Size
	if int(i)+1 < len(r.entries) {
		end = r.entries[i+1].offset
	}
	r.in.Reset(io.NewSectionReader(r.pack, e.offset, end-e.offset))
	if _, _, err := r.header(); err != nil {
		return nil, err
	}
	if err := r.skipBase(e.kind); err != nil {
		return nil, err
	}
	data := bytes.NewBuffer(make([]byte, 0, e.size))
	err := r.inflate(data, e.size)
	return data.Bytes(), err
}

func (s *scanner) skipBase(kind plumbing.ObjectType) (err error) {
	c := byte(0x80)
	for kind == plumbing.OFSDeltaObject && err == nil && c&0x80 != 0 {
		c, err = s.in.ReadByte()
	}
	if kind == plumbing.REFDeltaObject {
		_, err = io.CopyN(io.Discard, s.in, sha1.Size)
	}
	return err
}

func (r *resolver) bad(i int32, err error) error {
	return &PackError{fmt.Sprintf("the object at byte %d: %v", r.entries[i].offset, err)}
}
