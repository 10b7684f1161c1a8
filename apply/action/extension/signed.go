package extension

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pullet/pullet/internal/lazyregexp"
	"github.com/pullet/pullet/internal/trust"
	"github.com/pullet/pullet/render"
)

// version is of an executable: up to four numbers. Those that are not written are 0.
type version [4]int

var versionText = lazyregexp.New(`^[0-9]{1,9}(\.[0-9]{1,9}){0,3}$`)

func parseVersion(text string) (v version, err error) {
	if !versionText.MatchString(text) {
		return v, fmt.Errorf(
			"%.60q is not a version: write up to four numbers with dots between them, such as 4 or 1.10.2",
			text,
		)
	}
	for i, number := range strings.Split(text, ".") {
		v[i], _ = strconv.Atoi(number) // at most nine digits
	}
	return v, nil
}

// signedText is what somebody signed about an executable: which action it is for, which version of it, and which file.
// All three are signed, so that whoever serves executables can put none in the place of another, or of a newer one.
type signedText struct {
	action  string
	written string // the version as it is written
	version version
	digest  string // 64 hexadecimal digits
}

var signedLine = lazyregexp.New(`^([A-Za-z0-9_.-]+) ([0-9.]+) sha256:([0-9a-f]{64})\n?$`)

// parseSigned reads a signed text. Its error is the end of a sentence about it.
func parseSigned(text []byte) (signedText, error) {
	m := signedLine.FindSubmatch(text)
	if m == nil {
		return signedText{}, fmt.Errorf(`does not say "ACTION VERSION sha256:DIGEST" in one line, but %.60q`, text)
	}
	t := signedText{action: string(m[1]), written: string(m[2]), digest: string(m[3])}
	var err error
	if t.version, err = parseVersion(t.written); err != nil {
		return signedText{}, fmt.Errorf("names no version: %w", err)
	}
	return t, nil
}

// suits is why a signed text is not for an extension; nil: it is. Its error is the end of a sentence about the text.
func (t signedText) suits(e *render.Extension) error {
	least, err := parseVersion(e.Version)
	switch {
	case err != nil:
		return err // Load refuses it before
	case t.action != e.Name:
		return fmt.Errorf("is for the action %q, and not for %q", t.action, e.Name)
	case slices.Compare(t.version[:], least[:]) < 0:
		return fmt.Errorf("is of version %s, and the manifest wants %s at least", t.written, e.Version)
	case e.Digest != "" && t.digest != e.Digest:
		return fmt.Errorf("names sha256:%s, and the manifest wants sha256:%s", t.digest, e.Digest)
	}
	return nil
}

// namedDigest is the digest that a signed text names for an extension, whoever signed it. Its error is the end of a
// sentence about the text.
func namedDigest(e *render.Extension, s render.Signed) (string, error) {
	if err := trust.CheckExtension(s.Signature); err != nil {
		return "", err
	}
	t, err := parseSigned(s.Text)
	if err != nil {
		return "", err
	}
	return t.digest, t.suits(e)
}

// wrongVersion refuses a manifest's version that cannot be compared.
func wrongVersion(e *render.Extension) render.ErrorList {
	if _, err := parseVersion(e.Version); e.Version != "" && err != nil {
		return render.ErrorList{e.ErrorAt([]string{"version"}, "version: %v", err)}
	}
	return nil
}

// signedMistakes are those of a manifest's signature that can be found without the keys of a host.
func signedMistakes(e *render.Extension) render.ErrorList {
	fail := func(format string, args ...any) render.ErrorList {
		return render.ErrorList{e.ErrorAt([]string{"signature"}, "signature: "+format, args...)}
	}
	if e.Signature == "" || e.SignedElsewhere() {
		return nil
	}
	text, _ := e.SignedSource()
	digest, err := namedDigest(e, e.Signed)
	switch {
	case err != nil:
		return fail("%s %v", text, err)
	case e.File != "" && digest != e.FileDigest:
		return fail("%s has sha256:%s, and %s names sha256:%s: sign it anew",
			e.Source(), e.FileDigest, text, digest)
	}
	return nil
}
