package main

import (
	"context"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// sector is what a disk writes whole or not at all.
const sector = 4096

// diskEvent is something that happened to a recorded disk: a write, a flush of its cache, or a mark that a command left.
type diskEvent struct {
	offset int64
	data   []byte
	mark   string // "" with data: a write; "" without: a flush
}

// recordedDisk is a file system of two files. "disk" is a disk image that a loop device can use: it remembers every write and every flush of the disk's
// cache in their order. What is written to "mark" is remembered between them.
type recordedDisk struct {
	mu      sync.Mutex
	size    int64
	sectors map[int64][]byte
	log     []diskEvent
}

// loadDisk takes over an image.
func loadDisk(t *testing.T, image string) *recordedDisk {
	t.Helper()
	data, err := os.ReadFile(image)
	if err != nil {
		t.Fatal(err)
	}
	d := &recordedDisk{size: int64(len(data)), sectors: map[int64][]byte{}}
	zeros := make([]byte, sector)
	for i := int64(0); i < d.size; i += sector {
		if one := data[i:min(i+sector, d.size)]; !slices.Equal(one, zeros[:len(one)]) {
			d.sectors[i] = slices.Clone(one)
		}
	}
	return d
}

// serve mounts the two files on a directory.
func (d *recordedDisk) serve(t *testing.T, dir string) {
	t.Helper()
	root := &fs.Inode{}
	server, err := fs.Mount(dir, root, &fs.Options{
		MountOptions: fuse.MountOptions{DirectMountStrict: true, FsName: "recorded", MaxWrite: 1 << 17},
		OnAdd: func(ctx context.Context) {
			root.AddChild("disk", root.NewPersistentInode(ctx, &diskFile{disk: d}, fs.StableAttr{Mode: syscall.S_IFREG}), false)
			root.AddChild("mark", root.NewPersistentInode(ctx, &markFile{disk: d}, fs.StableAttr{Mode: syscall.S_IFREG}), false)
		},
	})
	if err != nil {
		t.Skipf("needs FUSE: %v", err)
	}
	t.Cleanup(func() {
		if err := server.Unmount(); err != nil {
			t.Error(err)
		}
	})
}

// restart forgets what happened so far: the disk is as it is.
func (d *recordedDisk) restart() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.log = nil
}

func (d *recordedDisk) events() []diskEvent {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.log)
}

func (d *recordedDisk) put(offset int64, data []byte) {
	for len(data) > 0 {
		at := offset - offset%sector
		one := slices.Clone(d.sectors[at])
		if one == nil {
			one = make([]byte, sector)
		}
		n := copy(one[offset-at:], data)
		d.sectors[at] = one
		offset, data = offset+int64(n), data[n:]
	}
}

// copyOf is the disk as it was before anything was recorded. Sectors are never changed, only replaced.
func (d *recordedDisk) copyOf() *recordedDisk {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := &recordedDisk{size: d.size, sectors: make(map[int64][]byte, len(d.sectors))}
	for at, one := range d.sectors {
		out.sectors[at] = one
	}
	return out
}

// after is the disk when the power fails behind these events: all that was written before the last flush is on it, and of what was written since
// each sector by chance.
func (d *recordedDisk) after(events []diskEvent, chance *rand.Rand) *recordedDisk {
	out := d.copyOf()
	flushed := 0
	for i, e := range events {
		if e.mark == "" && e.data == nil {
			flushed = i
		}
	}
	for i, e := range events {
		for from := 0; from < len(e.data); {
			at := e.offset + int64(from)
			n := min(len(e.data)-from, int(sector-at%sector))
			if i < flushed || chance.IntN(2) == 0 {
				out.put(at, e.data[from:from+n])
			}
			from += n
		}
	}
	return out
}

// save writes the disk as an image.
func (d *recordedDisk) save(t *testing.T, image string) {
	t.Helper()
	f, err := os.Create(image)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(d.size); err != nil {
		t.Fatal(err)
	}
	for at, one := range d.sectors {
		if _, err := f.WriteAt(one, at); err != nil {
			t.Fatal(err)
		}
	}
}

type diskFile struct {
	fs.Inode
	disk *recordedDisk
}

func (f *diskFile) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return nil, fuse.FOPEN_DIRECT_IO, 0
}

func (f *diskFile) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	out.Mode, out.Size, out.Blksize = 0o600, uint64(f.disk.size), sector
	return 0
}

func (f *diskFile) Read(_ context.Context, _ fs.FileHandle, dest []byte, offset int64) (fuse.ReadResult, syscall.Errno) {
	d := f.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(dest)
	for done := 0; done < len(dest); {
		at := offset + int64(done)
		in := at % sector
		n := min(len(dest)-done, int(sector-in))
		if one := d.sectors[at-in]; one != nil {
			copy(dest[done:done+n], one[in:])
		}
		done += n
	}
	return fuse.ReadResultData(dest), 0
}

func (f *diskFile) Write(_ context.Context, _ fs.FileHandle, data []byte, offset int64) (uint32, syscall.Errno) {
	d := f.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	d.put(offset, data)
	d.log = append(d.log, diskEvent{offset: offset, data: slices.Clone(data)})
	return uint32(len(data)), 0
}

func (f *diskFile) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	f.disk.log = append(f.disk.log, diskEvent{})
	return 0
}

type markFile struct {
	fs.Inode
	disk *recordedDisk
}

func (f *markFile) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return nil, fuse.FOPEN_DIRECT_IO, 0
}

func (f *markFile) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	out.Mode = 0o600
	return 0
}

func (f *markFile) Setattr(context.Context, fs.FileHandle, *fuse.SetAttrIn, *fuse.AttrOut) syscall.Errno {
	return 0
}

func (f *markFile) Write(_ context.Context, _ fs.FileHandle, data []byte, _ int64) (uint32, syscall.Errno) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	f.disk.log = append(f.disk.log, diskEvent{mark: strings.TrimSpace(string(data))})
	return uint32(len(data)), 0
}

// mountImage mounts a disk, image or recorded, and returns how to unmount it.
func mountImage(t *testing.T, image, dir string) (unmount func()) {
	t.Helper()
	runTool(t, "mount", "-o", "loop", image, dir)
	mounted := true
	unmount = func() {
		if mounted {
			mounted = false
			runTool(t, "umount", dir)
		}
	}
	t.Cleanup(unmount)
	return unmount
}
