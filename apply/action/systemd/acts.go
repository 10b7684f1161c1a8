package systemd

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pullet/pullet/apply"
)

// act is one thing that is to be done with a unit.
type act struct {
	verb, words string // of systemctl, of the summary
}

// runs reports an act after which the unit runs with its files as they are now, or not at all.
func (t act) runs() bool {
	return slices.Contains([]string{"start", "stop", "restart", "reload"}, t.verb)
}

// acts are what is to be done, in their order. It fails where the unit can never be as wanted.
func (a *Ensure) acts(ctx context.Context, h *apply.Host, m units, u unit) ([]act, error) {
	var acts []act
	if a.Masked != nil && !*a.Masked && u.masked() {
		acts = append(acts, act{"unmask", "unmask"})
		u.load, u.file = "loaded", "disabled" // what its links say, enabling finds out
		if len(wantedBy(h, u.name)) > 0 {
			u.file = "enabled"
		}
	}
	for _, part := range []func(context.Context, *apply.Host, units, unit) (act, error){a.enabling, a.running, a.masking} {
		t, err := part(ctx, h, m, u)
		if err != nil {
			return nil, err
		}
		if t.verb != "" {
			acts = append(acts, t)
		}
	}
	return acts, nil
}

// enabling compares whether it starts with the host.
func (a *Ensure) enabling(ctx context.Context, h *apply.Host, m units, u unit) (act, error) {
	switch {
	case a.Enabled == nil:
		return act{}, nil
	case *a.Enabled && u.masked():
		return act{}, maskedUnit(h, u, "enabled")
	case u.file == "indirect":
		return a.enablingOthers(ctx, h, m, u)
	case *a.Enabled && u.known():
		if why := neverEnabled(u); why != "" {
			return act{}, fmt.Errorf("%s cannot be enabled: %s", u.name, why)
		}
	}
	on := u.file == "enabled" || u.file == "alias"
	switch {
	case *a.Enabled && !on:
		return act{"enable", "enable" + inBrackets(installedBy(h, u))}, nil
	case !*a.Enabled && (on || u.file == "enabled-runtime"):
		return act{"disable", "disable" + inBrackets(wantedBy(h, u.name))}, nil
	}
	return act{}, nil
}

// enablingOthers is for a unit that is enabled by enabling those that its Also= names, as a service by its socket.
func (a *Ensure) enablingOthers(ctx context.Context, h *apply.Host, m units, u unit) (act, error) {
	var differ []string
	for _, other := range install(h, u.fragment)["Also"] {
		state, err := m.fileState(ctx, other)
		if err != nil {
			return act{}, fmt.Errorf("%s, which enabling %s enables: %w", other, u.name, err)
		}
		if on := state == "enabled" || *a.Enabled && state == "static"; on != *a.Enabled {
			differ = append(differ, other)
		}
	}
	verb := map[bool]string{true: "enable", false: "disable"}[*a.Enabled]
	if len(differ) == 0 {
		return act{}, nil
	}
	return act{verb, verb + " " + strings.Join(differ, " and ")}, nil
}

// neverEnabled says why nothing can enable a unit.
func neverEnabled(u unit) string {
	switch u.file {
	case "static":
		return "it is static, which means that its unit file has no [Install] section; what needs it starts it, so leave " +
			"out enabled"
	case "generated":
		return "it is generated anew at each boot, from " + orElse(u.source, "what a generator found") + ": change that"
	case "transient", "":
		return "it has no unit file"
	case "bad":
		return fmt.Sprintf("its unit file is wrong: systemd-analyze verify %s", orElse(u.fragment, u.name))
	}
	return ""
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// running compares what runs. Below another root nothing does.
func (a *Ensure) running(ctx context.Context, h *apply.Host, _ units, u unit) (act, error) {
	if a.run == "" || !h.IsMachine() {
		return act{}, nil
	}
	verb := map[string]string{"started": "start", "stopped": "stop", "restarted": "restart", "reloaded": "reload"}[a.run]
	switch {
	case verb == "stop" && u.stopped():
		return act{}, nil
	case verb == "stop":
	case verb == "start" && (u.up() || u.own() || u.task() && ran(ctx, h, u)):
		return act{}, nil
	case u.masked():
		return act{}, maskedUnit(h, u, verb+"ed")
	}
	return act{verb, verb}, nil
}

// ran reports that a oneshot unit ended well since the host booted. systemd forgets units that nothing refers to; then
// the journal tells.
func ran(ctx context.Context, h *apply.Host, u unit) bool {
	if u.ended > 0 {
		return u.result == "success"
	}
	well, err := journalTells(ctx, h, u, "--boot")
	return well && err == nil
}

// The journal's ids of the messages that a unit started, or a oneshot ended well, and that it failed to.
const unitStarted, unitFailed = "39f53479d3a045ac8e11786248231fbf", "be02cf6855d2428ba40df7e9d022f03d"

// journalTells asks the journal whether a unit was started last, since a time, and did not fail. One that its
// conditions kept from starting has a message too, of no invocation.
func journalTells(ctx context.Context, h *apply.Host, u unit, since string) (bool, error) {
	out, err := h.Run(ctx, apply.Command{Args: []string{
		"journalctl", "--quiet", "--no-pager", "--output=json", "--output-fields=MESSAGE_ID,INVOCATION_ID", "--lines=1",
		since,
		"UNIT=" + u.name, "MESSAGE_ID=" + unitStarted, "MESSAGE_ID=" + unitFailed,
	}})
	switch {
	case err != nil:
		return false, err
	case out.ExitCode != 0:
		return false, fmt.Errorf("journalctl: %s", apply.LastLines(out))
	case strings.TrimSpace(out.StdOut) == "":
		return false, nil
	}
	var last struct {
		Message    string `json:"MESSAGE_ID"`
		Invocation string `json:"INVOCATION_ID"`
	}
	err = json.Unmarshal([]byte(out.StdOut), &last)
	return last.Message == unitStarted && last.Invocation != "", err
}

// masking compares whether it is masked. A mask lies where people put unit files, and does not replace one.
func (a *Ensure) masking(_ context.Context, h *apply.Host, _ units, u unit) (act, error) {
	if a.Masked == nil || !*a.Masked || u.file == "masked" {
		return act{}, nil
	}
	own := path.Join(unitDirs[0], u.name)
	at, err := h.Path(own)
	if err != nil {
		return act{}, err
	}
	if info, err := os.Lstat(at); err == nil && info.Mode()&fs.ModeSymlink == 0 {
		return act{}, fmt.Errorf(
			"%s cannot be masked: its unit file is %s, where the mask would be; move it to %s",
			u.name,
			own,
			unitDirs[2],
		)
	}
	return act{"mask", "mask"}, nil
}

// maskedUnit is the error for a masked unit, with the file that masks it.
func maskedUnit(h *apply.Host, u unit, wanted string) error {
	return fmt.Errorf(
		"%s is masked%s and cannot be %s: add masked: false, or leave it alone",
		u.name,
		maskedBy(h, u.name),
		wanted,
	)
}

// maskedBy names what masks a unit; nothing where that is not found.
func maskedBy(h *apply.Host, name string) string {
	for _, dir := range unitDirs {
		at, err := h.Path(path.Join(dir, name))
		if err != nil {
			continue
		}
		if target, err := os.Readlink(at); err == nil && target == "/dev/null" {
			return " by " + path.Join(dir, name) + " -> /dev/null"
		}
	}
	return ""
}

// install is the [Install] section of a unit file.
func install(h *apply.Host, fragment string) map[string][]string {
	out := map[string][]string{}
	at, err := h.Resolve(path.Join("/", fragment))
	if err != nil {
		return out
	}
	text, err := os.ReadFile(at) // without one there is nothing to tell
	if err != nil {
		return out
	}
	here := false
	for line := range strings.Lines(strings.ReplaceAll(string(text), "\\\n", " ")) {
		line = strings.TrimSpace(line)
		key, value, _ := strings.Cut(line, "=")
		switch {
		case strings.HasPrefix(line, "["):
			here = line == "[Install]"
		case here && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, ";"):
			key = strings.TrimSpace(key)
			out[key] = append(out[key], strings.Fields(value)...)
		}
	}
	return out
}

// installedBy are the units that will want the unit when it is enabled, and the names that it will get.
func installedBy(h *apply.Host, u unit) []string {
	section := install(h, u.fragment)
	return slices.Concat(section["WantedBy"], section["RequiredBy"], section["UpheldBy"], section["Alias"])
}

// wantedBy are the units that want one because it is enabled.
func wantedBy(h *apply.Host, name string) []string {
	var out []string
	for _, dir := range unitDirs[:2] {
		at, err := h.Resolve(dir)
		if err != nil {
			continue
		}
		for _, kind := range []string{"wants", "requires", "upholds"} {
			found, _ := filepath.Glob(
				filepath.Join(at, "*."+kind, name),
			) // the pattern is right: units have no such characters
			for _, link := range found {
				out = append(out, strings.TrimSuffix(filepath.Base(filepath.Dir(link)), "."+kind))
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func inBrackets(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return " (" + strings.Join(names, ", ") + ")"
}
