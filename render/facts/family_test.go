package facts

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pullet/pullet/render"
)

// TestFamily: what os-release says of real systems, and the family that their package names and paths are those of.
func TestFamily(t *testing.T) {
	for _, one := range []struct{ release, family, major string }{
		{"ID=debian\nVERSION_ID=\"12\"", "debian", "12"},
		{"ID=ubuntu\nID_LIKE=debian\nVERSION_ID=\"24.04\"", "debian", "24"},
		{"ID=pop\nID_LIKE=\"ubuntu debian\"\nVERSION_ID=\"22.04\"", "debian", "22"},
		{"ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\nVERSION_ID=\"9.4\"", "redhat", "9"},
		{"ID=fedora\nVERSION_ID=41", "redhat", "41"},
		{"ID=\"eurolinux\"\nID_LIKE=\"rhel fedora centos\"\nVERSION_ID=\"9.2\"", "redhat", "9"},
		{"ID=\"opensuse-leap\"\nID_LIKE=\"suse opensuse\"\nVERSION_ID=\"15.6\"", "suse", "15"},
		{"ID=\"sles\"\nID_LIKE=\"suse\"\nVERSION_ID=\"15.5\"", "suse", "15"},
		{"ID=arch", "arch", ""},
		{"ID=alpine\nVERSION_ID=3.20.1", "alpine", "3"},
		{"ID=cachyos\nID_LIKE=arch", "arch", ""},
		{"", "", ""},
	} {
		root := t.TempDir()
		if err := os.Mkdir(filepath.Join(root, "etc"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, "etc/os-release"), []byte(one.release), 0o644); err != nil {
			t.Fatal(err)
		}
		got := Gather(root)
		if got["osFamily"] != one.family || got["osMajor"] != one.major {
			t.Errorf("%q: family %v, major %v; want %q, %q", one.release, got["osFamily"], got["osMajor"], one.family, one.major)
		}
	}
}

// TestOver: facts of another system bring its family with them, also where a file names only the system.
func TestOver(t *testing.T) {
	got := Over(Sample("web1"), render.Facts{"os": "rocky", "osVersion": "9.4"})
	if got["osFamily"] != "redhat" || got["osMajor"] != "9" || got["arch"] != "amd64" {
		t.Errorf("over the sample: %v", got)
	}
	if got := Over(Sample("web1"), render.Facts{"os": "ours", "osFamily": "debian"}); got["osFamily"] != "debian" {
		t.Errorf("a family that was said: %v", got["osFamily"])
	}
}

// TestNameBelowARoot: the name of a host below a root is the line of /etc/hostname that is no comment.
func TestNameBelowARoot(t *testing.T) {
	for text, want := range map[string]string{"web1\n": "web1", "# ours\n\n web1 \n# more\n": "web1"} {
		root := t.TempDir()
		if err := os.MkdirAll(root+"/etc", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(root+"/etc/hostname", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if have := (&host{root: root}).name(); have != want {
			t.Errorf("%q: %q, want %q", text, have, want)
		}
	}
}
