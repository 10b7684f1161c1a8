package powerloss

import (
	"bytes"
	"math/rand/v2"
	"path/filepath"
	"testing"
)

// TestLosePower: data from before the last flush survives a power loss, data of other disks never gets onto the disk,
// and of the rest each sector survives or not.
func TestLosePower(t *testing.T) {
	d, other := &disk{size: 8 * sector, sectors: map[int64][]byte{}}, &disk{size: sector, sectors: map[int64][]byte{}}
	block := func(c byte, n int) []byte { return bytes.Repeat([]byte{c}, n) }
	events := []diskEvent{
		{disk: d, offset: 100, data: block('a', 10)},
		{disk: d},
		{mark: "later"},
		{disk: d, offset: sector, data: block('b', 4*sector)},
		{disk: other, offset: 0, data: block('c', sector)},
		{disk: other},
	}
	lost, kept := 0, 0
	for seed := range uint64(20) {
		after := d.losePower(events, d, rand.New(rand.NewPCG(seed, 0)))
		if one := after.sectors[0]; !bytes.Equal(one[100:110], block('a', 10)) || one[99] != 0 || one[110] != 0 {
			t.Errorf("seed %d: what was flushed is lost", seed)
		}
		for at := int64(sector); at < 5*sector; at += sector {
			switch one := after.sectors[at]; {
			case one == nil:
				lost++
			case bytes.Equal(one, block('b', sector)):
				kept++
			default:
				t.Errorf("seed %d: a sector is torn", seed)
			}
		}
	}
	if lost == 0 || kept == 0 || len(d.sectors) != 0 {
		t.Errorf("%d sectors were lost and %d kept; the disk itself has %d", lost, kept, len(d.sectors))
	}
	if got := marks(events); len(got) != 1 || got[0] != "later" {
		t.Errorf("marks %q", got)
	}
}

// TestImage: a disk is the same after it is saved and loaded.
func TestImage(t *testing.T) {
	d := &disk{size: 3*sector + 7, sectors: map[int64][]byte{}}
	d.put(sector-2, []byte("over two sectors"))
	image := filepath.Join(t.TempDir(), "image")
	d.save(t, image)
	got := loadDisk(t, image)
	if got.size != d.size || len(got.sectors) != 2 || !bytes.Equal(got.sectors[0], d.sectors[0]) || !bytes.Equal(got.sectors[sector], d.sectors[sector]) {
		t.Errorf("%d bytes, %d sectors", got.size, len(got.sectors))
	}
}
