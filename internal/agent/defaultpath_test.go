package agent

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// paths lists the absolute paths in a value, by the fields that have them.
func paths(v reflect.Value, name string, into map[string]string) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			paths(v.Field(i), strings.TrimPrefix(name+"."+v.Type().Field(i).Name, "."), into)
		}
	case reflect.Slice:
		for i := range v.Len() {
			paths(v.Index(i), name, into)
		}
	case reflect.String:
		if filepath.IsAbs(v.String()) {
			into[name] = v.String()
		}
	}
}

// TestDefaultPaths: every path of a configuration that sets none is below the root. Those that are known are listed, so
// that none is lost.
func TestDefaultPaths(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	file := writeConfig(t, repositories+"datastore: {dir: ''}\npaths: {state: ''}\n", "")
	c, err := ReadConfig(file, root)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	paths(reflect.ValueOf(c), "", got)
	for name, path := range map[string]string{"Root": root, "file": file} {
		if got[name] != path {
			t.Errorf("%s is %q, want %q", name, got[name], path)
		}
		delete(got, name)
	}
	delete(got, "Repositories.URL") // which is set
	known := map[string]DefaultPath{"Paths.State": DefaultState, "Paths.HostVars": DefaultHostVars, "Datastore.Dir": DefaultDatastore}
	for name, path := range known {
		if want := root + string(path); got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	for name, path := range got {
		if !strings.HasPrefix(path, root+"/") {
			t.Errorf("%s is %s by default, which is not below the root: add it to fillPaths", name, path)
		}
	}
	if literal := Default(); literal.Paths.State != string(DefaultState) || literal.Datastore.Dir != string(DefaultDatastore) {
		t.Errorf("on the host itself: %+v, %s", literal.Paths, literal.Datastore.Dir)
	}
}

// TestBelow: a link in the root leads beneath it, and one that leads nowhere is an error, not a path of the machine.
func TestBelow(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for link, to := range map[string]string{"var": "/moved", "etc": "/etc"} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	if at, err := DefaultState.Below(root); at != filepath.Join(root, "moved/lib/pullet") || err != nil {
		t.Errorf("behind a link: %q, %v", at, err)
	}
	if at, err := DefaultConfig.Below(root); at != "" || err == nil {
		t.Errorf("in a loop: %q, %v", at, err)
	}
	if _, err := ReadConfig(filepath.Join(root, "pullet.yaml"), root); err == nil || !strings.Contains(err.Error(), "/etc/pullet/vars.d below --root "+root) {
		t.Errorf("a configuration with such a path: %v", err)
	}
}

// TestHostKeys: the keys of the host's SSH server are those below the root.
func TestHostKeys(t *testing.T) {
	t.Parallel()
	c, err := DefaultBelow(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if ids, err := c.identities(); len(ids) > 0 || err != nil {
		t.Errorf("%d keys of another host, %v", len(ids), err)
	}
	key := filepath.Join(c.Root, string(defaultEd25519Key))
	if err := os.MkdirAll(filepath.Dir(key), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(key, []byte("no key"), 0o622); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(key, 0o622); err != nil {
		t.Fatal(err)
	}
	if _, err := c.identities(); err == nil || !strings.Contains(err.Error(), key) {
		t.Errorf("one that others can write: %v, want a refusal of %s", err, key)
	}
}
