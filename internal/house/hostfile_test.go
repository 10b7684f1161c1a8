package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// byPath are the functions that change a file by its name, which a user may have exchanged by then: apply/hostfile is
// for that.
var byPath = map[string][]string{
	"os": {"Chmod", "Chown", "Lchown", "Chtimes", "Create", "CreateTemp", "Link", "Mkdir", "MkdirAll", "MkdirTemp", "OpenFile", "OpenRoot",
		"Remove", "RemoveAll", "Rename", "Symlink", "Truncate", "WriteFile"},
	"unix": {"Chmod", "Chown", "Lchown", "Creat", "Link", "Mkdir", "Mkfifo", "Mknod", "Open", "Rename", "Rmdir", "Symlink", "Truncate", "Unlink",
		"Lsetxattr", "Setxattr", "Lremovexattr", "Removexattr"},
	"syscall":  {"Chmod", "Chown", "Lchown", "Creat", "Link", "Mkdir", "Mknod", "Open", "Rename", "Rmdir", "Symlink", "Truncate", "Unlink"},
	"renameio": {"NewPendingFile", "Symlink", "TempFile", "WriteFile"},
}

// mayByPath are the files that use them, and where: in directories that only root can change.
var mayByPath = map[string]string{
	"apply/orphan.go":                   "notes in the state directory",
	"apply/private.go":                  "a directory of its own with mode 0700, which it made",
	"apply/restore.go":                  "the index of kept files in the state directory",
	"apply/action/extension/fetch.go":   "the directory of fetched extensions in the state directory",
	"apply/action/extension/store.go":   "fetched extensions in the state directory",
	"apply/action/mount/mounted.go":     "the mount point that the same step made",
	"apply/action/mount/live.go":        "a missing mount point: mount(8) itself takes a path",
	"apply/action/pkg/apt_lists.go":     "/var/lib/apt/lists",
	"apply/action/account/ssh_files.go": "a home, whose owner is checked when it is open; what is in it is used through the open directory",
	"apply/action/system/sysctl.go":     "/proc/sys",
}

// TestFilesByDescriptor: nothing in apply changes a file by path, but what is listed.
func TestFilesByDescriptor(t *testing.T) {
	used := map[string]bool{}
	err := filepath.WalkDir("apply", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || ofTests(path) || strings.HasPrefix(path, "apply/hostfile/") {
			return err
		}
		files := token.NewFileSet()
		parsed, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			call, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			pkg, ok := call.X.(*ast.Ident)
			if !ok || pkg.Obj != nil || !slices.Contains(byPath[pkg.Name], call.Sel.Name) {
				return true
			}
			if used[path] = true; mayByPath[path] == "" {
				t.Errorf("%s: %s.%s changes a file by path: use apply/hostfile", files.Position(call.Pos()), pkg.Name, call.Sel.Name)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for path := range mayByPath {
		if !used[path] {
			t.Errorf("%s does not change files by path: take it off the list", path)
		}
	}
}

// TestOpenRoots: what os.OpenRoot opens is a directory by its path. Else it opens a pipe as well, and waits there for a
// writer.
func TestOpenRoots(t *testing.T) {
	found := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for line := range strings.Lines(string(text)) {
			if !strings.Contains(line, ".OpenRoot(") {
				continue
			}
			if found++; !strings.Contains(line, `+ "/.")`) && !strings.Contains(line, "+ onlyDirectory)") {
				t.Errorf(`%s: add "/." to the path: %s`, path, strings.TrimSpace(line))
			}
		}
		return err
	})
	if err != nil || found == 0 {
		t.Errorf("%d calls found, %v", found, err)
	}
}
