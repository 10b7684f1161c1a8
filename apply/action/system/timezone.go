package system

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/place"
	"github.com/pullet/pullet/apply/hostfile"
	"github.com/pullet/pullet/render"
)

// Timezone is the host's time zone: /etc/localtime is a link to the zone's file, and /etc/timezone names it where there
// is such a file, as on Debian. The zone must be known to the host (package tzdata). Programs that run already keep the
// old zone until they start again. Whether the hardware clock runs in UTC is not looked at, and not changed.
//
// Example:
//
//	steps:
//	  - name: time zone
//	    action: system.timezone
//	    parameters: {name: Europe/Berlin}
type Timezone struct {
	Name string `yaml:"name,required"` // of the zone: Europe/Berlin, UTC
}

// Bind checks that the name can be one.
func (a *Timezone) Bind(apply.Binding) error {
	if !regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$`).MatchString(a.Name) {
		return apply.BadParam("name", "%q is not a time zone: write one such as Europe/Berlin or UTC", a.Name)
	}
	return nil
}

// Check compares the link and the file. Whether the zone exists is asked when it is set: an earlier step may install
// it.
func (a *Timezone) Check(_ context.Context, h *apply.Host) (apply.Change, error) {
	var parts []string
	have, err := a.link(h)
	if err != nil {
		return apply.Change{}, err
	}
	if have != a.Name {
		parts = append(parts, have+" -> "+a.Name)
	}
	file, err := place.ReadText(h, timezonePath)
	if err != nil {
		return apply.Change{}, err
	}
	diff := ""
	if file.There && strings.TrimSpace(file.Text) != a.Name {
		parts, diff = append(parts, timezonePath), file.Diff(a.Name+"\n")
	}
	return apply.Change{Summary: strings.Join(parts, ", "), Diff: diff}, nil
}

// link is the zone that /etc/localtime names, or what stands there instead.
func (a *Timezone) link(h *apply.Host) (string, error) {
	path, err := h.Path(localtimePath)
	if err != nil {
		return "", err
	}
	info, err := os.Lstat(path)
	switch {
	case hostfile.NotThere(err):
		return "none", nil
	case err != nil:
		return "", err
	case info.IsDir():
		return "", errors.New(localtimePath + " is a directory: remove it with file.absent first")
	case info.Mode()&fs.ModeSymlink == 0:
		return "a copy", nil
	}
	target, err := os.Readlink(path)
	if err != nil {
		return "", err
	}
	if !filepath.IsAbs(target) {
		target = filepath.Join("/etc", target)
	}
	if zone, ok := strings.CutPrefix(filepath.Clean(target), zones); ok {
		return zone, nil
	}
	return target, nil
}

// zones is where the files of time zones are.
const zones = "/usr/share/zoneinfo/"

// Apply makes the link first: /etc/timezone is for people and for the package.
func (a *Timezone) Apply(ctx context.Context, h *apply.Host, _ apply.Change) (apply.Output, error) {
	if err := a.known(h); err != nil {
		return apply.Output{}, err
	}
	have, err := a.link(h)
	if err != nil {
		return apply.Output{}, err
	}
	if have != a.Name {
		if err := a.setLink(h); err != nil {
			return apply.Output{}, err
		}
	}
	file, err := place.ReadText(h, timezonePath)
	if err == nil && file.There {
		_, err = file.Replace(ctx, h, a.Name+"\n")
	}
	return apply.Output{State: a.Name}, err
}

// setLink lets /etc/localtime name the zone. A link that is there keeps its owner.
func (a *Timezone) setLink(h *apply.Host) error {
	at, err := h.Entry(localtimePath)
	if err != nil {
		return err
	}
	defer at.Close()
	if err := place.MakeParents(localtimePath, at, false); err != nil {
		return err
	}
	return place.Wanted{UID: -1, GID: -1}.Link(at, ".."+zones+a.Name)
}

// known finds the zone's file, or says what may have been meant.
func (a *Timezone) known(h *apply.Host) error {
	path, err := h.Resolve(zones + a.Name)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(path)
	if err == nil && bytes.HasPrefix(data, []byte("TZif")) {
		return nil
	}
	names, err := a.names(h)
	switch near := render.Nearest(a.Name, names); {
	case err != nil:
		return err
	case len(names) == 0:
		return fmt.Errorf("there are no time zones below %s: install the package tzdata before this step", zones)
	case near == a.Name:
		return fmt.Errorf("%s%s is not the file of a time zone: install the package tzdata anew", zones, a.Name)
	case near != "":
		return fmt.Errorf("there is no time zone %q on this host: did you mean %q?", a.Name, near)
	}
	return fmt.Errorf("there is no time zone %q on this host: timedatectl list-timezones shows what there is", a.Name)
}

// names are the zones that the host has, without the older sets that lie beside them.
func (a *Timezone) names(h *apply.Host) ([]string, error) {
	dir, err := h.Resolve(zones)
	if err != nil {
		return nil, err
	}
	var out []string
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(dir, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == "posix" || name == "right"):
			return fs.SkipDir
		case !d.IsDir() && filepath.Ext(name) == "":
			out = append(out, name)
		}
		return nil
	})
	if hostfile.NotThere(err) {
		return nil, nil
	}
	return out, err
}
