package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/pullet/pullet/internal/safetext"
)

// BadRecordError is about a record of the fleet that cannot be read: its key, or its value, is not what pullet writes.
// It is left out, or counts as what restricts most; nothing else fails for it.
type BadRecordError struct {
	Key    string // as people read it, below the fleet's prefix
	Why    string // what is wrong with it
	Counts string // what it is taken for until it is removed
	Clear  string // the command that repairs or removes it
	raw    string // the key itself
	of     *kind  // that it seems to be; nil: none
}

func (e *BadRecordError) Error() string {
	return fmt.Sprintf("etcd key %s cannot be read: %s; %s; %s", e.Key, e.Why, e.Counts, e.Clear)
}

// record is what a type has to do to be read from etcd: it says what is wrong with a value, against bounds and
// character sets, and makes the texts in it harmless.
type record[T any] interface {
	*T
	check(k Key) error
}

// decoder is a record that is not JSON.
type decoder interface{ decode(value []byte) error }

// limited is a record whose value may be larger than others.
type limited interface{ limit() int }

// The bounds of a value before it is decoded: its bytes, and how deep its JSON may be.
const (
	maxRecord = 256 << 10
	maxBig    = 3 << 19 // a request to etcd has that many
	maxDepth  = 16
)

// Read decodes a record of etcd: nothing else does. One that cannot be read is a *BadRecordError, which the store keeps
// for BadRecords: the caller says what it counts as.
func Read[T any, P record[T]](s *Store, kv *mvccpb.KeyValue) (T, error) {
	var v T
	k, err := s.Key(kv)
	if err == nil {
		v, err = examine[T, P](k, kv.Value)
		s.bad.note(err)
	}
	return v, err
}

// Key is the key of a record. One that cannot be read is a *BadRecordError, which the store keeps for BadRecords.
func (s *Store) Key(kv *mvccpb.KeyValue) (Key, error) {
	k, err := parseKey(s.prefix, string(kv.Key))
	s.bad.note(err)
	return k, err
}

// examine decodes and checks a value. Of one that cannot be read nothing is returned.
func examine[T any, P record[T]](k Key, value []byte) (v T, err error) {
	if err = unpack(value, P(&v)); err == nil {
		err = P(&v).check(k)
	}
	if err != nil {
		var none T
		return none, k.bad(err)
	}
	return v, nil
}

// unpack decodes a value within its bounds.
func unpack(value []byte, v any) error {
	most := maxRecord
	if l, ok := v.(limited); ok {
		most = l.limit()
	}
	if len(value) > most {
		return fmt.Errorf("it has %d bytes, of %d at most", len(value), most)
	}
	if d, ok := v.(decoder); ok {
		return d.decode(value)
	}
	return unpackJSON(value, v)
}

// unpackJSON decodes JSON that is not too deep.
func unpackJSON(value []byte, v any) error {
	if depth(value) > maxDepth {
		return fmt.Errorf("its JSON is deeper than %d levels", maxDepth)
	}
	if bytes.Equal(bytes.TrimSpace(value), []byte("null")) {
		return errors.New("it is null")
	}
	if err := json.Unmarshal(value, v); err != nil {
		return errors.New(safetext.Line(err.Error(), 200))
	}
	return nil
}

// depth is how deep lists and objects stand in each other in a JSON text.
func depth(text []byte) (most int) {
	now, inString := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			now++
			most = max(most, now)
		case c == '}' || c == ']':
			now--
		}
	}
	return most
}

// badRecords are the records that could not be read.
type badRecords struct {
	mu    sync.Mutex
	byKey map[string]*BadRecordError
}

// note keeps an error that is about a bad record.
func (b *badRecords) note(err error) {
	bad, ok := errors.AsType[*BadRecordError](err)
	if !ok {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.byKey == nil {
		b.byKey = map[string]*BadRecordError{}
	}
	if len(b.byKey) < maxNoted {
		b.byKey[bad.raw] = bad
	}
}

// maxNoted is how many bad records are kept to be named.
const maxNoted = 1000

// BadRecords are the records that could not be read since it was asked last, by their keys.
func (s *Store) BadRecords() []*BadRecordError {
	s.bad.mu.Lock()
	defer s.bad.mu.Unlock()
	out := make([]*BadRecordError, 0, len(s.bad.byKey))
	for _, key := range slices.Sorted(maps.Keys(s.bad.byKey)) {
		out = append(out, s.bad.byKey[key])
	}
	s.bad.byKey = nil
	return out
}

// shownKey is a key as people read it and as a shell takes it: quoted, with escapes, where it has characters that
// cannot be seen, and cut where it is long.
func shownKey(key string) string {
	const most = 200
	if len(key) <= most && safetext.Word(strings.ReplaceAll(key, "/", "_")) &&
		!strings.ContainsAny(key, "'\"\\$`*?;&|<>()#~!") {
		return key
	}
	end := ""
	if len(key) > most {
		end = fmt.Sprintf("...%08x", crc32.ChecksumIEEE([]byte(key)))
	}
	return "'" + strings.ReplaceAll(strconv.QuoteToASCII(safetext.Cut(key, most-len("..."))), "'", `\x27`) + end + "'"
}
