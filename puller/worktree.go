package puller

import (
	"errors"
	"io/fs"
	"os"

	"github.com/go-git/go-git/v5"
)

// WorkTree is a state repository as it stands in a directory, committed or not. A link that leads out of the directory
// is an error, as it is in a commit: a repository that somebody else wrote must not show what else is on the disk.
func WorkTree(dir string) (fs.FS, error) {
	root, err := os.OpenRoot(dir + "/.") // the garbage collector closes it
	if err != nil {
		return nil, err
	}
	return root.FS(), nil
}

// Committed is a file of the directory's last commit; fs.ErrNotExist where there is no commit, or no such file in it.
func Committed(dir, name string) ([]byte, error) {
	repo, err := git.PlainOpenWithOptions(dir, &git.PlainOpenOptions{DetectDotGit: true})
	if errors.Is(err, git.ErrRepositoryNotExists) {
		return nil, fs.ErrNotExist
	}
	if err != nil {
		return nil, err
	}
	head, err := repo.Head()
	if err != nil {
		return nil, fs.ErrNotExist
	}
	commit, err := repo.CommitObject(head.Hash())
	if err != nil {
		return nil, err
	}
	file, err := commit.File(name)
	if err != nil {
		return nil, fs.ErrNotExist
	}
	text, err := file.Contents()
	return []byte(text), err
}
