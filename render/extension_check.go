package render

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"net/url"
	"path"
	"strings"

	"github.com/pullet/pullet/internal/lazyregexp"
)

var (
	actionOfOwn = lazyregexp.New(`^[A-Za-z][A-Za-z0-9_-]*\.[A-Za-z][A-Za-z0-9_-]*$`)
	sha256Hex   = lazyregexp.New(`^sha256:[0-9a-f]{64}$`)
)

// check finds what the manifest says and cannot mean.
func (e *Extension) check(file extensionFile) ErrorList {
	var errs ErrorList
	fail := func(field, format string, args ...any) {
		errs = append(errs, e.badField(field, format, args...))
	}
	if file.Name != "" && !actionOfOwn.MatchString(file.Name) {
		fail(
			"name",
			"%q is not the name of an action: two words with a dot between them, such as motd.banner",
			file.Name,
		)
	}
	if file.Digest != "" && !sha256Hex.MatchString(file.Digest) {
		fail("digest", "expected sha256: and 64 hexadecimal digits, found %q", file.Digest)
	}
	errs = append(errs, e.checkSource(file)...)
	errs = append(errs, e.checkSignature(file)...)
	if len(file.Interpreter) > 0 && file.Interpreter[0] == "" {
		fail("interpreter", "the program is missing")
	}
	return errs
}

// checkSource finds what is wrong with where the executable is.
func (e *Extension) checkSource(file extensionFile) (errs ErrorList) {
	fail := func(field, format string, args ...any) {
		errs = append(errs, e.badField(field, format, args...))
	}
	full := path.Join("extensions", file.File)
	switch why := badAddress(file.URL); {
	case file.File == "" && file.URL == "" && !file.Datastore:
		errs = append(errs, e.ErrorAt(nil, `one of "file", "url" and "datastore" is missing: where the executable is`))
	case file.File != "" && file.URL != "":
		fail("url", "file and url exclude each other")
	case file.Datastore && (file.File != "" || file.URL != ""):
		fail("datastore", "file, url and datastore exclude each other")
	case file.File != "" && !strings.HasPrefix(full, "extensions/"):
		fail("file", "%q leads out of extensions/", file.File)
	case file.URL != "" && why != "":
		fail("url", "%s", why)
	}
	return errs
}

// badAddress is what is wrong with the address of an executable or a signature; "" is nothing.
func badAddress(text string) string {
	at, err := url.Parse(text)
	switch {
	case err != nil || at.Host == "" || at.Scheme != "https" && at.Scheme != "http":
		return "expected an address that begins with https:// or http://"
	case at.User != nil:
		return "a password does not belong into a repository: a digest or a signature is what protects the file"
	}
	return ""
}

// badField is a mistake at a field of the manifest.
func (e *Extension) badField(field, format string, args ...any) *Error {
	bad := e.ErrorAt([]string{field}, field+": "+format, args...)
	if field == "digest" {
		bad.Hint = e.digestHint()
	}
	return bad
}

// digestHint is how to print the digest; "" where nothing says of what.
func (e *Extension) digestHint() string {
	if e.File == "" && e.URL == "" && !e.Datastore {
		return ""
	}
	return "print the right one with: " + e.PrintDigest()
}

// Source is where the executable comes from.
func (e *Extension) Source() string {
	switch {
	case e.URL != "":
		return e.URL
	case e.Datastore:
		return "the executable of " + e.Name + " in the fleet's record"
	}
	return path.Join("extensions", e.File)
}

// PrintDigest is the command that prints the digest.
func (e *Extension) PrintDigest() string {
	switch {
	case e.URL != "":
		return "curl -fsSL " + e.URL + " | sha256sum"
	case e.Datastore:
		return "pullet extension list"
	}
	return "sha256sum " + e.Source()
}

// MaxExecutable is how large the executable of an extension may be.
const MaxExecutable = 64 << 20

// locateExecutable finds the file of an extension and holds it against its digest.
func (r *Repository) locateExecutable(e *Extension) ErrorList {
	name := e.Source()
	p, ok := r.locate(name)
	if !ok {
		bad := e.ErrorAt([]string{"file"}, "file: there is no %s in the repository", name)
		bad.Hint = r.unseenHint(name, DidYouMean(e.File, filesBelow(r.layers, "extensions")))
		return ErrorList{bad}
	}
	e.executable = p
	fail := func(field, format string, args ...any) ErrorList {
		return ErrorList{e.badField(field, format, args...)}
	}
	info, err := fs.Stat(p.layer.FS, p.path)
	if err == nil && info.Size() > MaxExecutable {
		return fail("file", "%s is larger than %d MiB", name, MaxExecutable>>20)
	}
	digest, err := fileDigest(p)
	switch {
	case err != nil:
		return fail("file", "%s: %v", name, plainFSError(err))
	case e.Digest != "" && digest != e.Digest:
		return fail("digest", "%s has sha256:%s, and the manifest wants sha256:%s", name, digest, e.Digest)
	}
	e.FileDigest = digest
	return nil
}

// fileDigest is the SHA-256 of a file, in hexadecimal digits.
func fileDigest(p place) (string, error) {
	f, err := p.layer.FS.Open(p.path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
