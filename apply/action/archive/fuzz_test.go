package archive

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/hostfile"
)

// FuzzExtract: whatever an archive holds, and whatever links are in the directory already, nothing beside the directory
// is touched, and no link that it brings leads out.
func FuzzExtract(f *testing.F) {
	pack := func(list ...tar.Header) []byte {
		var out bytes.Buffer
		w := tar.NewWriter(&out)
		for _, h := range list {
			text := ""
			if h.Typeflag == tar.TypeReg {
				h.Size, text = 4, "evil"
			}
			h.Mode = 0o755
			if err := w.WriteHeader(&h); err != nil {
				f.Fatal(err)
			}
			if _, err := w.Write([]byte(text)); err != nil {
				f.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			f.Fatal(err)
		}
		return out.Bytes()
	}
	reg, dir, link, hard := byte(tar.TypeReg), byte(tar.TypeDir), byte(tar.TypeSymlink), byte(tar.TypeLink)
	for _, seed := range [][]byte{
		pack(tar.Header{Name: "a/b", Typeflag: reg}, tar.Header{Name: "l", Typeflag: link, Linkname: "a"}, tar.Header{Name: "h", Typeflag: hard, Linkname: "a/b"}),
		pack(tar.Header{Name: "../x", Typeflag: reg}), pack(tar.Header{Name: "/x", Typeflag: reg}), pack(tar.Header{Name: "preset-out/x", Typeflag: reg}),
		pack(tar.Header{Name: "l", Typeflag: link, Linkname: "../outside"}, tar.Header{Name: "l/x", Typeflag: reg}),
		pack(tar.Header{Name: "a/b", Typeflag: dir}, tar.Header{Name: "a/b/l", Typeflag: link, Linkname: "../.."}, tar.Header{Name: "m", Typeflag: link, Linkname: "a/b/l/.."}),
		pack(tar.Header{Name: "h", Typeflag: hard, Linkname: "../outside/victim"}), []byte("PK\x05\x06" + strings.Repeat("\x00", 18)), {},
	} {
		f.Add(seed, 0)
		f.Add(seed, 1)
	}
	f.Fuzz(func(t *testing.T, data []byte, strip int) {
		base := t.TempDir()
		root, outside := filepath.Join(base, "root"), filepath.Join(base, "outside")
		for _, err := range []error{os.MkdirAll(root+"/opt", 0o755), os.Mkdir(outside, 0o755), os.WriteFile(outside+"/victim", []byte("whole"), 0o644),
			os.Symlink("../../outside", root+"/opt/preset-out"), os.Symlink("../../outside/victim", root+"/opt/preset-f")} {
			if err != nil {
				t.Fatal(err)
			}
		}
		a := &Extracted{Name: "/opt", Source: "x", Strip: min(max(strip, 0), 100), step: "a/x", data: data}
		h := &apply.Host{Root: root, Backups: filepath.Join(base, "backups")}
		x, err := a.extraction(h)
		if err != nil {
			t.Fatal(err)
		}
		defer x.close()
		x.limits = archiveLimits{entries: 100, bytes: 1 << 20}
		err = x.run(context.Background(), h)
		for name, want := range map[string]bool{"root": true, "outside": true} {
			if hostfile.Exists(filepath.Join(base, name)) != want {
				t.Errorf("%s is there: %v", name, !want)
			}
		}
		found, readErr := os.ReadDir(base)
		victims, outErr := os.ReadDir(outside)
		text, victimErr := os.ReadFile(outside + "/victim")
		above, rootErr := os.ReadDir(root)
		if readErr != nil || outErr != nil || victimErr != nil || rootErr != nil || len(found) != 2 || len(victims) != 1 || len(above) != 1 || string(text) != "whole" {
			t.Fatalf("it led out: %v %v %v %q", found, victims, above, text)
		}
		if err != nil {
			return
		}
		noLinkOut(t, root+"/opt")
		if c, err := a.Check(context.Background(), h); err != nil || !c.Empty() {
			t.Errorf("then there is something to do: %q %v\n%s", c.Summary, err, c.Diff)
		}
	})
}

// noLinkOut resolves every link below a directory, but those that were there before.
func noLinkOut(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.Type()&fs.ModeSymlink == 0 || p == dir+"/preset-out" || p == dir+"/preset-f" {
			return err
		}
		at, err := filepath.EvalSymlinks(p)
		if err == nil && at != dir && !strings.HasPrefix(at, dir+"/") {
			// Through a link that was there before it may.
			if to, _ := os.Readlink(p); !strings.Contains(to, "preset-") {
				t.Errorf("%s leads to %s", p, at)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestArchiveLimits: more names or more bytes than the limit are refused, also where they cost next to nothing in the
// archive.
func TestArchiveLimits(t *testing.T) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, name := range []string{"a", "b", "c"} {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: 1000, Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		limits archiveLimits
		want   string
	}{
		{archiveLimits{2, 1 << 20}, "it holds more than 2 names"}, {archiveLimits{10, 2500}, "it holds more than 2500 bytes"}, {archiveLimits{3, 1 << 20}, ""},
	} {
		x := &extraction{action: &Extracted{Name: "/opt", step: "a/x"}, limits: c.limits}
		from := archiveData{bytes.NewReader(out.Bytes()), int64(out.Len()), sha256.Sum256(out.Bytes()), stamp{}, func() {}}
		_, err := x.scan(context.Background(), from)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v, want %q", c.limits, err, c.want)
		}
	}
}
