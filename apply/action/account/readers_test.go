package account

import (
	"slices"
	"strings"
	"testing"
)

// FuzzAuthorizedKeys: an edit is done after one time, and with exclusive nothing stands there but the key and comments.
func FuzzAuthorizedKeys(f *testing.F) {
	const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMpNaqXbdv4j6vc211VA+HyrG5m+9yq0zmX24cJXuoDa"
	for _, text := range []string{"", key, "no-pty " + key + " c\n" + key, "# x\nnonsense\n", "a=\"" + key, key + "\r\n\r\n"} {
		f.Add(text, "c", true)
		f.Add(text, "", false)
	}
	want, err := parseKey("no-pty " + key)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text, comment string, exclusive bool) {
		line := *want
		line.comment = comment
		if again, err := parseKey(line.String()); err != nil || again.comment != comment {
			return // Bind refuses it
		}
		a := &AuthorizedKey{want: []*keyLine{&line}, Exclusive: exclusive}
		once, _ := a.edit(text)
		if again, did := a.edit(once); again != once || len(did) > 0 {
			t.Fatalf("%q -> %q -> %q %q", text, once, again, did)
		}
		keys := 0
		for l := range strings.Lines(once) {
			l = strings.TrimSpace(l)
			have, err := parseKey(l)
			switch {
			case l == "" || l[0] == '#':
			case err == nil && have.id() == line.id() && slices.Equal(have.options, line.options):
				keys++
			case exclusive || err == nil && have.id() == line.id():
				t.Fatalf("%q -> %q", text, once)
			}
		}
		if keys != 1 {
			t.Fatalf("%q -> %q: the key stands there %d times", text, once, keys)
		}
		absent := &AuthorizedKey{want: []*keyLine{&line}, State: "absent"}
		gone, _ := absent.edit(once)
		for l := range strings.Lines(gone) {
			if strings.TrimSpace(l) == line.String() {
				t.Fatalf("%q -> %q", once, gone)
			}
		}
	})
}
