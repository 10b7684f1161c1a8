// Package secrets knows who may read the encrypted files of a state repository.
//
// secrets.yaml gives each of them a rule: targets of hosts, and people. A Reader is a host that the inventory lists and
// a target matches, or a person; its keys stand in secrets.yaml too. A file is encrypted for the keys of all its
// readers. Nothing here decrypts: what a file is encrypted for stands in its header.
package secrets

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/pullet/pullet/internal/trust"
	"github.com/pullet/pullet/render"
)

// Folders are those whose encrypted files pullet reads.
var Folders = []string{"vars", "files"}

// Reader is a host or a person who may read a file.
type Reader struct {
	Name string
	Host bool
	Keys []trust.Recipient // none: it has no key below hosts
}

// Rules say who may read which files of a layer.
type Rules struct {
	Layer render.Layer
	repo  *render.Repository
	file  *render.SecretRules // nil: there is no secrets.yaml
	nodes []render.Node
	keys  map[string][]trust.Recipient // by section and name
}

// Read reads the rules of a layer. The error is a render.ErrorList with the mistakes of secrets.yaml.
func Read(repo *render.Repository, l render.Layer) (*Rules, error) {
	file, err := repo.SecretRules(l)
	if err != nil {
		return nil, err
	}
	inventory, err := repo.Inventory()
	if err != nil {
		return nil, err
	}
	r := &Rules{Layer: l, repo: repo, file: file}
	for _, name := range slices.Sorted(maps.Keys(inventory)) {
		r.nodes = append(r.nodes, inventory[name])
	}
	r.keys, err = keysOf(file)
	return r, err
}

// keysOf are the keys of hosts and people, by section and name.
func keysOf(file *render.SecretRules) (map[string][]trust.Recipient, error) {
	out := map[string][]trust.Recipient{}
	if file == nil {
		return out, nil
	}
	var mistakes render.ErrorList
	for section, names := range map[string]map[string]render.Strings{"hosts": file.Hosts, "people": file.People} {
		for name, keys := range names {
			for _, text := range keys {
				key, err := trust.ParseRecipient(text)
				if err != nil {
					mistakes = append(mistakes, file.ErrorAt(section, name, "%s: %v", name, err))
					continue
				}
				out[section+"/"+name] = append(out[section+"/"+name], key)
			}
		}
	}
	return out, mistakes.Err()
}

// NoRuleError says that no pattern covers a file.
type NoRuleError struct{ Path string }

func (e *NoRuleError) Error() string {
	return fmt.Sprintf(
		"nobody may read %s: no pattern in %s covers it; add one such as '%s/**': {targets: [role=db], people: [ada]}",
		e.Path,
		render.SecretsFile,
		path.Dir(e.Path),
	)
}

// Readers are the hosts and people that may read a file, by name; hosts first. The error is a *NoRuleError where there
// is no rule.
func (r *Rules) Readers(name string) ([]Reader, error) {
	rule, found := r.file.For(name)
	if !found {
		return nil, &NoRuleError{name}
	}
	var out []Reader
	for _, n := range r.nodes {
		if rule.Meant(n) {
			out = append(out, Reader{n.Name, true, r.keys["hosts/"+n.Name]})
		}
	}
	people := slices.Clone(rule.People)
	slices.Sort(people)
	for _, name := range slices.Compact(people) {
		out = append(out, Reader{name, false, r.keys["people/"+name]})
	}
	return out, nil
}

// Keys are the keys of readers, each once.
func Keys(readers []Reader) []trust.Recipient {
	var out []trust.Recipient
	for _, reader := range readers {
		for _, key := range reader.Keys {
			if !holds(out, key) {
				out = append(out, key)
			}
		}
	}
	return out
}

func holds(keys []trust.Recipient, key trust.Recipient) bool {
	return slices.ContainsFunc(keys, func(k trust.Recipient) bool { return k.Text == key.Text })
}

// Files are the encrypted files of the layer that pullet reads, sorted.
func (r *Rules) Files() ([]string, error) {
	var out []string
	for _, dir := range Folders {
		err := fs.WalkDir(r.Layer.FS, dir, func(p string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err == nil && d.Type().IsRegular() && render.IsSealed(p) {
				out = append(out, p)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(out)
	return out, nil
}

// CheckPath refuses the path of anything but an encrypted file that pullet reads.
func CheckPath(name string) error {
	dir, _, below := strings.Cut(name, "/")
	if !fs.ValidPath(name) || !below || !slices.Contains(Folders, dir) || !render.IsSealed(name) {
		return fmt.Errorf("%s is no encrypted file of the repository: such files are vars/NAME.yaml%[2]s and files/NAME%[2]s",
			name, render.SealedSuffix)
	}
	if dir == "vars" && !render.IsYAML(strings.TrimSuffix(name, render.SealedSuffix)) {
		return fmt.Errorf("%s: files of variables are named NAME.yaml%s", name, render.SealedSuffix)
	}
	return nil
}

// Former are the names of those that could read a file until now and cannot any more: by an earlier secrets.yaml, by
// the header of the file as it was, and by the keys that it is encrypted for from now on.
func Former(was []byte, name string, header trust.Readers, keys []trust.Recipient) ([]string, error) {
	file, err := render.ParseSecretRules(render.SecretsFile, was)
	if err != nil {
		return nil, err
	}
	known, err := keysOf(file)
	if err != nil {
		return nil, err
	}
	rule, _ := file.For(name)
	var out []string
	for at, theirs := range known {
		section, who, _ := strings.Cut(at, "/")
		for _, key := range theirs {
			has, sure := header.Has(key)
			named := section == "people" && slices.Contains(rule.People, who) || section == "hosts" && len(rule.Targets) > 0
			if has && (sure && key.IsSSH() || named) && !holds(keys, key) {
				out = append(out, who)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}
