package account

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/passwd"
	"github.com/pullet/pullet/render"
)

// UserPresent is a user in the host's own files, made and changed by useradd, usermod and chpasswd. What is not given
// is left as it is. Below another root the machine's tools work on the files there.
//
// A new user has a group of its own name, which is made where it is missing, and no password. When the number of a user
// changes, its home follows and other files keep the old number. A user with running processes cannot get another
// number or home: the step fails. A lock that another program holds on the account files is waited for.
//
// A user that exists gets a home where the step gives it another one, or says createHome: true. When the files of a
// home cannot be moved, the user keeps its old home and the step fails, as it does when something is at the new home.
//
// Example:
//
//	steps:
//	  - name: docker
//	    action: group.present
//	    parameters: {name: docker, system: true}
//	  - name: deploy
//	    action: user.present
//	    parameters:
//	      name: deploy
//	      uid: 2000
//	      groups: [docker]
//	      shell: /bin/bash
//	      comment: rolls out the shop
//	      password: '*'
type UserPresent struct {
	Name   string   `yaml:"name,required"` // login name
	UID    *int     `yaml:"uid"`           // its number; default: the next free one
	Group  string   `yaml:"group"`         // its primary group, name or number; default: a group of its own name
	Groups []string `yaml:"groups"`        // further groups, names or numbers; they must exist
	// leave the user in groups that are not named; false: in exactly these; default true
	AppendGroups bool   `yaml:"appendGroups"`
	Home         string `yaml:"home"` // absolute path of its home; default: /home and its name
	// make a missing home, with the files of /etc/skel; default: only where the step makes the user or changes its home,
	// and neither for a system user nor at /nonexistent
	CreateHome *bool   `yaml:"createHome"`
	MoveHome   bool    `yaml:"moveHome"` // move the files of the old home when home changes; what is at the new one stays
	Shell      string  `yaml:"shell"`    // absolute path of its shell; default: the host's
	Comment    *string `yaml:"comment"`  // its full name, or what it is for
	Password   string  `yaml:"password"` // a hash of crypt(3), never clear text; '*' is none; it is nowhere shown
	Locked     *bool   `yaml:"locked"`   // lock the password, or unlock it; keys still work; default: as it is
	Expires    string  `yaml:"expires"`  // the day from which nobody can log in: 2030-12-31, or never
	System     bool    `yaml:"system"`   // a number from those of the system, when it is made
}

// never is the expiry of an account that has none.
const never = "never"

// Bind checks the parameters.
func (a *UserPresent) Bind(b apply.Binding) error {
	if err := checkPassword(a.Password); a.Password != "" && err != nil {
		// Its own position, because an excerpt of the source would show the password.
		return render.ErrorList{{Pos: b.Step.Params.Position("password", b.Step.Pos), Message: err.Error()}}
	}
	if !a.AppendGroups && a.Groups == nil {
		return apply.BadParam("appendGroups", "groups is missing: groups: [] takes the user out of all others")
	}
	if a.UID != nil && *a.UID == 0 && a.Name != "root" {
		return apply.BadParam("uid", "0 is root's: a second root is not made")
	}
	if _, err := a.expiry(); err != nil {
		return err
	}
	if a.Group != "" {
		if err := checkAccountRefs("group", a.Group); err != nil {
			return err
		}
	}
	return cmp.Or(
		passwd.CheckName("name", a.Name),
		checkID("uid", a.UID),
		checkAccountRefs("groups", a.Groups...),
		a.checkTexts(),
	)
}

// checkTexts finds what would break the line in the passwd file.
func (a *UserPresent) checkTexts() error {
	for param, at := range map[string]string{"home": a.Home, "shell": a.Shell} {
		if at == "" {
			continue
		}
		if err := apply.AbsPath(param, at); err != nil {
			return err
		}
		if strings.ContainsAny(at, ":\n") {
			return apply.BadParam(param, "%q has a colon or a line break: they divide the passwd file", at)
		}
	}
	if a.Comment != nil && strings.ContainsAny(*a.Comment, ":\n") {
		return apply.BadParam("comment", "%q has a colon or a line break: they divide the passwd file", *a.Comment)
	}
	return nil
}

// expiry is the expiry in the shadow file's number of days; "" is never.
func (a *UserPresent) expiry() (string, error) {
	if a.Expires == "" || a.Expires == never {
		return "", nil
	}
	day, err := time.Parse(time.DateOnly, a.Expires)
	if err != nil || day.Unix() < 0 {
		return "", apply.BadParam("expires", "%q is no day: write 2030-12-31, or never", a.Expires)
	}
	return fmt.Sprint(day.Unix() / (24 * 60 * 60)), nil
}

// makesHome reports whether a home is made that the step brings along: that of a new user, or another one.
func (a *UserPresent) makesHome() bool {
	if a.CreateHome != nil {
		return *a.CreateHome
	}
	return !a.System && a.home() != noHome
}

// noHome is the home of Debian's accounts that have none.
const noHome = "/nonexistent"

// home is the home in the one form that is compared; "" leaves it.
func (a *UserPresent) home() string {
	if a.Home == "" {
		return ""
	}
	return path.Clean(a.Home)
}

// Manages is the user.
func (a *UserPresent) Manages() []apply.Resource {
	return []apply.Resource{apply.NamedResource("user", a.Name, "user.absent")}
}

// Check compares the user with the host's own files.
func (a *UserPresent) Check(_ context.Context, h *apply.Host) (apply.Change, error) {
	p, err := a.plan(h)
	return apply.Change{Summary: strings.Join(p.summary, ", ")}, err
}

// Apply makes or changes the user.
func (a *UserPresent) Apply(ctx context.Context, h *apply.Host, _ apply.Change) (apply.Output, error) {
	unlock, err := h.Lock(ctx, accountFiles)
	if err != nil {
		return apply.Output{}, err
	}
	defer unlock()
	p, err := a.plan(h)
	if err == nil {
		err = p.possible()
	}
	if err == nil {
		err = p.make(ctx, h)
	}
	return apply.Output{State: "present"}, err
}
