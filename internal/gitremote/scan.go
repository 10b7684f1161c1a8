package gitremote

import (
	"bufio"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/klauspost/compress/zlib"
)

// An entry is one object of a pack, as its header says.
type entry struct {
	offset int64
	size   int64 // of the object, or of its delta
	crc    uint32
	base   int32 // of a delta: which entry; noBase for none, or one that is named by its id
	kind   plumbing.ObjectType
	id     plumbing.Hash // zero until it is known
}

const noBase = -1

const (
	maxChain = 4096 // deltas on deltas; git makes 50, and 4095 at most
	// A pack inflates to at most inflation times its size, and some more: git's
	// own packs of large histories reach 60.
	inflation     = 100
	inflationFree = 1 << 30
)

// scanner reads a pack from its beginning to its end, once, and keeps nothing
// but the entries.
type scanner struct {
	in       *crcReader
	limits   Limits
	size     int64 // of the pack
	inflated int64 // so far, with what the deltas say that they make
	zlib     io.ReadCloser
	entries  []entry
	byID     map[plumbing.Hash][]int32 // base -> the deltas that name it by its id
}

// scanPack lists the objects of a pack. Those that are no deltas have their ids.
func scanPack(r io.Reader, size int64, l Limits) (*scanner, error) {
	s := &scanner{
		in:     &crcReader{Reader: bufio.NewReaderSize(r, 256<<10)},
		limits: l,
		size:   size,
		byID:   map[plumbing.Hash][]int32{},
	}
	header := make([]byte, packHeader)
	if _, err := io.ReadFull(s.in, header); err != nil {
		return nil, cutShort(err)
	}
	n, err := readHeader(header, l)
	if err != nil {
		return nil, err
	}
	// An object takes its header and a compressed stream: at least 9 bytes.
	if int64(n) > size/9 {
		return nil, &PackError{fmt.Sprintf("its header says %d objects, which %d bytes cannot hold", n, size)}
	}
	s.entries = make([]entry, 0, n)
	for range n {
		if err := s.object(); err != nil {
			return nil, s.at(err)
		}
	}
	if s.in.at != size-sha1.Size {
		return nil, &PackError{"something follows its last object"}
	}
	return s, nil
}

// at says where a pack is bad.
func (s *scanner) at(err error) error {
	if _, limit := errors.AsType[*LimitError](err); limit {
		return err
	}
	text := err.Error()
	if pack, ok := errors.AsType[*PackError](err); ok {
		text = pack.What
	}
	return &PackError{
		fmt.Sprintf("object %d of %d, at byte %d: %s", len(s.entries)+1, cap(s.entries), s.in.start, text),
	}
}

// object reads one object.
func (s *scanner) object() error {
	s.in.begin()
	e := entry{offset: s.in.at, base: noBase}
	var err error
	if e.kind, e.size, err = s.header(); err != nil {
		return err
	}
	var named plumbing.Hash
	switch e.kind {
	case plumbing.CommitObject, plumbing.TreeObject, plumbing.BlobObject, plumbing.TagObject:
		e.id, err = s.whole(e)
	case plumbing.OFSDeltaObject:
		if e.base, err = s.baseBefore(e.offset); err == nil {
			err = s.delta(e.size)
		}
	case plumbing.REFDeltaObject:
		if _, err = io.ReadFull(s.in, named[:]); err == nil {
			err = s.delta(e.size)
		}
		s.byID[named] = append(s.byID[named], int32(len(s.entries)))
	default:
		err = errors.New("there is no such kind of object")
	}
	if err != nil {
		return err
	}
	e.crc = s.in.crc
	s.entries = append(s.entries, e)
	return nil
}

// header reads the kind of an object and its size.
func (s *scanner) header() (plumbing.ObjectType, int64, error) {
	c, err := s.in.ReadByte()
	if err != nil {
		return 0, 0, err
	}
	kind, size := plumbing.ObjectType(c>>4&7), uint64(c&15)
	for shift := 4; c&0x80 != 0; shift += 7 {
		if c, err = s.in.ReadByte(); err != nil {
			return 0, 0, err
		}
		if shift > 55 {
			return 0, 0, errors.New("its size has too many digits")
		}
		size |= uint64(c&0x7f) << shift
	}
	if size > math.MaxInt64/2 {
		return 0, 0, errors.New("its size has too many digits")
	}
	return kind, int64(size), nil
}

// baseBefore reads how far before a delta its base is.
func (s *scanner) baseBefore(offset int64) (int32, error) {
	c, err := s.in.ReadByte()
	back := int64(c & 0x7f)
	for err == nil && c&0x80 != 0 {
		if back > math.MaxInt64>>8 {
			return 0, errors.New("its base is nowhere")
		}
		c, err = s.in.ReadByte()
		back = (back+1)<<7 | int64(c&0x7f)
	}
	if err != nil {
		return 0, err
	}
	low, high := 0, len(s.entries)
	for low < high {
		if mid := (low + high) / 2; s.entries[mid].offset < offset-back {
			low = mid + 1
		} else {
			high = mid
		}
	}
	if low == len(s.entries) || s.entries[low].offset != offset-back {
		return 0, errors.New("its base is nowhere")
	}
	return int32(low), nil
}

// whole hashes an object that is no delta. It is never in memory.
func (s *scanner) whole(e entry) (id plumbing.Hash, err error) {
	if err := s.count(e.size); err != nil {
		return id, err
	}
	h := plumbing.NewHasher(e.kind, e.size)
	if err := s.inflate(h, e.size); err != nil {
		return id, err
	}
	return h.Sum(), nil
}

// delta reads over a delta, and looks at how large it says base and result are.
func (s *scanner) delta(size int64) error {
	if size > s.limits.maxResolved() {
		return s.tooLarge(size)
	}
	if err := s.count(size); err != nil {
		return err
	}
	first := &firstBytes{}
	if err := s.inflate(first, size); err != nil {
		return err
	}
	base, n := binary.Uvarint(first.bytes)
	result, m := binary.Uvarint(first.bytes[max(n, 0):])
	if n <= 0 || m <= 0 {
		return errors.New("its delta says no sizes")
	}
	if largest := max(base, result); largest > uint64(s.limits.maxResolved()) {
		return s.tooLarge(int64(min(largest, math.MaxInt64)))
	}
	return s.count(int64(result))
}

func (s *scanner) tooLarge(size int64) error {
	return &LimitError{What: fmt.Sprintf("an object of %d bytes that is stored as a delta", size), Setting: "memory",
		Limit: bytesText(s.limits.maxResolved()) + ", an eighth of the memory"}
}

// count adds to what the pack says it inflates to.
func (s *scanner) count(size int64) error {
	s.inflated += size
	if limit := inflationFree + inflation*s.size; s.inflated > limit || s.inflated < 0 {
		return &LimitError{What: fmt.Sprintf("a pack of %d bytes inflates", s.size), Limit: bytesText(limit)}
	}
	return nil
}

// inflate writes the next compressed stream, which must have a size.
func (s *scanner) inflate(to io.Writer, size int64) (err error) {
	if s.zlib == nil {
		s.zlib, err = zlib.NewReader(s.in)
	} else {
		err = s.zlib.(zlib.Resetter).Reset(s.in, nil)
	}
	if err != nil {
		return err
	}
	n, err := io.Copy(to, io.LimitReader(s.zlib, size))
	if err != nil {
		return err
	}
	more, err := io.Copy(io.Discard, io.LimitReader(s.zlib, 1)) // and its checksum
	if n != size || more != 0 {
		return fmt.Errorf("it is not as large as it says (%d bytes)", size)
	}
	return err
}

// firstBytes keeps what two numbers take at most.
type firstBytes struct{ bytes []byte }

func (f *firstBytes) Write(p []byte) (int, error) {
	const two = 2 * binary.MaxVarintLen64
	f.bytes = append(f.bytes, p[:min(len(p), two-len(f.bytes))]...)
	return len(p), nil
}

// crcReader counts what is consumed and sums it up since the last begin. It is
// an io.ByteReader, so that nothing is read beyond a compressed stream.
type crcReader struct {
	*bufio.Reader
	at, start int64
	crc       uint32
	one       [1]byte
}

func (r *crcReader) begin() { r.crc, r.start = 0, r.at }

func (r *crcReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.at += int64(n)
	r.crc = crc32.Update(r.crc, crc32.IEEETable, p[:n])
	return n, err
}

func (r *crcReader) ReadByte() (byte, error) {
	c, err := r.Reader.ReadByte()
	if err == nil {
		r.at++
		r.one[0] = c
		r.crc = crc32.Update(r.crc, crc32.IEEETable, r.one[:])
	}
	return c, err
}
