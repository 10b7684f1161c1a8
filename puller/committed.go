package puller

import (
	"errors"
	"io/fs"

	"github.com/go-git/go-git/v5"
)

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
