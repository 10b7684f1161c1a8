package trust

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"filippo.io/age/agessh"
	"filippo.io/age/armor"
	"go.yaml.in/yaml/v4"
	"pgregory.net/rapid"
)

// sopsFixture reads a file of testdata/sops.
func sopsFixture(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata/sops", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// sopsIdentity reads one of the keys of testdata/sops.
func sopsIdentity(t testing.TB, name string) []age.Identity {
	t.Helper()
	text := sopsFixture(t, name)
	if name == "id_ed25519" {
		id, err := agessh.ParseIdentity(text)
		if err != nil {
			t.Fatal(err)
		}
		return []age.Identity{id}
	}
	ids, err := age.ParseIdentities(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// sopsLoad reads YAML.
func sopsLoad(t testing.TB, text []byte) (v any) {
	t.Helper()
	if err := yaml.Load(text, &v); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	return v
}

// alike makes equal what SOPS does not keep apart: it writes floats in clear without their point, and times in another
// form.
func alike(v any) any {
	switch v := v.(type) {
	case int:
		return float64(v)
	case time.Time:
		return v.UTC()
	case []any:
		for i := range v {
			v[i] = alike(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = alike(v[key])
		}
	}
	return v
}

// sopsFiles are the encrypted files of testdata/sops, each with its plain file and a key.
var sopsFiles = []struct{ name, plain, key string }{
	{"all", "all", "age.txt"},
	{"ssh", "all", "id_ed25519"},
	{"several", "all", "age.txt"},
	{"several", "all", "other.txt"},
	{"several", "all", "id_ed25519"},
	{"onlyencrypted", "some", "age.txt"},
	{"encryptedregex", "some", "age.txt"},
	{"unencryptedregex", "some", "age.txt"},
	{"encryptedsuffix", "some", "age.txt"},
	{"unencryptedsuffix", "some", "age.txt"},
	{"encryptedcomment", "comments", "age.txt"},
	{"unencryptedcomment", "comments", "age.txt"},
}

// TestSOPSFiles: what sops itself encrypted is decrypted to what it was.
func TestSOPSFiles(t *testing.T) {
	for _, c := range sopsFiles {
		t.Run(c.name+" with "+c.key, func(t *testing.T) {
			text := sopsFixture(t, c.name+".yaml")
			if !isSOPS(text) {
				t.Error("it is not recognized")
			}
			opened, err := openSOPS(text, sopsIdentity(t, c.key))
			if err != nil {
				t.Fatal(err)
			}
			plain := sopsFixture(t, "plain/"+c.plain+".yaml")
			if got, want := alike(sopsLoad(t, opened)), alike(sopsLoad(t, plain)); !reflect.DeepEqual(got, want) {
				t.Errorf("got  %#v\nwant %#v", got, want)
			}
			if isSOPS(opened) || isSOPS(plain) {
				t.Error("a plain file is taken for one of SOPS")
			}
		})
	}
}

// TestSOPSTypes: decrypted values have the types that they had.
func TestSOPSTypes(t *testing.T) {
	opened, err := openSOPS(sopsFixture(t, "all.yaml"), sopsIdentity(t, "age.txt"))
	if err != nil {
		t.Fatal(err)
	}
	got := sopsLoad(t, opened).(map[string]any)
	want := sopsLoad(t, sopsFixture(t, "plain/all.yaml")).(map[string]any)
	for _, key := range []string{"database", "number", "octal", "large", "small", "yes", "no", "nothing", "empty", "text_number",
		"text_true", "date", "moment", "binary", "unicode", "κλειδί", "control", "spaces", "lines", "folded", "pem", "list"} {
		if at, ok := want[key].(time.Time); ok && at.Equal(got[key].(time.Time)) {
			continue
		}
		if !reflect.DeepEqual(got[key], want[key]) {
			t.Errorf("%s: got %#v, want %#v", key, got[key], want[key])
		}
	}
}

// TestIsSOPS knows files of SOPS from others, also those that cannot be opened.
func TestIsSOPS(t *testing.T) {
	for text, want := range map[string]bool{
		"":                                 false,
		"a: 1":                             false,
		"sops: 1":                          false,
		"sops: {}":                         false,
		"sops: {version: 3.1.0}":           false,
		"a: {sops: {mac: x}}":              false,
		"- sops: {mac: x}":                 false,
		"sops: {mac: x}":                   true,
		"a: &a {mac: x}\nsops: *a":         true,
		"sops: {mac: x}\n---\nb: 1":        true,
		"a: 1\nsops: [mac: x]":             false,
		"sops: {mac: x":                    false,
		"sops:\n    mac: x\n" + tooLarge(): true,
		"sop: x\n" + tooLarge():            false,
		"sops:\n" + tooLarge():             false,
	} {
		if got := isSOPS([]byte(text)); got != want {
			t.Errorf("%.40q: got %v", text, got)
		}
	}
}

func tooLarge() string { return "x: " + strings.Repeat("y", maxSOPS) }

// TestSOPSOthers: who has none of the keys is told so, which is another thing than a broken file.
func TestSOPSOthers(t *testing.T) {
	text := sopsFixture(t, "all.yaml")
	for _, ids := range [][]age.Identity{nil, sopsIdentity(t, "other.txt"), sopsIdentity(t, "id_ed25519")} {
		if _, err := openSOPS(text, ids); !errors.Is(err, ErrNotRecipient) {
			t.Error(err)
		}
	}
}

// TestSOPSDataKey refuses data keys of another length, and such that age cannot read.
func TestSOPSDataKey(t *testing.T) {
	ids := sopsIdentity(t, "age.txt")
	var short bytes.Buffer
	armored := armor.NewWriter(&short)
	w, err := age.Encrypt(armored, ids[0].(*age.X25519Identity).Recipient())
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(w, "hunter2")
	if err := errors.Join(w.Close(), armored.Close()); err != nil {
		t.Fatal(err)
	}
	for enc, want := range map[string]string{
		short.String(): "the data key for recipient 1 of age cannot be read: it does not have 32 bytes",
		"x":            "the data key for recipient 1 of age cannot be read: ",
		"":             "the data key for recipient 1 of age cannot be read: ",
	} {
		text := fmt.Sprintf("a: \"\"\nsops:\n  age: [{recipient: x, enc: %q}]\n"+
			"  lastmodified: 2024-01-01T00:00:00Z\n  mac: x\n  version: 3.9.0\n", enc)
		if _, err := openSOPS([]byte(text), ids); err == nil || !strings.HasPrefix(err.Error(), want) ||
			errors.Is(err, ErrNotRecipient) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", enc, err)
		}
	}
}

// TestSOPSTexts: every text is written so that it is read as the same text.
func TestSOPSTexts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, key := rapid.String().Draw(t, "text"), rapid.String().Draw(t, "key")
		if rapid.Bool().Draw(t, "any bytes") {
			text = string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
		}
		out, err := dumpSOPS(&yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{textNode(key), textNode(text)}})
		var got map[string]any
		if err := errors.Join(err, yaml.Load(out, &got)); err != nil {
			t.Fatalf("%v: %q", err, out)
		}
		if want := map[string]any{key: text}; !reflect.DeepEqual(got, want) {
			t.Fatalf("got %#v, want %#v: %q", got, want, out)
		}
	})
}

// FuzzSOPS: whatever a file is, reading it ends, no error tells a secret, and what is decrypted is YAML.
func FuzzSOPS(f *testing.F) {
	for _, c := range sopsFiles {
		f.Add(sopsFixture(f, c.name+".yaml"))
	}
	ids := append(sopsIdentity(f, "age.txt"), sopsIdentity(f, "id_ed25519")...)
	secrets := []string{`p:a#s`, "db.example.org", "MIIBszCCAVmg", "Grüße"}
	f.Fuzz(func(t *testing.T, text []byte) {
		is := isSOPS(text)
		opened, errOpen := openSOPS(text, ids)
		if errOpen == nil {
			sopsLoad(t, opened)
			if !is {
				t.Error("it opens, and is no file of SOPS")
			}
			return
		}
		for _, secret := range secrets {
			if strings.Contains(errOpen.Error(), secret) && !bytes.Contains(text, []byte(secret)) {
				t.Errorf("the error tells %q: %v", secret, errOpen)
			}
		}
	})
}
