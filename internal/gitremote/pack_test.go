package gitremote

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
)

// packWriter writes packs as an attacker may: nothing is checked.
type packWriter struct {
	bytes.Buffer
	zlib *zlib.Writer
}

func newPack(announced uint32) *packWriter {
	p := &packWriter{zlib: zlib.NewWriter(nil)}
	p.WriteString("PACK")
	p.Write(binary.BigEndian.AppendUint32(nil, 2))
	p.Write(binary.BigEndian.AppendUint32(nil, announced))
	return p
}

// header writes the kind and size of an object.
func (p *packWriter) header(kind plumbing.ObjectType, size int) {
	c := byte(kind)<<4 | byte(size&15)
	for size >>= 4; size > 0; size >>= 7 {
		p.WriteByte(c | 0x80)
		c = byte(size & 0x7f)
	}
	p.WriteByte(c)
}

func (p *packWriter) deflate(data []byte) {
	p.zlib.Reset(p)
	_, _ = p.zlib.Write(data) // to memory
	_ = p.zlib.Close()
}

// object writes an object and returns where it is.
func (p *packWriter) object(kind plumbing.ObjectType, data []byte) int {
	at := p.Len()
	p.header(kind, len(data))
	p.deflate(data)
	return at
}

// delta writes a delta on an object that is there before.
func (p *packWriter) delta(base int, data []byte) int {
	at := p.Len()
	p.header(plumbing.OFSDeltaObject, len(data))
	back := at - base
	text := []byte{byte(back & 0x7f)}
	for back >>= 7; back > 0; back >>= 7 {
		back--
		text = append([]byte{byte(back&0x7f) | 0x80}, text...)
	}
	p.Write(text)
	p.deflate(data)
	return at
}

// named writes a delta on an object that is named by its id.
func (p *packWriter) named(base plumbing.Hash, data []byte) {
	p.header(plumbing.REFDeltaObject, len(data))
	p.Write(base[:])
	p.deflate(data)
}

// end writes the checksum over all.
func (p *packWriter) end() []byte {
	sum := sha1.Sum(p.Bytes())
	p.Write(sum[:])
	return p.Bytes()
}

// repeat is a delta that makes so many copies of a base.
func repeat(base, times int) []byte { return copies(base, base, times) }

// copies is a delta that takes the first bytes of a base so many times.
func copies(base, first, times int) []byte {
	text := binary.AppendUvarint(nil, uint64(base))
	text = binary.AppendUvarint(text, uint64(first*times))
	for range times {
		text = append(text, 0x80|0x10|0x20|0x40, byte(first), byte(first>>8), byte(first>>16))
	}
	return text
}

// goodIndex is the index of two blobs.
func goodIndex(t testing.TB) []byte {
	w := &idxfile.Writer{}
	if err := w.OnHeader(2); err != nil {
		t.Fatal(err)
	}
	w.Add(plumbing.ComputeHash(plumbing.BlobObject, []byte("a")), 12, 1)
	w.Add(plumbing.ComputeHash(plumbing.BlobObject, []byte("b")), 22, 2)
	if err := w.OnFooter(plumbing.NewHash("0123456789012345678901234567890123456789")); err != nil {
		t.Fatal(err)
	}
	index, err := w.Index()
	if err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	if _, err := idxfile.NewEncoder(&buf).Encode(index); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}
