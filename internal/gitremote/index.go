package gitremote

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"io"
	"os"
)

// The format of an index of version 2: see gitformat-pack(5).
const (
	idxHeader = 8
	idxFanout = 256 * 4
	idxEntry  = sha1.Size + 4 + 4 // id, checksum, offset
	idxFooter = 2 * sha1.Size
	idxLarge  = 1 << 31 // an offset with this bit is a place among the large ones
)

// indexSize is how large the index of a pack can be at most.
func indexSize(objects int) int64 {
	return idxHeader + idxFanout + int64(objects)*(idxEntry+8) + idxFooter
}

// checkIndex compares an index with the pack that it is for: what the child
// wrote is read by go-git in this process. It reads the file once and keeps
// nothing of it.
func (in *incoming) checkIndex() error {
	f, err := os.Open(in.index())
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() > indexSize(in.objects) {
		return badIndex("it is too long")
	}
	text, err := io.ReadAll(io.LimitReader(f, indexSize(in.objects)))
	if err != nil {
		return err
	}
	return checkIndex(text, in.objects, in.size, in.sum)
}

func badIndex(what string) error { return &ChildError{"made a bad index: " + what} }

// checkIndex says what is wrong with the index of a pack of a size and sum.
func checkIndex(text []byte, objects int, size int64, sum [sha1.Size]byte) error {
	least := idxHeader + idxFanout + objects*idxEntry + idxFooter
	if len(text) < least || (len(text)-least)%8 != 0 || !bytes.HasPrefix(text, []byte("\xfftOc\x00\x00\x00\x02")) {
		return badIndex("its size or header")
	}
	body, footer := text[:len(text)-sha1.Size], text[len(text)-sha1.Size:]
	if got := sha1.Sum(body); !bytes.Equal(got[:], footer) {
		return badIndex("its checksum")
	}
	if !bytes.Equal(body[len(body)-sha1.Size:], sum[:]) {
		return badIndex("it is for another pack")
	}
	rest := body[idxHeader : len(body)-sha1.Size]
	fanout, rest := rest[:idxFanout], rest[idxFanout:]
	ids, rest := rest[:objects*sha1.Size], rest[objects*sha1.Size:]
	offsets, large := rest[objects*4:objects*8], rest[objects*8:]
	if err := checkFanout(fanout, ids, objects); err != nil {
		return err
	}
	return checkOffsets(offsets, large, size)
}

// checkFanout compares the counts by first byte with the sorted ids.
func checkFanout(fanout, ids []byte, objects int) error {
	at := 0
	for first := range 256 {
		for at < objects && ids[at*sha1.Size] == byte(first) {
			at++
			if at < objects &&
				bytes.Compare(ids[(at-1)*sha1.Size:at*sha1.Size], ids[at*sha1.Size:(at+1)*sha1.Size]) >= 0 {
				return badIndex("its ids are not in order")
			}
		}
		if int(binary.BigEndian.Uint32(fanout[first*4:])) != at {
			return badIndex(fmt.Sprintf("its count of ids up to %02x", first))
		}
	}
	if at != objects {
		return badIndex("its ids are not in order")
	}
	return nil
}

// checkOffsets makes sure that all objects are in the pack, and that each large offset is that of an object: go-git
// reads as many.
func checkOffsets(offsets, large []byte, size int64) error {
	used := 0
	for ; len(offsets) > 0; offsets = offsets[4:] {
		at := uint64(binary.BigEndian.Uint32(offsets))
		if at&idxLarge != 0 {
			place := (at &^ idxLarge) * 8
			if place+8 > uint64(len(large)) {
				return badIndex("an offset is not there")
			}
			at = binary.BigEndian.Uint64(large[place:])
			used += 8
		}
		if at < packHeader || at >= uint64(size-sha1.Size) {
			return badIndex("an offset is not in the pack")
		}
	}
	if used != len(large) {
		return badIndex("a large offset is that of no object")
	}
	return nil
}
