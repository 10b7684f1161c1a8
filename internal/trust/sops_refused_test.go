package trust

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/internal/patience"
)

// sopsEdit changes the lines of a file.
type sopsEdit func(t *testing.T, lines []string) []string

// lineAt is the place of a line that begins so; it fails where there is none.
func lineAt(t *testing.T, lines []string, begin string) int {
	t.Helper()
	at := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, begin) })
	if at < 0 {
		t.Fatalf("no line begins with %q", begin)
	}
	return at
}

// becomes replaces a line that begins so; $ stands for the rest of it.
func becomes(begin, line string) sopsEdit {
	return func(t *testing.T, lines []string) []string {
		at := lineAt(t, lines, begin)
		lines[at] = strings.ReplaceAll(line, "$", strings.TrimPrefix(lines[at], begin))
		return lines
	}
}

// swapped exchanges what follows in two lines that begin so.
func swapped(one, other string) sopsEdit {
	return func(t *testing.T, lines []string) []string {
		a := lineAt(t, lines, one)
		b := a + 1 + lineAt(t, lines[a+1:], other)
		first, second := strings.TrimPrefix(lines[a], one), strings.TrimPrefix(lines[b], other)
		lines[a], lines[b] = one+second, other+first
		return lines
	}
}

// taken puts what follows in a line of a file into another line.
func taken(begin, file, from string) sopsEdit {
	return func(t *testing.T, lines []string) []string {
		others := strings.Split(string(sopsFixture(t, file)), "\n")
		lines[lineAt(t, lines, begin)] = begin + strings.TrimPrefix(others[lineAt(t, others, from)], from)
		return lines
	}
}

// all makes several edits, one after the other.
func all(edits ...sopsEdit) sopsEdit {
	return func(t *testing.T, lines []string) []string {
		for _, edit := range edits {
			lines = edit(t, lines)
		}
		return lines
	}
}

// TestSOPSChanged refuses files that were changed after they were encrypted.
func TestSOPSChanged(t *testing.T) {
	const (
		mac     = "it was changed after SOPS encrypted it: the MAC is of other values"
		value   = "it was changed, or is from another place or file: authentication fails"
		inClear = "it stands in clear and has to be encrypted"
		hidden  = "it is encrypted and has to stand in clear"
		itsMAC  = "the MAC or lastmodified was changed, or is from another file: authentication fails"
		form    = "it is not an encrypted value as SOPS writes it"
	)
	for name, c := range map[string]struct {
		file string
		edit sopsEdit
		want string
	}{
		"in clear":           {"all", becomes("number: ", "number: 5"), `line 16: "number": ` + inClear},
		"a text in clear":    {"all", becomes("number: ", "number: five"), `line 16: "number": ` + inClear},
		"added":              {"all", becomes("number: ", "number: $\nmore: x"), `line 17: "more": ` + inClear},
		"added in a list":    {"all", becomes("    - null", "    - x"), `line 41: "list": ` + inClear},
		"null for a value":   {"all", becomes("number: ", "number: null"), mac},
		"empty for a value":  {"all", becomes("number: ", `number: ""`), mac},
		"removed":            {"all", becomes("number: ", ""), mac},
		"renamed":            {"all", becomes("number: ", "numbers: $"), `line 16: "numbers": ` + value},
		"moved below":        {"all", becomes("number: ", "number:\n    inner: $"), `line 17: "number.inner": ` + value},
		"exchanged":          {"all", swapped("text_number: ", "text_true: "), `line 24: "text_number": ` + value},
		"exchanged in lists": {"all", swapped("        - host: ", "        - host: "), mac},
		"of another file":    {"all", taken("number: ", "ssh.yaml", "number: "), `line 16: "number": ` + value},
		"a map in one key": {"encryptedregex", all(becomes("nested_secret:", ""), becomes("    user: ", `"nested_secret:user": $`),
			becomes("    pin: ", `"nested_secret:pin": $`)), `line 5: "nested_secret:user": the key "nested_secret:user" of an ` +
			"encrypted value has a colon in it, which SOPS does not tell from a map in a map"},
		"clear, changed":             {"all", becomes("comment_unencrypted: ", "comment_unencrypted: in claer"), mac},
		"clear, removed":             {"all", becomes("comment_unencrypted: ", ""), mac},
		"clear, added":               {"all", becomes("comment_unencrypted: ", "comment_unencrypted: $\nx_unencrypted: 1"), mac},
		"a number in clear, changed": {"all", becomes("    number: ", "    number: 0x1E"), mac},
		"encrypted for clear": {"all", becomes("number: ", "number_unencrypted: $"),
			`line 16: "number_unencrypted": ` + hidden},
		"the time": {"all", becomes("    lastmodified: ", `    lastmodified: "2020-01-01T00:00:00Z"`), itsMAC},
		"a fraction of the time": {"all", becomes("    lastmodified: ", `    lastmodified: "2020-01-01T00:00:00.5Z"`),
			`lastmodified of SOPS is not a time as SOPS writes it: "2020-01-01T00:00:00.5Z"`},
		"no time":                  {"all", becomes("    lastmodified: ", ""), `lastmodified of SOPS is not a time as SOPS writes it: ""`},
		"no MAC":                   {"all", becomes("    mac: ", `    mac: ""`), "the MAC: " + form},
		"a value as MAC":           {"all", taken("    mac: ", "all.yaml", "pem: "), itsMAC},
		"another rule":             {"all", becomes("    unencrypted_suffix: ", "    encrypted_suffix: o"), hidden},
		"another kind of MAC":      {"all", becomes("    version: ", "    version: $\n    mac_only_encrypted: true"), mac},
		"the other kind of MAC":    {"onlyencrypted", becomes("    mac_only_encrypted: ", ""), mac},
		"another rule and MAC":     {"onlyencrypted", becomes("    encrypted_regex: ", "    encrypted_regex: token"), hidden},
		"only encrypted, removed":  {"onlyencrypted", becomes("api_secret: ", ""), mac},
		"only encrypted, in clear": {"onlyencrypted", becomes("api_secret: ", "api_secret: x"), inClear},
		"less comments":            {"encryptedcomment", becomes("# sops:here", "#"), hidden},
		"more comments":            {"encryptedcomment", becomes("open: ", "# sops:here\nopen: $"), `"open": ` + inClear},
	} {
		t.Run(name, func(t *testing.T) {
			lines := strings.Split(string(sopsFixture(t, c.file+".yaml")), "\n")
			refuseSOPS(t, strings.Join(c.edit(t, lines), "\n"), c.want)
		})
	}
}

// refuseSOPS fails where a file is opened, or refused with another error.
func refuseSOPS(t *testing.T, text, want string) {
	t.Helper()
	opened, err := openSOPS([]byte(text), sopsIdentity(t, "age.txt"))
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got error %v and %d bytes, want %q", err, len(opened), want)
	}
	if len(opened) > 0 {
		t.Errorf("it has %q beside the error", opened)
	}
}

// TestSOPSOnlyEncrypted: where the MAC is over encrypted values alone, those in clear may change. That is what the flag
// is for.
func TestSOPSOnlyEncrypted(t *testing.T) {
	text := strings.Replace(string(sopsFixture(t, "onlyencrypted.yaml")), "name: web", "name: other", 1)
	opened, err := openSOPS([]byte(text), sopsIdentity(t, "age.txt"))
	if err != nil || sopsLoad(t, opened).(map[string]any)["name"] != "other" {
		t.Errorf("%v: %s", err, opened)
	}
}

// TestSOPSTypeIsOpen: the type of a value is not authenticated. A value that is not of it is refused, and not told.
func TestSOPSTypeIsOpen(t *testing.T) {
	text := string(sopsFixture(t, "all.yaml"))
	for kind, want := range map[string]string{
		"int": "it is not of its type int", "float": "it is not of its type float", "bool": "it is not of its type bool",
		"time": "it is not of its type time", "other": `it has the unknown type "other"`,
		"comment": "a comment stands where a value belongs",
	} {
		lines := strings.Split(text, "\n")
		at := lineAt(t, lines, "    password: ")
		lines[at] = strings.Replace(lines[at], "type:str]", "type:"+kind+"]", 1)
		edited := strings.Join(lines, "\n")
		refuseSOPS(t, edited, want)
		if _, err := openSOPS([]byte(edited), sopsIdentity(t, "age.txt")); strings.Contains(fmt.Sprint(err), "p:a#s") {
			t.Errorf("the error tells the value: %v", err)
		}
	}
}

// TestSOPSMACType refuses a MAC that says it is a number.
func TestSOPSMACType(t *testing.T) {
	lines := strings.Split(string(sopsFixture(t, "all.yaml")), "\n")
	at := lineAt(t, lines, "    mac: ")
	lines[at] = strings.Replace(lines[at], "type:str]", "type:int]", 1)
	refuseSOPS(t, strings.Join(lines, "\n"), `the MAC: it is of type "int" and not a text`)
}

// TestSOPSCiphers refuses encrypted values of another form.
func TestSOPSCiphers(t *testing.T) {
	const iv, tag = ",iv:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", ",tag:AAAAAAAAAAAAAAAAAAAAAA=="
	for _, text := range []string{
		"ENC[AES256_GCM,", "ENC[AES256_GCM,]", "ENC[AES256_GCM,data:AA==" + iv + tag + ",type:str", "ENC[AES256_GCM,data:" + iv + tag + ",type:str]",
		"ENC[AES256_GCM,data:AA=" + iv + tag + ",type:str]", "ENC[AES256_GCM,data:AA==,iv:AAAA" + tag + ",type:str]",
		"ENC[AES256_GCM,data:AA==" + iv + ",tag:AAAA,type:str]", "ENC[AES256_GCM,data:AA==" + iv + tag + ",kind:str]",
		"ENC[AES256_GCM,data:AA==" + iv + tag + ",type:str,more:x]", "ENC[AES256_GCM,data:AA==" + iv + tag + ",type:str] ",
		"ENC[AES256_GCM,data:AB==" + iv + tag + ",type:str]",
	} {
		lines := becomes("number: ", "number: '"+text+"'")(t, strings.Split(string(sopsFixture(t, "all.yaml")), "\n"))
		refuseSOPS(t, strings.Join(lines, "\n"), `line 16: "number": it is not an encrypted value as SOPS writes it`)
	}
}

// TestSOPSShapes refuses what SOPS never writes, whatever is encrypted in it.
func TestSOPSShapes(t *testing.T) {
	const meta = "\nsops:\n  lastmodified: 2024-01-01T00:00:00Z\n  mac: x\n  version: 3.9.0\n  "
	for text, want := range map[string]string{
		"":                                       "it is not one YAML document",
		"a: {":                                   "it is not one YAML document",
		"a: 1" + meta + "\n---\nb: 2":            "it is not one YAML document",
		"- a":                                    "it is not a file of SOPS: it has no map at its top",
		"a: 1":                                   `it is not a file of SOPS: it has no map "sops"`,
		"a: 1\nsops: x":                          `it is not a file of SOPS: it has no map "sops"`,
		"a: 1" + meta + "a: &x 1\n":              "line 6: YAML anchors and aliases are not allowed in a file of SOPS",
		"a: &x 1\nb: *x" + meta:                  "line 1: YAML anchors and aliases are not allowed in a file of SOPS",
		"a: {b: 1, <<: {c: 1}}" + meta:           "line 1: the merge key << is not allowed in a file of SOPS",
		"a: !x 1" + meta:                         `line 1: the YAML tag "!x" is not allowed in a file of SOPS`,
		"a: !!set {x}" + meta:                    `line 1: the YAML tag "!!set" is not allowed in a file of SOPS`,
		"a: !!python/object 1" + meta:            `the YAML tag "!!python/object" is not allowed`,
		"a: 1\nb: {c: 1, \"c\": 2}" + meta:       `line 2: the key "c" stands twice in a map`,
		"a: 1" + meta + "mac: y":                 `line 6: the key "mac" stands twice in a map`,
		"sops: {}\na: 1" + meta:                  `the key "sops" stands twice in a map`,
		"1: a" + meta:                            "line 1: a key is not a text",
		"[a]: a" + meta:                          "line 1: a key is not a text",
		"null: a" + meta:                         "line 1: a key is not a text",
		strings.Repeat("k", 1025) + ": 1" + meta: "line 1: a key is longer than 1024 bytes",
		"a: " + strings.Repeat("[", 101) + strings.Repeat("]", 101) + meta: "exceeded max depth of 100",
		"a: " + strings.Repeat("x", maxSOPS):                               "it is larger than 1024 KiB",
		"a: 1\nsops: {version: 2.0.0}":                                     `it says it is of version "2.0.0" of SOPS: only 3 is supported`,
		"a: 1\nsops: {mac: x}":                                             `it says it is of version "" of SOPS: only 3 is supported`,
		"a: 1" + meta + "mac_only_encrypted: [x]":                          "mac_only_encrypted of SOPS is neither true nor false",
		"a: 1" + meta + "encrypted_suffix: x\n  unencrypted_suffix: y":     "it has more than one rule of SOPS for what is encrypted",
		"a: 1" + meta + "encrypted_regex: '('":                             "encrypted_regex of SOPS: error parsing regexp",
		"a: 1" + meta + "encrypted_regex: 'x{1000}'":                       "encrypted_regex of SOPS: the regular expression is too large",
		"a: 1" + meta + "encrypted_regex: '" + strings.Repeat("x", 1025):   "it is not one YAML document",
		"a: 1" + meta + "encrypted_regex: " + strings.Repeat("x", 1025):    "encrypted_regex of SOPS: it is longer than 1024 bytes",
		"a: 1" + meta + "age: x":                                           "line 6: age of SOPS is not a list of at most 256",
		"a: 1" + meta + "age: [" + strings.Repeat("{}, ", 257) + "]":       "line 6: age of SOPS is not a list of at most 256",
		"a: 1" + meta: "it is not encrypted for age keys, which alone are supported: it has no other keys either",
		"a: 1" + meta + "age: []\n  pgp: [{fp: x}]\n  kms: [{arn: x}]\n  hc_vault: []": "it is not encrypted for age keys," +
			" which alone are supported: it has kms, pgp",
		string(sopsFixture(t, "groups.yaml")): "it is not encrypted for age keys, which alone are supported: it has key_groups",
	} {
		t.Run(fmt.Sprintf("%.30q", text), func(t *testing.T) { refuseSOPS(t, text, want) })
	}
}

// TestSOPSCost: what a file may have at most is read in a short time.
func TestSOPSCost(t *testing.T) {
	meta := "\nsops:\n  lastmodified: 2024-01-01T00:00:00Z\n  mac: x\n  version: 3.9.0\n  unencrypted_regex: '" +
		strings.Repeat("(x?x+)+", 40) + "y'\n"
	deep := ""
	for i := range 90 {
		deep += strings.Repeat(" ", i) + strings.Repeat("x", 1000) + ":\n"
	}
	for i := range 4000 {
		deep += fmt.Sprintf("%90sy%d: ''\n", "", i)
	}
	start := time.Now()
	f, err := readSOPS([]byte(deep + meta))
	if err != nil {
		t.Fatal(err)
	}
	o, err := newSOPSOpening(make([]byte, 32), false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.walk(o); err != nil {
		t.Error(err)
	}
	if took := time.Since(start); took > patience.Stretch(20*time.Second) {
		t.Errorf("it took %v", took)
	}
}
