package gitremote

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/skeema/knownhosts"
	"golang.org/x/sys/unix"
)

// readKnownHosts reads a known_hosts file. Like OpenSSH it skips lines that it cannot read: hosts that have nothing to
// do with pullet may have keys of a kind that is too old or too new. It returns the error of the first one. A @revoked
// line is never skipped.
func readKnownHosts(file string) (hosts *knownhosts.HostKeyDB, skipped, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, err
	}
	if hosts, err = parseKnownHosts(text); err == nil {
		return hosts, nil, nil
	}
	var readable []byte
	number := 0
	for line := range bytes.Lines(text) {
		number++
		_, err := parseKnownHosts(line)
		if err == nil {
			readable = append(readable, line...)
			continue
		}
		at := fmt.Errorf("%s:%d: %w", file, number, err)
		switch {
		case bytes.HasPrefix(bytes.TrimSpace(line), []byte("@revoked")):
			return nil, nil, at
		case skipped == nil:
			skipped = at
		}
	}
	hosts, err = parseKnownHosts(readable)
	return hosts, skipped, err
}

// parseKnownHosts parses the text of a known_hosts file, which the library reads from a file only.
func parseKnownHosts(text []byte) (*knownhosts.HostKeyDB, error) {
	fd, err := unix.MemfdCreate("known_hosts", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), fmt.Sprintf("/proc/self/fd/%d", fd))
	_, err = f.Write(text)
	var hosts *knownhosts.HostKeyDB
	if err == nil {
		hosts, err = knownhosts.NewDB(f.Name())
	}
	if err != nil { // of the library's text the place is one of the copy
		if _, cause, placed := strings.Cut(err.Error(), f.Name()+":1: "); placed {
			err = errors.New(cause)
		}
	}
	return hosts, errors.Join(err, f.Close())
}
