package powerloss

import (
	"context"
	"maps"
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

// sector is the size of the part that a disk writes as a whole or not at all.
const sector = 4096

// diskEvent is a write to a disk, a flush of its cache, or a mark that a command left.
type diskEvent struct {
	disk   *disk
	offset int64
	data   []byte // of a write
	mark   string // of a command
}

// recorder is a file system of disk images that loop devices can use. It records the order of all writes to the disks,
// flushes of their caches, and writes to its file "mark".
type recorder struct {
	mu    sync.Mutex
	disks map[string]*disk
	log   []diskEvent
}

// disk is one disk of a recorder, whose mutex guards it.
type disk struct {
	size    int64
	sectors map[int64][]byte
}

// loadDisk reads an image.
func loadDisk(t testing.TB, image string) *disk {
	t.Helper()
	data, err := os.ReadFile(image)
	if err != nil {
		t.Fatal(err)
	}
	d := &disk{size: int64(len(data)), sectors: map[int64][]byte{}}
	zeros := make([]byte, sector)
	for i := int64(0); i < d.size; i += sector {
		if one := data[i:min(i+sector, d.size)]; !slices.Equal(one, zeros[:len(one)]) {
			d.sectors[i] = slices.Clone(one)
		}
	}
	return d
}

// serve mounts the recorder on a directory.
func (r *recorder) serve(t testing.TB, dir string) {
	t.Helper()
	root := &fs.Inode{}
	server, err := fs.Mount(dir, root, &fs.Options{
		MountOptions: fuse.MountOptions{DirectMountStrict: true, FsName: "recorded", MaxWrite: 1 << 17},
		OnAdd: func(ctx context.Context) {
			for name, d := range r.disks {
				root.AddChild(name, root.NewPersistentInode(ctx, &diskFile{recorder: r, disk: d},
					fs.StableAttr{Mode: syscall.S_IFREG}), false)
			}
			root.AddChild("mark", root.NewPersistentInode(ctx, &markFile{recorder: r}, fs.StableAttr{Mode: syscall.S_IFREG}),
				false)
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

// restart removes the events so far. The disks keep their contents.
func (r *recorder) restart() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = nil
}

// events returns the events so far.
func (r *recorder) events() []diskEvent {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.log)
}

// copies returns copies of the disks by name.
func (r *recorder) copies() map[string]*disk {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[string]*disk{}
	for name, d := range r.disks {
		out[name] = d.clone()
	}
	return out
}

// restore restores the contents of the disks from copies.
func (r *recorder) restore(was map[string]*disk) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, d := range r.disks {
		d.sectors = was[name].clone().sectors
	}
}

// put writes data at an offset.
func (d *disk) put(offset int64, data []byte) {
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

// clone returns a copy of the disk. Sectors are replaced and never changed.
func (d *disk) clone() *disk { return &disk{d.size, maps.Clone(d.sectors)} }

// losePower returns the disk after a power loss that follows these events of the disk of. It has all data from before
// the last flush, and chance decides for each sector that was written since.
func (d *disk) losePower(events []diskEvent, of *disk, chance *rand.Rand) *disk {
	out := d.clone()
	flushed := 0
	for i, e := range events {
		if e.disk == of && e.data == nil {
			flushed = i
		}
	}
	for i, e := range events {
		for from := 0; e.disk == of && from < len(e.data); {
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

// save writes the disk to an image.
func (d *disk) save(t testing.TB, image string) {
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

// diskFile is the file of a disk in the file system of a recorder.
type diskFile struct {
	fs.Inode
	*recorder
	disk *disk
}

func (f *diskFile) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return nil, fuse.FOPEN_DIRECT_IO, 0
}

func (f *diskFile) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	out.Mode, out.Size, out.Blksize = 0o600, uint64(f.disk.size), sector
	return 0
}

func (f *diskFile) Read(_ context.Context, _ fs.FileHandle, dest []byte, offset int64) (fuse.ReadResult,
	syscall.Errno) {
	d := f.disk
	f.mu.Lock()
	defer f.mu.Unlock()
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
	f.mu.Lock()
	defer f.mu.Unlock()
	f.disk.put(offset, data)
	f.log = append(f.log, diskEvent{disk: f.disk, offset: offset, data: slices.Clone(data)})
	return uint32(len(data)), 0
}

func (f *diskFile) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log = append(f.log, diskEvent{disk: f.disk})
	return 0
}

// markFile is the file in which commands leave marks.
type markFile struct {
	fs.Inode
	*recorder
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
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log = append(f.log, diskEvent{mark: strings.TrimSpace(string(data))})
	return uint32(len(data)), 0
}

// mountImage mounts an image with a file system of a kind, and returns a function that unmounts it.
func mountImage(t testing.TB, kind, image, dir string) (unmount func()) {
	t.Helper()
	if kind == "btrfs" { // the kernel remembers disks, and refuses an older one with the same ID
		runTool(t, "btrfs", "device", "scan", "--forget")
	}
	options := "loop"
	if kind == "xfs" { // a process in another mount namespace can still hold the earlier copy, with the same ID
		options += ",nouuid"
	}
	runTool(t, "mount", "-o", options, image, dir)
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
