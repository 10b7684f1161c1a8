package puller

import (
	"fmt"
	"maps"
	"testing"
)

// BenchmarkContents: the first pull of a signed history of many branches that are merged, with rules.
func BenchmarkContents(b *testing.B) {
	u := newSignedUpstream(b, "ops", "dev")
	main := files{".pullet/signers": rules}
	for i := range 200 {
		main[fmt.Sprintf("jobs/%d/%d", i%20, i)] = "1"
	}
	at := u.add("ops", main)
	const branches = 500
	for i := range branches {
		from, branch := at, maps.Clone(main)
		for j := range 3 {
			branch[fmt.Sprintf("jobs/%d/%d", i%20, i%200)] = fmt.Sprint(i, j)
			from = u.add("dev", branch, from)
		}
		main[fmt.Sprintf("jobs/%d/%d", (i+1)%20, (i+1)%200)] = fmt.Sprint("main", i)
		at = u.add("ops", main, at)
		maps.Copy(main, files{fmt.Sprintf("jobs/%d/%d", i%20, i%200): fmt.Sprint(i, 2)})
		at = u.add("dev", main, at, from)
	}
	u.set(at)
	u.run(u.dir, "repack", "-a", "-d", "-q")
	for b.Loop() {
		p := open(b, b.TempDir(), u.source())
		if h := pull(b, p); h.Problem != nil {
			b.Fatal(h.Problem)
		}
	}
}
