package account

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/passwd"
)

// GroupPresent is a group in the host's own files, made and changed by groupadd, groupmod and gpasswd. When its number
// changes, it stays the primary group of its users, and files keep the old number.
//
// Example:
//
//	steps:
//	  - name: operators
//	    action: group.present
//	    parameters: {name: operators, gid: 3000}
type GroupPresent struct {
	Name   string `yaml:"name,required"` // its name
	GID    *int   `yaml:"gid"`           // its number; default: the next free one
	System bool   `yaml:"system"`        // a number from those of the system, when it is made
	// users that are in it beside those whose primary group it is; they must exist
	Members       []string `yaml:"members"`
	AppendMembers bool     `yaml:"appendMembers"` // leave members that are not named; false: exactly these; default true
}

// Bind checks the parameters.
func (a *GroupPresent) Bind(apply.Binding) error {
	if !a.AppendMembers && a.Members == nil {
		return apply.BadParam("appendMembers", "members is missing: members: [] takes all out of the group")
	}
	for _, m := range a.Members {
		if err := passwd.CheckName("members", m); err != nil {
			return err
		}
	}
	return cmp.Or(passwd.CheckName("name", a.Name), checkID("gid", a.GID))
}

// Manages is the group.
func (a *GroupPresent) Manages() []apply.Resource {
	return []apply.Resource{apply.NamedResource("group", a.Name, "group.absent")}
}

// Check compares number and members.
func (a *GroupPresent) Check(_ context.Context, h *apply.Host) (apply.Change, error) {
	all, err := passwd.Read(h, "group")
	if err != nil {
		return apply.Change{}, err
	}
	have := all.Named(a.Name)
	if have == nil {
		return apply.Change{Summary: "create"}, nil
	}
	var parts []string
	if gid, ok := have.Number(passwd.ID); a.GID != nil && (!ok || gid != *a.GID) {
		parts = append(parts, fmt.Sprintf("gid %s -> %d, files keep their group", have.Field(passwd.ID), *a.GID))
	}
	if _, differs := a.members(have); len(differs) > 0 {
		parts = append(parts, "members "+strings.Join(differs, " "))
	}
	return apply.Change{Summary: strings.Join(parts, ", ")}, nil
}

// members are those that the group should have, and in words what differs.
func (a *GroupPresent) members(have passwd.Line) (want, differs []string) {
	now := have.Members()
	if a.AppendMembers {
		want = slices.Clone(now)
	}
	for _, m := range a.Members {
		if !slices.Contains(want, m) {
			want = append(want, m)
		}
		if !slices.Contains(now, m) && !slices.Contains(differs, "+"+m) {
			differs = append(differs, "+"+m)
		}
	}
	for _, m := range now {
		if a.Members != nil && !slices.Contains(want, m) {
			differs = append(differs, "-"+m)
		}
	}
	return want, differs
}

// Apply makes or changes the group.
func (a *GroupPresent) Apply(ctx context.Context, h *apply.Host, _ apply.Change) (apply.Output, error) {
	unlock, err := h.Lock(ctx, accountFiles)
	if err != nil {
		return apply.Output{}, err
	}
	defer unlock()
	all, err := passwd.Read(h, "group")
	if err == nil {
		err = a.possible(h, all)
	}
	if err != nil {
		return apply.Output{}, err
	}
	have := all.Named(a.Name)
	if err := a.number(ctx, h, have); err != nil {
		return apply.Output{}, err
	}
	if want, differs := a.members(have); len(differs) > 0 {
		err = accountTool(ctx, h, "", "gpasswd", "-M", strings.Join(want, ","), a.Name)
	}
	return apply.Output{State: "present"}, err
}

// number makes the group or gives it its number.
func (a *GroupPresent) number(ctx context.Context, h *apply.Host, have passwd.Line) error {
	var args []string
	if a.GID != nil {
		args = append(args, "-g", strconv.Itoa(*a.GID))
	}
	if have == nil {
		if a.System {
			args = append(args, "-r")
		}
		return accountTool(ctx, h, "", "groupadd", append(args, a.Name)...)
	}
	if gid, ok := have.Number(passwd.ID); a.GID == nil || ok && gid == *a.GID {
		return nil
	}
	return accountTool(ctx, h, "", "groupmod", append(args, a.Name)...)
}

// possible finds what the tools would stumble over, before they change something.
func (a *GroupPresent) possible(h *apply.Host, groups passwd.File) error {
	if a.GID != nil {
		if other := groups.Numbered(*a.GID); other != nil && other[0] != a.Name {
			return fmt.Errorf("gid %d belongs to %s", *a.GID, other[0])
		}
	}
	if len(a.Members) == 0 {
		return nil
	}
	users, err := passwd.Read(h, "passwd")
	if err != nil {
		return err
	}
	for _, m := range a.Members {
		if users.Named(m) == nil {
			return fmt.Errorf("there is no user %q on this host: make it with a user.present step before this one", m)
		}
	}
	return nil
}

// GroupAbsent is no group of this name in the host's own files. A group that is some user's primary one is not removed:
// the step fails.
//
// Example:
//
//	steps:
//	  - name: no games
//	    action: group.absent
//	    parameters: {name: games}
type GroupAbsent struct {
	Name string `yaml:"name,required"` // its name; root is refused
}

// Bind checks the name.
func (a *GroupAbsent) Bind(apply.Binding) error {
	if a.Name == "root" {
		return apply.BadParam("name", "root is not removed")
	}
	return passwd.CheckName("name", a.Name)
}

// Check looks for the group.
func (a *GroupAbsent) Check(_ context.Context, h *apply.Host) (apply.Change, error) {
	all, err := passwd.Read(h, "group")
	if err != nil || all.Named(a.Name) == nil {
		return apply.Change{}, err
	}
	return apply.Change{Summary: "remove"}, nil
}

// Apply removes the group.
func (a *GroupAbsent) Apply(ctx context.Context, h *apply.Host, _ apply.Change) (apply.Output, error) {
	unlock, err := h.Lock(ctx, accountFiles)
	if err != nil {
		return apply.Output{}, err
	}
	defer unlock()
	groups, err := passwd.Read(h, "group")
	if err != nil {
		return apply.Output{}, err
	}
	users, err := passwd.Read(h, "passwd")
	if err != nil {
		return apply.Output{}, err
	}
	gid := groups.Named(a.Name).Field(passwd.ID)
	for _, u := range users {
		if gid != "" && u.Field(passwd.GID) == gid {
			return apply.Output{}, fmt.Errorf(
				"group %s is the primary group of %s: give that user another one, or remove it first",
				a.Name,
				u[0],
			)
		}
	}
	return apply.Output{State: "absent"}, accountTool(ctx, h, "", "groupdel", a.Name)
}
