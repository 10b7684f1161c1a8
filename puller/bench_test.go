package puller

import (
	"fmt"
	"io/fs"
	"testing"
)

// many makes a repository of n files.
func many(t testing.TB, n int) *upstream {
	u := newUpstream(t)
	for i := range n {
		u.write(fmt.Sprintf("d%d/f%d", i%100, i), fmt.Sprintf("content of file %d\n", i))
	}
	u.commit()
	return u
}

func BenchmarkPullNoChange(b *testing.B) {
	u := newUpstream(b)
	u.commit("a", "1")
	p := open(b, b.TempDir(), Source{Name: "main", URL: "file://" + u.dir})
	pull(b, p)
	for b.Loop() {
		pull(b, p)
	}
}

func BenchmarkSnapshot10000(b *testing.B) {
	u := many(b, 10_000)
	p := open(b, b.TempDir(), Source{Name: "main", URL: u.dir})
	h := pull(b, p)
	for b.Loop() {
		if _, err := p.Snapshot(b.Context(), []Head{h}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReadAll10000(b *testing.B) {
	p := open(b, b.TempDir(), Source{Name: "main", URL: many(b, 10_000).dir})
	h := pull(b, p)
	for b.Loop() {
		must(b, p.repos[0].store.reset())
		s, err := p.Snapshot(b.Context(), []Head{h})
		must(b, err)
		fsys := s.Layers[0].FS
		must(b, fs.WalkDir(fsys, ".", func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				_, err = fs.ReadFile(fsys, path)
			}
			return err
		}))
	}
}

func BenchmarkPullNoChangeHTTP(b *testing.B) {
	u := newUpstream(b)
	u.commit("a", "1")
	p := open(b, b.TempDir(), Source{Name: "main", URL: serveHTTP(b, u).url})
	pull(b, p)
	for b.Loop() {
		pull(b, p)
	}
}

func BenchmarkFirstPull10000(b *testing.B) {
	u := many(b, 10_000)
	for name, url := range map[string]string{"file": u.dir, "http": serveHTTP(b, u).url} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				pull(b, open(b, b.TempDir(), Source{Name: "main", URL: url}))
			}
		})
	}
}

func BenchmarkPullOneCommit10000(b *testing.B) {
	u := many(b, 10_000)
	for name, url := range map[string]string{"file": u.dir, "http": serveHTTP(b, u).url} {
		b.Run(name, func(b *testing.B) {
			p := open(b, b.TempDir(), Source{Name: "main", URL: url})
			pull(b, p)
			for i := 0; b.Loop(); i++ {
				b.StopTimer()
				u.commit("d1/f1", fmt.Sprint(name, i))
				b.StartTimer()
				pull(b, p)
			}
		})
	}
}
