package main

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/pullet/pullet/internal/lazyregexp"
)

// starts checks that something starts pulls on this host: a unit of systemd that is enabled, or a line of a crontab.
// Without systemd nobody can say, because each init has its own ways: then there is no finding.
func starts(root string) []finding {
	if !booted(root) {
		return nil
	}
	if unit := enabledUnit(root); unit != "" {
		return []finding{{Check: "start", State: fine, What: unit + " is enabled"}}
	}
	file, unread := crontab(root)
	switch {
	case file != "":
		return []finding{{Check: "start", State: fine, What: "cron starts pulls: " + file}}
	case unread != nil:
		return nil
	}
	do := "systemctl enable --now pullet.timer"
	if !installed(root) {
		do = "install pullet's units (scripts/systemd), then: " + do
	}
	return []finding{
		{
			"start",
			warn,
			"nothing starts pullet on this host: neither pullet.timer nor pullet-agent.service is enabled, and no crontab " +
				"has pullet pull",
			do,
		},
	}
}

// booted reports that systemd runs the services of the host, as sd_booted(3) does.
func booted(root string) bool {
	_, err := os.Stat(filepath.Join(root, "run/systemd/system"))
	return err == nil
}

// unitDirs are where systemd reads units, and which of them it starts: systemd.unit(5).
func unitDirs() []string {
	return []string{
		"etc/systemd/system",
		"run/systemd/system",
		"usr/local/lib/systemd/system",
		"usr/lib/systemd/system",
		"lib/systemd/system",
	}
}

// Units that start no pulls: the fleet's datastore, and what watches over a new pullet.
const (
	datastoreUnit = "pullet-etcd.service"
	fallbackUnit  = "pullet-fallback.service"
	fallbackPath  = "pullet-fallback.path"
)

// enabledUnit is a unit of pullet's that starts pulls and that another one wants, such as timers.target.
func enabledUnit(root string) string {
	for _, unit := range wantedUnits(root, "pullet*") {
		switch ext := filepath.Ext(unit); {
		case unit == datastoreUnit, unit == fallbackUnit:
		case ext == ".timer", ext == ".service":
			return unit
		}
	}
	return ""
}

// wantedUnits are the units with a name like this that another one wants.
func wantedUnits(root, name string) (units []string) {
	for _, dir := range unitDirs() {
		for _, want := range []string{"*.wants", "*.requires"} {
			found, _ := filepath.Glob(filepath.Join(root, dir, want, name)) // the pattern is good
			for _, link := range found {
				units = append(units, filepath.Base(link))
			}
		}
	}
	return units
}

// installed reports that systemd knows pullet's timer.
func installed(root string) bool {
	for _, dir := range unitDirs() {
		if _, err := os.Stat(filepath.Join(root, dir, "pullet.timer")); err == nil {
			return true
		}
	}
	return false
}

// pullsLine is a line of a crontab, or of a script that cron runs, with pullet pull.
var pullsLine = lazyregexp.New(`^[^#]*\bpullet\b.*\bpull\b`)

// elsewhere is what a line names that acts only where systemd is not the init, as that of the packages does.
const elsewhere = "/run/systemd/system"

// crontab is the file that makes cron start pulls, and what kept from looking.
func crontab(root string) (file string, unread error) {
	for _, pattern := range []string{
		"etc/crontab", "etc/cron.d/*", "etc/cron.hourly/*", "etc/cron.daily/*", "var/spool/cron/*",
		"var/spool/cron/crontabs/*",
	} {
		found, _ := filepath.Glob(filepath.Join(root, pattern)) // the pattern is good
		for _, file := range found {
			pulls, err := startsPulls(file)
			if pulls {
				return "/" + strings.TrimPrefix(strings.TrimPrefix(file, root), "/"), nil
			}
			if err != nil {
				unread = err
			}
		}
	}
	return "", unread
}

// mostCrontab is how much of a file is looked at.
const mostCrontab = 1 << 20

// startsPulls looks for such a line in a file. What is no file has none: a pipe is not waited for.
func startsPulls(file string) (bool, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return false, err
	}
	defer f.Close() // nothing was written
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return false, err
	}
	lines := bufio.NewScanner(io.LimitReader(f, mostCrontab))
	lines.Buffer(nil, mostCrontab)
	for lines.Scan() {
		if pullsLine.Match(lines.Bytes()) && !bytes.Contains(lines.Bytes(), []byte(elsewhere)) {
			return true, nil
		}
	}
	return false, lines.Err()
}
