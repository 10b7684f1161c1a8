package puller

import (
	"io/fs"
	"os"
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
