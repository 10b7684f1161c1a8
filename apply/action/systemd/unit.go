package systemd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/lazyregexp"
	"github.com/pullet/pullet/render"
)

// units is a way to systemd's units: over its bus, by systemctl, or in their files where systemd does not run.
type units interface {
	// show are properties of a unit by their names. One that is not known has the LoadState not-found.
	show(ctx context.Context, name string) (map[string]string, error)
	// fileState is the state of a unit's file in the words of systemctl is-enabled: enabled, static, masked; "" where
	// there is none.
	fileState(ctx context.Context, name string) (string, error)
	// files are the names of all unit files.
	files(ctx context.Context) ([]string, error)
	// manage carries out what waits for no process: enable, disable, mask, unmask, daemon-reload, reset-failed. It
	// returns what it did to links, a line each. At runtime means until the next boot.
	manage(ctx context.Context, verb, name string, runtime bool) (string, error)
	// job starts, stops, restarts or reloads a unit and waits for it. The result is systemd's word: done, failed,
	// dependency.
	job(ctx context.Context, verb, name string) (result string, err error)
	close()
}

// openUnits takes the best way there is.
func openUnits(ctx context.Context, h *apply.Host) units {
	ctl := systemctl{h}
	if !systemdRuns(h) {
		return offline{ctl}
	}
	bus := &systemBus{systemctl: ctl}
	if bus.connect(ctx) != nil {
		return ctl
	}
	return bus
}

// systemdRuns reports that the host is run by systemd, and that this process sees it as systemd does: in a chroot of a
// running host the services would be those of the host around it.
func systemdRuns(h *apply.Host) bool {
	if info, err := os.Stat("/run/systemd/system"); !h.IsMachine() || err != nil || !info.IsDir() {
		return false
	}
	own, err := os.Stat("/")
	init, initErr := os.Stat("/proc/1/root")
	return err != nil || initErr != nil || os.SameFile(own, init) // unknown to who may not look there
}

// unitDirs are where units lie that people and packages bring, the strongest first.
var unitDirs = []string{
	"/etc/systemd/system", "/run/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system",
	"/lib/systemd/system",
}

var unitTypes = []string{
	"service", "socket", "timer", "path", "target", "mount", "automount", "swap", "slice", "scope", "device",
}

var unitNameForm = lazyregexp.New(`^[A-Za-z0-9:_.\\-]+(@[A-Za-z0-9:_.\\@-]*)?\.[a-z]+$`)

// unitName is the full name of a unit.
func unitName(name string) (string, error) {
	if !slices.Contains(unitTypes, strings.TrimPrefix(path.Ext(name), ".")) {
		name += ".service"
	}
	if !unitNameForm.MatchString(name) || len(name) > 255 {
		return "", fmt.Errorf(
			"%q is not the name of a unit: write it as systemctl does, such as nginx, backup.timer or app@one",
			name,
		)
	}
	return name, nil
}

// unitTemplate is the template that a unit is an instance of: app@.service for app@one.service, and "" for others.
func unitTemplate(name string) string {
	prefix, _, found := strings.Cut(name, "@")
	if !found {
		return ""
	}
	return prefix + "@" + path.Ext(name)
}

// unitProperties are what is read of a unit.
var unitProperties = []string{
	"Id", "LoadState", "ActiveState", "SubState", "Result", "Type", "RemainAfterExit", "FragmentPath", "SourcePath",
	"NeedDaemonReload",
	"CanReload", "InvocationID", "NRestarts", "ExecMainCode", "ExecMainStatus", "ExecMainExitTimestampMonotonic",
	"ConditionResult",
	"ConditionTimestampMonotonic", "Job", "DropInPaths", "Conflicts", "ConflictedBy", "RequiredBy", "RequisiteOf",
	"BoundBy", "ConsistsOf",
}

// unit is what is known of one.
type unit struct {
	name                     string // its own, also when it was asked for by an alias
	load, active, sub, file  string // systemd's words; file is that of systemctl is-enabled
	result, kind, invocation string
	fragment, source         string   // the unit file, and what that was made from
	stale                    bool     // its file changed since systemd read it
	dropIns                  []string // the files that change it, as systemd read them
	canReload, remains       bool     // remains: a oneshot that stays active when it has ended
	unconditional            bool     // no condition kept it from starting
	busy                     bool     // it has a job
	code, status             int      // how the main process ended
	ended, restarts          int
	excludes, stopsWith      []string // the units that stop when this one starts, and those that stop when it stops
}

// readUnit reads a unit.
func readUnit(ctx context.Context, m units, name string) (unit, error) {
	if unitTemplate(name) == name { // one without an instance has a file and nothing else
		state, err := m.fileState(ctx, name)
		return unit{
			name: name,
			load: map[bool]string{true: "not-found", false: "loaded"}[state == ""],
			file: state,
		}, err
	}
	p, err := m.show(ctx, name)
	if err != nil {
		return unit{}, err
	}
	number := func(key string) int { n, _ := strconv.Atoi(p[key]); return n } // absent for units that are no services
	u := unit{
		name: name, load: p["LoadState"], active: p["ActiveState"], sub: p["SubState"], result: p["Result"], kind: p["Type"],
		invocation: p["InvocationID"], fragment: p["FragmentPath"], source: p["SourcePath"],
		stale: p["NeedDaemonReload"] == "yes", canReload: p["CanReload"] == "yes", remains: p["RemainAfterExit"] == "yes",
		unconditional: p["ConditionResult"] != "no" || number("ConditionTimestampMonotonic") == 0, // 0: not asked yet
		dropIns:       strings.Fields(p["DropInPaths"]),
		busy:          p["Job"] != "" && p["Job"] != "0",
		code:          number("ExecMainCode"), status: number("ExecMainStatus"),
		ended: number("ExecMainExitTimestampMonotonic"), restarts: number("NRestarts"),
	}
	for _, key := range []string{"Conflicts", "ConflictedBy"} {
		u.excludes = append(u.excludes, strings.Fields(p[key])...)
	}
	for _, key := range []string{"RequiredBy", "RequisiteOf", "BoundBy", "ConsistsOf"} {
		u.stopsWith = append(u.stopsWith, strings.Fields(p[key])...)
	}
	if u.file, err = m.fileState(ctx, name); err != nil {
		return unit{}, err
	}
	if u.file == "alias" && p["Id"] != "" {
		u.name = p["Id"]
		u.file, err = m.fileState(ctx, u.name)
	}
	return u, err
}

func (u unit) known() bool { return u.load != "not-found" }

func (u unit) masked() bool { return strings.HasPrefix(u.file, "masked") || u.load == "masked" }

func (u unit) up() bool {
	return slices.Contains([]string{"active", "reloading", "refreshing"}, u.active)
}

func (u unit) stopped() bool { return u.active == "inactive" || u.active == "failed" || u.active == "" }

// task reports a unit whose work ends: when it has ended, it is down and as it should be.
func (u unit) task() bool { return u.kind == "oneshot" && !u.remains && u.active == "inactive" }

// word is the unit's own word for the State of a result.
func (u unit) word() string {
	switch {
	case !u.known():
		return u.load
	case u.sub == "": // systemd does not run
		return u.file
	}
	return u.sub
}

// unknownUnit is the error for a unit that is not there, with the name that was most likely meant.
func unknownUnit(ctx context.Context, m units, name string) error {
	files, err := m.files(ctx)
	if err != nil {
		return fmt.Errorf("there is no unit %s on this host, and its unit files cannot be listed: %w", name, err)
	}
	short := func(s string) string { return strings.TrimSuffix(s, ".service") }
	for i := range files {
		files[i] = short(files[i])
	}
	wanted, after := short(name), ""
	if t := unitTemplate(name); t != "" {
		wanted = short(t)
		after = strings.TrimSuffix(strings.TrimPrefix(name, strings.TrimSuffix(t, path.Ext(t))), path.Ext(name))
	}
	if near := render.Nearest(wanted, files); near != "" {
		return fmt.Errorf("there is no unit %s on this host (did you mean %q?)", name, near+after)
	}
	return fmt.Errorf(
		"there is no unit %s on this host: install what brings it in a step before this one; systemctl list-unit-files "+
			"lists what there is",
		name,
	)
}

// errNotPermitted is what systemd answers to a user who may not do it.
var errNotPermitted = errors.New("systemd does not permit it to the user that pullet runs as: run pullet as root")
