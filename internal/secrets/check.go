package secrets

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/pullet/pullet/internal/trust"
	"github.com/pullet/pullet/render"
)

// Check finds what is wrong with the encrypted files of a layer, without any key: files that nobody may read, hosts
// without a key, hosts and people for whom a file is not encrypted, and keys for which it should no longer be.
func (r *Rules) Check() (render.ErrorList, error) {
	files, err := r.Files()
	if err != nil {
		return nil, err
	}
	var out render.ErrorList
	for _, name := range files {
		out = append(out, r.checkFile(name)...)
	}
	return out, nil
}

func (r *Rules) checkFile(name string) (out render.ErrorList) {
	say := func(severity render.Severity, hint, format string, args ...any) {
		out = append(out, &render.Error{
			Pos:      render.Position{File: r.repo.DisplayName(r.Layer, name)},
			Severity: severity, Message: fmt.Sprintf(format, args...), Hint: hint,
		})
	}
	rekey := "pullet secrets rekey " + name
	text, err := fs.ReadFile(r.Layer.FS, name)
	if err != nil {
		say(render.Mistake, "", "%v", err)
		return out
	}
	header, err := trust.ReadersOf(text)
	if err != nil {
		say(render.Mistake, "remove it, and write it anew: pullet secrets edit "+name, "%v", err)
		return out
	}
	readers, err := r.Readers(name)
	var none *NoRuleError
	if errors.As(err, &none) {
		say(render.Warning, "", "%v", err)
		return out
	}
	for _, reader := range readers {
		switch {
		case len(reader.Keys) == 0:
			out = append(out, r.NoKey(name, reader))
		case missing(header, reader):
			say(render.Mistake, rekey, "is not encrypted for %s, whom %s names as a reader", reader.Name, render.SecretsFile)
		}
	}
	if others := header.Others(Keys(readers)); others > 0 {
		say(
			render.Warning,
			rekey,
			"is encrypted for %s that %s does not name as readers",
			count(others, "key"),
			render.SecretsFile,
		)
	}
	return out
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// missing reports a reader with a key for which a file is surely not encrypted.
func missing(header trust.Readers, reader Reader) bool {
	for _, key := range reader.Keys {
		if has, sure := header.Has(key); !has && sure {
			return true
		}
	}
	return len(header) < len(reader.Keys)
}

// NoKey is the mistake of a reader without a key.
func (r *Rules) NoKey(file string, reader Reader) *render.Error {
	if !reader.Host {
		return r.file.ErrorAt("people", reader.Name, "%s may read %s and has no key", reader.Name, file)
	}
	e := r.file.ErrorAt("hosts", reader.Name, "the host %s may read %s and has no key below hosts", reader.Name, file)
	e.Hint = fmt.Sprintf("add %s: ssh-ed25519 ..., as ssh-keyscan -t ed25519 %[1]s prints it", reader.Name)
	return e
}
