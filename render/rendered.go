package render

import (
	"fmt"
	"sort"
	"unicode/utf8"
)

// rendered is a template's output, with the way back from an offset in it to the source.
type rendered struct {
	src   *source
	text  []byte
	segs  []segment
	lines []int // offsets of the lines of text; made when first needed

	carrier *carrier // the opaque texts that its marks stand for
	waits   [2]int   // the numbers of its deferred actions: from, and up to
}

// segment is a run of output: literal text starting at an offset in the source, or what an action that stands there
// wrote.
type segment struct {
	out, src int
	literal  bool
}

// Write receives each literal text of the template as the very slice that the parse tree holds, so its address tells
// where it stands in the source. Everything else was written by the action after the text before it.
func (r *rendered) Write(p []byte) (int, error) {
	if len(r.text)+len(p) > maxOutput {
		return 0, fmt.Errorf("the output is larger than %d MiB", maxOutput>>20)
	}
	seg := segment{out: len(r.text)}
	if at, ok := r.src.literal(p); ok {
		seg.src, seg.literal = at, true
	} else if n := len(r.segs); n > 0 {
		last := r.segs[n-1]
		seg.src = last.src
		if last.literal {
			seg.src += len(r.text) - last.out
		}
	}
	r.segs = append(r.segs, seg)
	r.text = append(r.text, p...)
	return len(p), nil
}

// position maps a line and column of the output (both from 1) to the source.
func (r *rendered) position(line, col int) Position {
	offset := r.offset(line, col)
	if r.segs == nil { // a plain file: the text is the source
		return r.src.pos(offset)
	}
	seg := r.segs[r.segment(offset)]
	at := seg.src
	if seg.literal {
		at += offset - seg.out
	}
	return r.src.pos(at)
}

// offset is where a line and column of the output are.
func (r *rendered) offset(line, col int) int {
	r.split()
	start := r.lines[min(max(line, 1), len(r.lines))-1]
	return start + bytesOf(r.text[start:], col-1)
}

// split finds the lines of the output, once.
func (r *rendered) split() {
	if r.lines == nil {
		r.lines = lineStarts(r.text)
	}
}

// segment is the number of the segment that an offset of the output is in.
func (r *rendered) segment(offset int) int {
	return max(sort.Search(len(r.segs), func(i int) bool { return r.segs[i].out > offset })-1, 0)
}

// literal reports a part of the output that stands in the source in one piece: no action wrote any of it, and none
// chose it.
func (r *rendered) literal(from, to int) bool {
	for i := r.segment(from); i < len(r.segs) && r.segs[i].out < to; i++ {
		seg, first := r.segs[i], r.segs[r.segment(from)]
		if !seg.literal || seg.src-seg.out != first.src-first.out {
			return false
		}
	}
	return true
}

// bytesOf is how many bytes the first characters of a text have: YAML counts columns in characters.
func bytesOf(text []byte, chars int) int {
	at := 0
	for ; chars > 0 && at < len(text); chars-- {
		_, size := utf8.DecodeRune(text[at:])
		at += size
	}
	return at + max(chars, 0)
}

// errorAt is a mistake at a line and column of the output, told in terms of the source.
func (r *rendered) errorAt(line, col int, format string, args ...any) *Error {
	return r.src.errorAt(r.position(line, col), format, args...)
}
