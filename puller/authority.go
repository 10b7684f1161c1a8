package puller

import (
	"os"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/pullet/pullet/internal/trust"
)

// maxKeyFile bounds a file of keys or rules.
const maxKeyFile = 4 << 20

// authority is who may sign, and change what, at a place in history.
type authority struct {
	keys  *trust.Keys
	rules *trust.Rules
}

// authorities reads them, each file once.
type authorities struct {
	trees  *trees
	policy Verify
	host   [2]trust.File                    // keys of the host: OpenPGP, SSH
	keys   map[[2]plumbing.Hash]*trust.Keys // by the ids of the files, see at
	rules  map[plumbing.Hash]*trust.Rules
}

func newAuthorities(t *trees, policy Verify) *authorities {
	return &authorities{
		trees:  t,
		policy: policy,
		keys:   map[[2]plumbing.Hash]*trust.Keys{},
		rules:  map[plumbing.Hash]*trust.Rules{},
	}
}

// files are the names of the files that say who may sign, and change what: OpenPGP, SSH, rules.
func (a *authorities) files() [3]string {
	return [3]string{a.policy.OpenPGP, a.policy.AllowedSigners, InRepository + trust.RulesFile}
}

// paths returns those of them that are in the repository.
func (a *authorities) paths() (paths []string) {
	for _, name := range a.files() {
		if path, within := strings.CutPrefix(name, InRepository); within {
			paths = append(paths, path)
		}
	}
	return paths
}

// readHost reads the keys of the host, and checks them.
func (a *authorities) readHost() (err error) {
	for i, name := range []string{a.policy.OpenPGP, a.policy.AllowedSigners} {
		if name == "" || strings.HasPrefix(name, InRepository) {
			continue
		}
		a.host[i].Name = name
		if a.host[i].Content, err = os.ReadFile(name); err != nil {
			return err
		}
	}
	if !a.policy.keysInRepository() {
		_, err = trust.ReadKeys(a.host[0], a.host[1])
	}
	return err
}

// at is who may sign the commits that come after one. The zero hash is the place before the first commit.
func (a *authorities) at(commit plumbing.Hash) (who authority, err error) {
	var ids [3]plumbing.Hash // zero: not there
	for i, name := range a.files() {
		path, within := strings.CutPrefix(name, InRepository)
		if !within || commit.IsZero() {
			continue
		}
		if ids[i], err = a.trees.fileAt(commit, path); err != nil {
			return who, err
		}
	}
	if who.keys, err = a.keysIn([2]plumbing.Hash(ids[:2])); err == nil {
		who.rules, err = a.rulesIn(ids[2])
	}
	return who, err
}

// keysIn reads keys from the host or from the repository.
func (a *authorities) keysIn(ids [2]plumbing.Hash) (*trust.Keys, error) {
	if known := a.keys[ids]; known != nil {
		return known, nil
	}
	files := a.host
	for i, name := range []string{a.policy.OpenPGP, a.policy.AllowedSigners} {
		if path, within := strings.CutPrefix(name, InRepository); within {
			text, err := a.content(ids[i])
			if err != nil {
				return nil, err
			}
			files[i] = trust.File{Name: path, Content: text}
		}
	}
	keys, err := trust.ReadKeys(files[0], files[1])
	if err != nil {
		return nil, contentError{text: err.Error()}
	}
	a.keys[ids] = keys
	return keys, nil
}

// rulesIn reads rules from the repository.
func (a *authorities) rulesIn(id plumbing.Hash) (*trust.Rules, error) {
	if known := a.rules[id]; known != nil {
		return known, nil
	}
	text, err := a.content(id)
	if err != nil {
		return nil, err
	}
	rules, err := trust.ReadRules(trust.File{Name: trust.RulesFile, Content: text})
	if err != nil {
		return nil, contentError{text: err.Error()}
	}
	a.rules[id] = rules
	return rules, nil
}

// content reads a file of a commit; one that is not there is empty.
func (a *authorities) content(id plumbing.Hash) ([]byte, error) {
	if id.IsZero() {
		return nil, nil
	}
	sizes, err := a.trees.store.sizes([]plumbing.Hash{id})
	if err == nil && sizes[0] > maxKeyFile {
		err = tooLarge(sizes[0], maxKeyFile, nil)
	}
	if err != nil {
		return nil, err
	}
	return a.trees.store.blob(id)
}

// fileAt finds a regular file in the directories of a commit; the zero hash is none.
func (t *trees) fileAt(commit plumbing.Hash, path string) (plumbing.Hash, error) {
	c, err := t.store.commit(commit)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	found, err := t.leaf(c.TreeHash, path)
	if err == nil && found != (leaf{}) && (!found.mode.IsFile() || found.mode == filemode.Symlink) {
		err = contentError{path, "not a regular file"}
	}
	return found.hash, err
}
