package passwd

import (
	"slices"
	"strings"
	"testing"
)

// FuzzAccounts: whatever stands in an account file, each line that is one is found by its name, and numbers are what
// they say.
func FuzzAccounts(f *testing.F) {
	for _, text := range []string{"root:x:0:0:root:/root:/bin/sh\n", "wheel:x:10:a,,b\n", "#c\n\n:::\n", "a", "a:x:99999999999999999999:\na:x:-1:", "+::::::\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		all := parse(text)
		for _, a := range all {
			if len(a) == 0 || all.Named(a[0]) == nil || strings.Contains(strings.Join(a, ""), "\n") {
				t.Fatalf("%q gives %q", text, a)
			}
			if n, ok := a.Number(ID); ok && (n < 0 || all.Numbered(n) == nil) {
				t.Fatalf("%q: number %d", text, n)
			}
			for _, m := range a.Members() {
				if m == "" || !slices.Contains(all.GroupsOf(m), a[0]) {
					t.Fatalf("%q: member %q of %q", text, m, a[0])
				}
			}
			a.Field(Expires)
		}
	})
}
