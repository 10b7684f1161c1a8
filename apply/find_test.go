package apply

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestFindsPrograms: a program is the first executable file of its name in the PATH of its own environment, below the
// directory that it sees as its root. A directory that is not absolute does not count.
func TestFindsPrograms(t *testing.T) {
	root := t.TempDir()
	file := func(name string, mode os.FileMode) error {
		return errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755), os.WriteFile(filepath.Join(root, name), nil, mode))
	}
	err := errors.Join(file("a/plain", 0o644), file("b/plain", 0o755), file("a/first", 0o755), file("b/first", 0o755),
		file("b/group", 0o610), os.MkdirAll(filepath.Join(root, "a/dir"), 0o755), file("b/dir", 0o755), file("a/only", 0o644))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(root)
	for _, c := range []struct {
		name, inside, want string
		env                []string
	}{
		{"first", root, "/a/first", []string{"PATH=/a:/b"}},
		{"first", root, "/b/first", []string{"PATH=/b:/a"}},
		{"first", "", root + "/a/first", []string{"HOME=/", "PATH=" + root + "/a"}},
		{"first", root, "/b/first", []string{"PATH=/a", "PATH=/b"}},
		{"plain", root, "/b/plain", []string{"PATH=/a:/b"}},
		{"dir", root, "/b/dir", []string{"PATH=/a:/b"}},
		{"group", root, "/b/group", []string{"PATH=/none:/b"}},
		{"./first", root, "./first", nil},
		{"/none/x", root, "/none/x", []string{"PATH=/a"}},
		{"only", root, "", []string{"PATH=/a:/b"}},
		{"first", "", "", []string{"PATH=a::."}},
		{"first", root, "", nil},
	} {
		got, err := process{env: c.env, inside: c.inside}.find(c.name)
		var none *NoProgramError
		if got != c.want || errors.As(err, &none) != (c.want == "") || err != nil && none == nil {
			t.Errorf("%s with %q: %q %v, want %q", c.name, c.env, got, err, c.want)
		}
	}
}
