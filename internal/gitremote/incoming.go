package gitremote

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// incoming is a pack on its way into a store, in a directory of its own: the
// quarantine. Nothing in it can be reached from the store.
type incoming struct {
	dir     string
	lock    *os.File // of dir, while somebody fetches
	objects int
	sum     [sha1.Size]byte
	size    int64
	least   int64 // bytes that stay free on the disk
}

const quarantinePrefix = "pullet-incoming-"

// newIncoming makes a quarantine, and removes those of fetches that were killed.
func newIncoming(scratch string) (*incoming, error) {
	if scratch == "" {
		scratch = os.TempDir()
	}
	if err := errors.Join(os.MkdirAll(scratch, 0o700), Collect(scratch)); err != nil {
		return nil, err
	}
	for range 100 {
		in, err := quarantine(scratch)
		if !errors.Is(err, errCollected) {
			return in, err
		}
	}
	return nil, fmt.Errorf("cannot make a directory in %s: %w", scratch, errCollected)
}

// errCollected says that another fetch removed a quarantine before it was locked.
var errCollected = errors.New("other fetches remove it")

// quarantine makes a directory and locks it. In between, another fetch may take it for one of a killed process.
func quarantine(scratch string) (in *incoming, err error) {
	dir, err := os.MkdirTemp(scratch, quarantinePrefix)
	if err != nil {
		return nil, err
	}
	lock, err := os.Open(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, errCollected
	}
	if err != nil {
		return nil, err
	}
	if err = unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
		_, err = os.Lstat(dir)
	}
	if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, os.ErrNotExist) {
		err = errCollected
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return &incoming{dir: dir, lock: lock}, nil
}

func (in *incoming) pack() string  { return filepath.Join(in.dir, "pack") }
func (in *incoming) index() string { return filepath.Join(in.dir, "index") }
func (in *incoming) remove() error { return errors.Join(os.RemoveAll(in.dir), in.lock.Close()) }

// Collect removes what fetches left in a scratch directory when their process
// was killed. Every fetch does so too.
func Collect(scratch string) error {
	entries, err := os.ReadDir(scratch)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), quarantinePrefix) {
			err = errors.Join(err, collect(filepath.Join(scratch, e.Name())))
		}
	}
	return err
}

// collect removes a quarantine that nobody has locked. It may be gone meanwhile.
func collect(dir string) error {
	lock, err := os.Open(dir)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) { // or another user's
		return nil
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	if unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return nil
	}
	return os.RemoveAll(dir)
}

const (
	packHeader = 12
	// leastFree is what a fetch leaves free on the disk. Of a disk that has
	// little more, it takes half of what is free: the commit that fixes a full
	// disk is small.
	leastFree = 64 << 20
)

// fill writes a pack to disk. Its header is looked at before anything else is
// read, the checksum at its end when all of it is there.
func (in *incoming) fill(r io.Reader, l Limits) (err error) {
	var header [packHeader]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return cutShort(err)
	}
	if in.objects, err = readHeader(header[:], l); err != nil {
		return err
	}
	free, err := in.free()
	if err != nil {
		return err
	}
	in.least = min(leastFree, free/2)
	f, err := os.OpenFile(in.pack(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	w := &hashedTail{to: f, hash: sha1.New(), room: in.room}
	_, err = w.Write(header[:])
	if err == nil {
		_, err = io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{r}, make([]byte, 256<<10))
	}
	if err = errors.Join(cutShort(err), f.Close()); err != nil {
		return err
	}
	if !bytes.Equal(w.hash.Sum(nil), w.tail) {
		return &PackError{"its checksum does not match: it is damaged or cut short"}
	}
	in.size, in.sum = w.size, [sha1.Size]byte(w.tail)
	return nil
}

func cutShort(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &PackError{"it is cut short"}
	}
	return err
}

// readHeader is the number of objects that a pack announces.
func readHeader(header []byte, l Limits) (objects int, err error) {
	if len(header) < packHeader || string(header[:4]) != "PACK" {
		return 0, &PackError{"it does not begin as packs do"}
	}
	if version := binary.BigEndian.Uint32(header[4:]); version != 2 {
		return 0, &PackError{fmt.Sprintf("it has version %d; pullet reads version 2", version)}
	}
	n := int64(binary.BigEndian.Uint32(header[8:]))
	if n > int64(l.Objects) {
		return 0, &LimitError{
			What:    fmt.Sprintf("a pack of %d objects", n),
			Setting: "objects",
			Limit:   fmt.Sprint(l.Objects),
		}
	}
	return int(n), nil
}

// room fails when the disk of the quarantine has no more to give.
func (in *incoming) room() error {
	free, err := in.free()
	if err == nil && free < in.least {
		err = &LimitError{
			What:  "the pack",
			Limit: fmt.Sprintf("what the disk of %s has: %s are kept free", filepath.Dir(in.dir), bytesText(in.least)),
		}
	}
	return err
}

// free is how many bytes the disk of the quarantine has.
func (in *incoming) free() (int64, error) {
	var st unix.Statfs_t
	err := unix.Statfs(in.dir, &st)
	return int64(st.Bavail) * st.Bsize, err
}

// place hands the pack and its index over. The index goes first: one without a
// pack is tidied up, the reverse is damage.
func (in *incoming) place(to func(name, file string) error) error {
	base := "pack-" + hex.EncodeToString(in.sum[:])
	for _, move := range [][2]string{{base + ".idx", in.index()}, {base + ".pack", in.pack()}} {
		if err := seal(move[1]); err != nil {
			return err
		}
		if err := to(move[0], move[1]); err != nil {
			return err
		}
	}
	return nil
}

// seal makes a file read-only and durable.
func seal(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return errors.Join(f.Chmod(0o444), f.Sync())
}

// hashedTail writes everything and hashes all but the last bytes, which are
// the checksum.
type hashedTail struct {
	to      io.Writer
	hash    hash.Hash
	room    func() error // asked now and then
	tail    []byte
	size    int64
	checked int64
}

const roomEvery = 16 << 20

func (w *hashedTail) Write(p []byte) (int, error) {
	if w.size >= w.checked {
		if err := w.room(); err != nil {
			return 0, err
		}
		w.checked = w.size + roomEvery
	}
	n, err := w.to.Write(p)
	w.size += int64(n)
	w.tail = append(w.tail, p[:n]...)
	if rest := len(w.tail) - sha1.Size; rest > 0 {
		w.hash.Write(w.tail[:rest])
		w.tail = append(w.tail[:0], w.tail[rest:]...)
	}
	return n, err
}

// Received is how many bytes the fetches that go on now have received, below their scratch directory.
func Received(scratch string) (n int64) {
	packs, _ := filepath.Glob(filepath.Join(scratch, quarantinePrefix+"*", "pack")) // the pattern is a good one
	for _, pack := range packs {
		if info, err := os.Lstat(pack); err == nil { // else it ended just now
			n += info.Size()
		}
	}
	return n
}
