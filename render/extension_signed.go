package render

import (
	"io"
	"net/url"
	"path"
	"strings"
)

// MaxSigned bounds a signed text of an extension, and its signature, in bytes.
const MaxSigned = 64 << 10

// signatureSuffix is what ssh-keygen adds to the name of a file for the name of its signature.
const signatureSuffix = ".sig"

// SignedElsewhere reports a signature that hosts fetch.
func (e *Extension) SignedElsewhere() bool { return strings.Contains(e.Signature, "://") }

// SignedSource is where the signed text and its signature are: files of the repository, or addresses. The text is where
// the signature is, under the name without .sig.
func (e *Extension) SignedSource() (text, signature string) {
	if !e.SignedElsewhere() {
		signature = path.Join("extensions", e.Signature)
		return strings.TrimSuffix(signature, signatureSuffix), signature
	}
	at, err := url.Parse(e.Signature)
	if err != nil {
		return "", e.Signature // check refuses it
	}
	at.Path, at.RawPath = strings.TrimSuffix(at.Path, signatureSuffix), strings.TrimSuffix(at.RawPath, signatureSuffix)
	return at.String(), e.Signature
}

// checkSignature finds what the manifest says of a signature and cannot mean.
func (e *Extension) checkSignature(file extensionFile) (errs ErrorList) {
	fail := func(field, format string, args ...any) {
		errs = append(errs, e.badField(field, format, args...))
	}
	switch {
	case file.Digest == "" && file.Signature == "":
		bad := e.ErrorAt(nil, `one of "digest" and "signature" is missing: which executable is meant`)
		bad.Hint = e.digestHint()
		errs = append(errs, bad)
	case file.Signature == "" && file.Version != "":
		fail("version", `it goes with "signature": a digest is one version already`)
	case file.Signature != "" && file.Version == "":
		bad := e.ErrorAt([]string{"signature"}, `"version" is missing: the least one that hosts take, such as 1`)
		errs = append(errs, bad)
	}
	if file.Signature == "" {
		return errs
	}
	text, signature := e.SignedSource()
	switch why := badAddress(file.Signature); {
	case e.SignedElsewhere() && why != "":
		fail("signature", "%s", why)
	case text == "", len(text) == len(signature), strings.HasSuffix(text, "/"):
		fail("signature", "%q does not end with NAME.sig: the text that is signed is in NAME, beside it", file.Signature)
	case !e.SignedElsewhere() && !strings.HasPrefix(signature, "extensions/"):
		fail("signature", "%q leads out of extensions/", file.Signature)
	}
	return errs
}

// readSigned reads the signed text and the signature that stand in the repository.
func (r *Repository) readSigned(e *Extension) ErrorList {
	text, signature := e.SignedSource()
	for _, f := range []struct {
		name, hint string
		into       *[]byte
	}{
		{text, "write into it, in one line: " + e.Name + " " + e.Version + " sha256:DIGEST", &e.Signed.Text},
		{signature, "make it with: ssh-keygen -Y sign -n pullet-extension -f KEY " + text, &e.Signed.Signature},
	} {
		p, ok := r.locate(f.name)
		if !ok {
			bad := e.badField("signature", "there is no %s in the repository", f.name)
			bad.Hint = r.unseenHint(f.name, f.hint)
			return ErrorList{bad}
		}
		content, err := readAtMost(p, MaxSigned)
		if err != nil {
			return ErrorList{e.badField("signature", "%s: %v", f.name, plainFSError(err))}
		}
		*f.into = content
	}
	return nil
}

// readAtMost reads so much of a file, and one byte more of a larger one.
func readAtMost(p place, most int64) ([]byte, error) {
	f, err := p.layer.FS.Open(p.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most+1))
}
