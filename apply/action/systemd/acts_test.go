package systemd

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/pullet/pullet/apply"
)

// TestInstallSection: only the section is read, without its comments; lines go on, and keys may come again.
func TestInstallSection(t *testing.T) {
	h := &apply.Host{Root: t.TempDir()}
	text := "[Unit]\nWantedBy=before.target\n[Install]\n# WantedBy=hash.target\n;Alias=semicolon.service\nWantedBy=a.target b.target \\\n c.target\n" +
		"  WantedBy = d.target\nAlias=x.service\n[X-Other]\nWantedBy=after.target\n"
	if err := os.WriteFile(filepath.Join(h.Root, "x.service"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(install(h, "x.service")), "map[Alias:[x.service] WantedBy:[a.target b.target c.target d.target]]"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := install(h, "none.service"); len(got) != 0 {
		t.Errorf("%v", got)
	}
}
