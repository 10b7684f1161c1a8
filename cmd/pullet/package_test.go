package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pullet/pullet/internal/tier"
)

// TestPackages: a commit gives the same packages again, whatever the machine looks like. The program in them says their
// version, their list of modules says nothing of when and where, and lintian finds nothing that has no reason.
func TestPackages(t *testing.T) {
	tier.Long(t, "builds packages")
	first, second := t.TempDir(), t.TempDir()
	inDir(t, second, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", "release")
	buildPackages(t, first, "022", "TZ=UTC", "LANG=C")
	buildPackages(t, second, "077", "TZ=Asia/Tokyo", "LANG=de_DE.UTF-8", "GOFLAGS=-buildvcs=false", "GOAMD64=v3", "CGO_ENABLED=1")
	sums := readPage(t, filepath.Join(first, "SHA256SUMS"))
	if again := readPage(t, filepath.Join(second, "SHA256SUMS")); sums != again {
		t.Errorf("the bytes differ:\n%s\n%s", sums, again)
	}
	if n := strings.Count(sums, "\n"); n != 4 {
		t.Errorf("%d files have a checksum:\n%s", n, sums)
	}
	checkSignature(t, second)
	inDir(t, first, "sha256sum", "--check", "--strict", "SHA256SUMS")
	inDir(t, first, "tar", "-xzf", "pullet_1.2.3_linux_amd64.tar.gz", "--strip-components=1")
	if _, err := os.Stat(filepath.Join(first, "share/man/man1/pullet-rollout-start.1.gz")); err != nil {
		t.Error(err)
	}
	stamped := inDir(t, first, "go", "version", "-m", "bin/pullet")
	if !strings.Contains(stamped, "\tv1.2.3\t") || !strings.Contains(stamped, "GOAMD64=v1") {
		t.Errorf("the program says of itself: %s", stamped)
	}
	checkModules(t, filepath.Join(first, "pullet_1.2.3_linux_amd64.cdx.json"))
	inDir(t, first, "lintian", "--allow-root", "--fail-on", "error,warning", "pullet_1.2.3_amd64.deb")
}

// checkSignature verifies the checksums as docs/packages.md says. Other checksums, and another key, are refused.
func checkSignature(t *testing.T, dir string) {
	t.Helper()
	const verify = `echo "release $(cat "$1.pub")" >signers && ssh-keygen -Y verify -f signers -I release -n file -s SHA256SUMS.sig <"$2"`
	inDir(t, dir, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "other")
	inDir(t, dir, "sh", "-c", "sed s/0/1/ SHA256SUMS >changed")
	for _, try := range []struct {
		key, sums string
		good      bool
	}{{"release", "SHA256SUMS", true}, {"release", "changed", false}, {"other", "SHA256SUMS", false}} {
		cmd := exec.Command("sh", "-c", verify, "sh", try.key, try.sums)
		cmd.Dir = dir
		if text, err := cmd.CombinedOutput(); (err == nil) != try.good {
			t.Errorf("%s by %s: %v\n%s", try.sums, try.key, err, text)
		}
	}
}

// buildPackages runs scripts/package for one processor. Where there is a key named release beside them, it signs.
func buildPackages(t *testing.T, out, umask string, environment ...string) {
	t.Helper()
	const script = `umask "$1" && [ ! -e "$2/release" ] || set -- "$1" "$2" --sign "$2/release"
		out=$2 && shift 2 && exec ../../scripts/package --arch amd64 --version 1.2.3 --out "$out" "$@"`
	cmd := exec.Command("sh", "-c", script, "sh", umask, out)
	cmd.Env = append(append(os.Environ(), "TMPDIR="+t.TempDir()), environment...)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("scripts/package: %v\n%s", err, text)
	}
}

func inDir(t *testing.T, dir string, command ...string) string {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = dir
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", strings.Join(command, " "), err, text)
	}
	return string(text)
}

// checkModules looks into a list of modules.
func checkModules(t *testing.T, file string) {
	t.Helper()
	var list struct {
		SerialNumber string
		Metadata     struct {
			Timestamp string
			Component struct{ Name, Version string }
		}
		Components []struct{ Name, Version string }
	}
	text := readPage(t, file)
	if err := json.NewDecoder(bytes.NewReader([]byte(text))).Decode(&list); err != nil {
		t.Fatal(err)
	}
	has := map[string]bool{}
	for _, c := range list.Components {
		has[c.Name] = c.Version != ""
	}
	if !has["go.etcd.io/etcd/server/v3"] || !has["std"] || list.Metadata.Component.Version != "v1.2.3" {
		t.Errorf("modules are missing: %v of %v", has, list.Metadata.Component)
	}
	if list.SerialNumber != "" || list.Metadata.Timestamp != "" {
		t.Errorf("it differs each time: %q %q", list.SerialNumber, list.Metadata.Timestamp)
	}
}

// TestPackageUsage: what is typed wrong is said, before anything is built.
func TestPackageUsage(t *testing.T) {
	for args, want := range map[string]string{
		"--help":              "scripts/package [--arch amd64,arm64] [--version V] [--out DIR]",
		"--arch":              "scripts/package [--arch",
		"nonsense":            "scripts/package [--arch",
		"--sign nothere":      "scripts/package: --sign: the file of the key is missing",
		"--sign ../../go.mod": "go.mod': not an SSH key",
		"--arch mips":         "scripts/package: --arch 'mips': use amd64, arm64 or both",
		"--version 1.2":       "scripts/package: --version '1.2': use a semantic version such as 1.2.0 or 1.2.0-rc1",
		"--version v1.2.0":    "scripts/package: --version 'v1.2.0': use a semantic version",
		"--version 2.0.0":     "scripts/package: --version '2.0.0': use a semantic version",
	} {
		cmd := exec.Command("../../scripts/package", append(strings.Fields(args), "--out", t.TempDir())...)
		text, err := cmd.CombinedOutput()
		if (err == nil) != (args == "--help") || !strings.Contains(string(text), want) {
			t.Errorf("%s: %v\n%s", args, err, text)
		}
	}
}
