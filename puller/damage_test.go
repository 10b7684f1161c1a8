package puller

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/pullet/pullet/internal/gitremote"
)

// damages are ways in which a store can break, with the file to break.
func damages() map[string]func(t *testing.T, dir string) {
	return map[string]func(*testing.T, string){
		"pack cut short": func(t *testing.T, dir string) {
			must(t, os.Truncate(onePack(t, dir), 40))
		},
		"pack changed inside": func(t *testing.T, dir string) {
			pack := onePack(t, dir)
			must(t, os.Chmod(pack, 0o600))
			f, err := os.OpenFile(pack, os.O_RDWR, 0)
			must(t, err)
			defer f.Close()
			info, _ := f.Stat()
			_, err = f.WriteAt(make([]byte, info.Size()-40), 16)
			must(t, err)
		},
		"pack deleted": func(t *testing.T, dir string) { must(t, os.Remove(onePack(t, dir))) },
		"index cut short": func(t *testing.T, dir string) {
			must(t, os.Truncate(strings.TrimSuffix(onePack(t, dir), ".pack")+".idx", 100))
		},
		"ref emptied":    func(t *testing.T, dir string) { must(t, os.Truncate(dir+"/refs/pullet/followed", 0)) },
		"HEAD emptied":   func(t *testing.T, dir string) { must(t, os.Truncate(dir+"/HEAD", 0)) },
		"config garbled": func(t *testing.T, dir string) { must(t, os.WriteFile(dir+"/config", []byte("[core"), 0o600)) },
		"store deleted":  func(t *testing.T, dir string) { must(t, os.RemoveAll(dir)) },
		"store emptied": func(t *testing.T, dir string) {
			must(t, os.RemoveAll(dir))
			must(t, os.Mkdir(dir, 0o700))
		},
	}
}

func onePack(t *testing.T, dir string) string {
	t.Helper()
	files, err := packs(dir)
	must(t, err)
	if len(files) == 0 {
		t.Fatal("no packs")
	}
	return files[0]
}

func TestDamagedStoreIsRebuilt(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	u.commit("a", "1")
	u.commit("a", strings.Repeat("2", 1000), "b/c", "3")
	w := serveHTTP(t, u)
	for name, damage := range damages() {
		t.Run(name, func(t *testing.T) {
			dir, src := filepath.Join(t.TempDir(), "no [pattern"), Source{Name: "main", URL: w.url}
			first := open(t, dir, src)
			pull(t, first)
			must(t, first.Close())
			damage(t, filepath.Join(dir, "main.git"))

			log, hook := logtest.NewNullLogger()
			p, err := Open(dir, []Source{src}, gitremote.Limits{}, logrus.NewEntry(log))
			must(t, err)
			defer p.Close()
			h := pull(t, p)
			if h.Problem != nil {
				t.Fatal(h.Problem)
			}
			if got := content(t, p, h, "b/c"); got != "3" {
				t.Errorf("b/c is %q", got)
			}
			if e := hook.LastEntry(); name != "store deleted" && name != "pack deleted" && (e == nil || !strings.Contains(e.Message, "building it anew")) {
				t.Errorf("last message: %+v", e)
			}
			assertNoLeftovers(t, dir)
		})
	}
}

// TestPackCutShortIsNamed: a store whose pack was cut short does not open, and the error names the pack.
func TestPackCutShortIsNamed(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	u.commit("a", "1")
	dir, src := t.TempDir(), Source{Name: "main", URL: serveHTTP(t, u).url}
	p := open(t, dir, src)
	pull(t, p)
	must(t, p.Close())
	store := filepath.Join(dir, "main.git")
	pack := onePack(t, store)
	must(t, os.Truncate(pack, 40))
	st, err := openStorage(store)
	if st != nil {
		t.Error("it is open")
	}
	expect(t, err, "pack "+pack+" is cut short or changed")
}

func assertNoLeftovers(t *testing.T, dir string) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		for _, bad := range []string{"tmp_", ".lock", ".new", ".old"} {
			if strings.Contains(d.Name(), bad) {
				t.Errorf("left behind: %s", path)
			}
		}
		return err
	}))
}

// A file that turns out to be unreadable only when it is read.
func TestCorruptBlob(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	u.commit("a", strings.Repeat("incompressible? no: 0123456789abcdef\n", 3)+"unique")
	dir, src := t.TempDir(), Source{Name: "main", URL: u.dir}
	p := open(t, dir, src)
	h := pull(t, p)
	_, err := p.Snapshot(t.Context(), []Head{h})
	must(t, err)
	must(t, p.Close())
	p = open(t, dir, src)
	s, err := p.Snapshot(t.Context(), []Head{h})
	must(t, err)
	// A loose object hides the packed one.
	id := u.git("rev-parse", "HEAD:a")
	must(t, p.repos[0].store.reset())
	must(t, os.MkdirAll(filepath.Join(dir, "main.git/objects", id[:2]), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "main.git/objects", id[:2], id[2:]), []byte("garbage"), 0o644))
	pack := onePack(t, filepath.Join(dir, "main.git"))
	must(t, os.Rename(pack, pack+".away"))

	_, err = fs.ReadFile(s.Layers[0].FS, "a")
	if _, ok := errors.AsType[*CorruptError](err); !ok {
		t.Fatalf("%v", err)
	}
	expect(t, err, `repository "main"`, "cannot read a", "the next pull rebuilds the store")
	must(t, p.Close())
	p = open(t, dir, src)
	h = pull(t, p)
	if got := content(t, p, h, "a"); !strings.HasSuffix(got, "unique") {
		t.Errorf("a is %q", got)
	}
}

// The remote may not have the last good commit any more: it must survive.
func TestRebuildKeepsRewrittenCommits(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	u.commit("a", "0")
	u.commit("a", "1")
	dir, src := t.TempDir(), Source{Name: "main", URL: serveHTTP(t, u).url}
	p := open(t, dir, src)
	good := pull(t, p)
	u.git("commit", "-q", "--amend", "-m", "other")
	u.commit("a", "2")
	if h := pull(t, p); h.Commit != good.Commit || h.Problem == nil {
		t.Fatalf("%+v", h)
	}
	must(t, os.Truncate(filepath.Join(dir, "main.git/refs/pullet/followed"), 0))
	must(t, p.Close())
	p = open(t, dir, src)
	if h := pull(t, p); h.Commit != good.Commit {
		t.Fatalf("%+v", h)
	}
	if got := content(t, p, good, "a"); got != "1" {
		t.Errorf("a is %q", got)
	}
}

func TestRecoverSwap(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		before, after string
		want          string
	}{
		{"git new", "git", "git"},
		{"git old", "git", "git"},
		{"old new", "git", "new"},
		{"old", "git", "old"},
		{"new", "", ""},
	} {
		base := filepath.Join(t.TempDir(), "x")
		for _, name := range strings.Fields(c.before) {
			path := base
			if name != "git" {
				path += "." + name
			}
			must(t, os.Mkdir(path, 0o700))
			must(t, os.WriteFile(filepath.Join(path, "id"), []byte(name), 0o600))
		}
		must(t, recoverSwap(base))
		got, _ := os.ReadFile(filepath.Join(base, "id"))
		if string(got) != c.want || exists(base+".new") || exists(base+".old") {
			t.Errorf("%s: got %q", c.before, got)
		}
	}
}

func TestTidy(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	u.commit("a", "1")
	dir, src := t.TempDir(), Source{Name: "main", URL: u.dir}
	p := open(t, dir, src)
	pull(t, p)
	must(t, p.Close())
	pack := filepath.Join(dir, "main.git/objects/pack")
	for _, name := range []string{"tmp_pack_123", "tmp_obj_1", "../../refs/pullet/.head123", "../../../.main.json42", "pack-0123456789012345678901234567890123456789.idx", "../../refs/x.lock"} {
		must(t, os.WriteFile(filepath.Join(pack, name), []byte("x"), 0o600))
	}
	p = open(t, dir, src)
	files, err := os.ReadDir(pack)
	must(t, err)
	if len(files) != 2 {
		t.Errorf("%v", files)
	}
	assertNoLeftovers(t, dir)
	if h := pull(t, p); h.Problem != nil {
		t.Error(h.Problem)
	}
}
