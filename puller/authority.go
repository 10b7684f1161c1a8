package puller

import (
	"fmt"
	"os"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

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
	store  *store
	policy Verify
	host   [2]trust.File                  // keys of the host: OpenPGP, SSH
	known  map[[3]plumbing.Hash]authority // by the ids of the files, see at
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
func (a *authorities) at(commit plumbing.Hash) (authority, error) {
	var files [3]plumbing.Hash // zero: not there
	for i, name := range []string{a.policy.OpenPGP, a.policy.AllowedSigners, InRepository + trust.RulesFile} {
		path, within := strings.CutPrefix(name, InRepository)
		if !within || commit.IsZero() {
			continue
		}
		var err error
		if files[i], err = a.store.fileAt(commit, path); err != nil {
			return authority{}, err
		}
	}
	known, ok := a.known[files]
	if ok {
		return known, nil
	}
	made, err := a.read(files)
	if err == nil {
		a.known[files] = made
	}
	return made, err
}

// read reads keys from the host or from a commit, and rules from the commit.
func (a *authorities) read(files [3]plumbing.Hash) (made authority, err error) {
	keys := a.host
	for i, name := range []string{a.policy.OpenPGP, a.policy.AllowedSigners} {
		if path, within := strings.CutPrefix(name, InRepository); within {
			keys[i].Name = path
			if keys[i].Content, err = a.content(files[i]); err != nil {
				return made, err
			}
		}
	}
	rules, err := a.content(files[2])
	if err != nil {
		return made, err
	}
	if made.keys, err = trust.ReadKeys(keys[0], keys[1]); err == nil {
		made.rules, err = trust.ReadRules(trust.File{Name: trust.RulesFile, Content: rules})
	}
	if err != nil {
		err = contentError{err.Error()}
	}
	return made, err
}

// content reads a file of a commit; one that is not there is empty.
func (a *authorities) content(id plumbing.Hash) ([]byte, error) {
	if id.IsZero() {
		return nil, nil
	}
	sizes, err := a.store.sizes([]plumbing.Hash{id})
	if err == nil && sizes[0] > maxKeyFile {
		err = tooLarge(sizes[0], maxKeyFile, nil)
	}
	if err != nil {
		return nil, err
	}
	return a.store.blob(id)
}

// fileAt finds a regular file in the directories of a commit; the zero hash is none.
func (s *store) fileAt(commit plumbing.Hash, path string) (plumbing.Hash, error) {
	c, err := s.commit(commit)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	at, names := c.TreeHash, strings.Split(path, "/")
	for i, name := range names {
		e, err := s.entry(at, name)
		last := i == len(names)-1
		switch {
		case err != nil:
			return plumbing.ZeroHash, err
		case last && e.Mode.IsFile() && e.Mode != filemode.Symlink:
			return e.Hash, nil
		case last && !e.Hash.IsZero():
			return plumbing.ZeroHash, contentError{fmt.Sprintf("path %q: not a regular file", path)}
		case e.Mode != filemode.Dir:
			return plumbing.ZeroHash, nil
		}
		at = e.Hash
	}
	return plumbing.ZeroHash, nil
}

// entry finds a name in a directory; the zero value is none.
func (s *store) entry(dir plumbing.Hash, name string) (found object.TreeEntry, err error) {
	entries, err := s.entries(dir)
	for _, e := range entries {
		if e.Name == name {
			return e, err
		}
	}
	return found, err
}
