package account

import (
	"context"
	"fmt"
	"os"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/passwd"
	"github.com/pullet/pullet/apply/action/place"
	"github.com/pullet/pullet/apply/hostfile"
)

// UserAbsent is no user of this name in the host's own files. Its own group goes with it when nobody else is in it.
// Files outside its home stay, with its number. A user with running processes is not removed: the step fails.
//
// Example:
//
//	steps:
//	  - name: who left
//	    action: user.absent
//	    parameters: {name: guest, removeHome: true}
type UserAbsent struct {
	Name       string `yaml:"name,required"` // login name; root is refused, and so is the user that the agent runs as
	RemoveHome bool   `yaml:"removeHome"`    // remove its home and its mail, too, where they are its own
}

// Bind checks the name.
func (a *UserAbsent) Bind(apply.Binding) error {
	if a.Name == "root" {
		return apply.BadParam("name", "root is not removed")
	}
	return passwd.CheckName("name", a.Name)
}

// Check looks for the user.
func (a *UserAbsent) Check(_ context.Context, h *apply.Host) (apply.Change, error) {
	user, err := a.find(h)
	if err != nil || user == nil {
		return apply.Change{}, err
	}
	if a.RemoveHome && place.Resolves(h, user.Field(passwd.Home)) {
		return apply.Change{Summary: "remove, with " + user.Field(passwd.Home)}, nil
	}
	return apply.Change{Summary: "remove"}, nil
}

// find is the user, if it is there and can be removed.
func (a *UserAbsent) find(h *apply.Host) (passwd.Line, error) {
	all, err := passwd.Read(h, "passwd")
	if err != nil {
		return nil, err
	}
	user := all.Named(a.Name)
	if user == nil {
		return nil, nil
	}
	switch uid, ok := user.Number(passwd.ID); {
	case !ok:
		return nil, fmt.Errorf("user %s has no number in /etc/passwd", a.Name)
	case uid == 0:
		return nil, fmt.Errorf("user %s has root's number 0 and is not removed", a.Name)
	case uid == os.Geteuid():
		return nil, fmt.Errorf("user %s is the one that the agent runs as and is not removed", a.Name)
	}
	return user, nil
}

// Apply removes the user.
func (a *UserAbsent) Apply(ctx context.Context, h *apply.Host, _ apply.Change) (apply.Output, error) {
	unlock, err := h.Lock(ctx, accountFiles)
	if err != nil {
		return apply.Output{}, err
	}
	defer unlock()
	user, err := a.find(h)
	if err != nil || user == nil {
		return apply.Output{State: "absent"}, err
	}
	args := []string{a.Name}
	if a.RemoveHome {
		if err := ownHome(h, user); err != nil {
			return apply.Output{}, err
		}
		args = []string{"-r", a.Name}
	}
	if err := accountTool(ctx, h, "", "userdel", args...); err != nil {
		return apply.Output{}, busyHint(err, a.Name)
	}
	return apply.Output{State: "absent"}, endHomeWork(h, a.Name)
}

// ownHome refuses a home that is somebody else's: userdel would remove the user and leave it.
func ownHome(h *apply.Host, user passwd.Line) error {
	home := user.Field(passwd.Home)
	at, err := h.Resolve(home)
	if err != nil {
		return err
	}
	info, err := os.Stat(at)
	if hostfile.NotThere(err) {
		return nil
	}
	if err != nil {
		return err
	}
	uid, _ := user.Number(passwd.ID)
	if st, ok := hostfile.Stat(info); ok && int(st.Uid) != uid {
		return fmt.Errorf(
			"%s, the home of %s, belongs to uid %d: leave out removeHome, or give it to %s first",
			home,
			user[0],
			st.Uid,
			user[0],
		)
	}
	return nil
}
