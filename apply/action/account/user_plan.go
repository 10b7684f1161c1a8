package account

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/passwd"
)

// userPlan is what is to be done until a user is as wanted.
type userPlan struct {
	want                  *UserPresent
	passwd, group, shadow passwd.File
	summary               []string
	tool                  string   // useradd or usermod
	args                  []string // of the tool, without the name
	password              string   // the new field of the shadow file; "" leaves it
	lock                  string   // usermod's flag
	home                  homeWork // what is to be done for its home
}

// plan compares.
func (a *UserPresent) plan(h *apply.Host) (*userPlan, error) {
	p := &userPlan{want: a}
	var err error
	if p.passwd, err = passwd.Read(h, "passwd"); err != nil {
		return p, err
	}
	if p.group, err = passwd.Read(h, "group"); err != nil {
		return p, err
	}
	p.shadow, err = passwd.Read(h, "shadow")
	if err != nil && !errors.Is(err, fs.ErrNotExist) && (a.Password != "" || a.Locked != nil || a.Expires != "") {
		return p, needsRoot(err)
	}
	have := p.passwd.Named(a.Name)
	if have == nil {
		return p, p.create(h)
	}
	p.tool = "usermod"
	p.numbers(have)
	p.groups(have)
	if err := p.homes(h, have); err != nil {
		return p, err
	}
	p.texts(have)
	p.expires()
	return p, p.secret(p.field(have))
}

// option adds an option of the tool, and words for the summary.
func (p *userPlan) option(flag, value, summary string) {
	p.args = append(p.args, flag, value)
	p.summary = append(p.summary, summary)
}

// create is the plan for a user that is not there.
func (p *userPlan) create(h *apply.Host) error {
	a := p.want
	p.tool, p.summary = "useradd", []string{"create"}
	if a.UID != nil {
		p.args = append(p.args, "-u", strconv.Itoa(*a.UID))
	}
	switch {
	case a.Group != "":
		p.args = append(p.args, "-g", a.Group)
	case p.group.Named(a.Name) != nil:
		p.args = append(p.args, "-g", a.Name)
	default:
		p.args = append(p.args, "-U")
	}
	comment := ""
	if a.Comment != nil {
		comment = *a.Comment
	}
	expires := a.Expires
	if expires == never {
		expires = ""
	}
	given := [][2]string{
		{"-G", strings.Join(a.Groups, ",")},
		{"-d", a.home()},
		{"-s", a.Shell},
		{"-c", comment},
		{"-e", expires},
	}
	for _, o := range given {
		if o[1] != "" {
			p.args = append(p.args, o[0], o[1])
		}
	}
	p.args = append(p.args, p.homeFlag(h))
	if a.System {
		p.args = append(p.args, "-r")
	}
	if err := p.secret("!"); err != nil {
		return err
	}
	p.summary = []string{"create"}
	return nil
}

// homeFlag says whether useradd makes the home. Below another root, where it finds no /proc, it would leave out
// directories of /etc/skel.
func (p *userPlan) homeFlag(h *apply.Host) string {
	if !p.want.makesHome() {
		return "-M"
	}
	p.home = homeWork{To: cmp.Or(p.want.home(), newHome), make: true}
	if h.IsMachine() {
		return "-m"
	}
	return "-M"
}

// numbers compares the user's number and primary group.
func (p *userPlan) numbers(have passwd.Line) {
	if uid, ok := have.Number(passwd.ID); p.want.UID != nil && (!ok || uid != *p.want.UID) {
		p.option(
			"-u",
			strconv.Itoa(*p.want.UID),
			fmt.Sprintf("uid %s -> %d, only its home follows", have.Field(passwd.ID), *p.want.UID),
		)
	}
	if p.want.Group == "" {
		return
	}
	gid, _ := have.Number(passwd.GID)
	if to := p.group.Refers(p.want.Group); to == nil || to.Field(passwd.ID) != have.Field(passwd.GID) {
		was := have.Field(passwd.GID)
		if from := p.group.Numbered(gid); from != nil {
			was = from[0]
		}
		p.option("-g", p.want.Group, "group "+was+" -> "+p.want.Group)
	}
}

// groups compares the groups in which the user is a further member.
func (p *userPlan) groups(have passwd.Line) {
	if p.want.Groups == nil {
		return
	}
	primary := p.primary(have)
	var missing, wanted []string
	in := p.group.GroupsOf(p.want.Name)
	for _, ref := range p.want.Groups {
		name := ref
		if g := p.group.Refers(ref); g != nil {
			name = g[0]
		}
		wanted = append(wanted, name)
		if name != primary && !slices.Contains(in, name) && !slices.Contains(missing, "+"+name) {
			missing = append(missing, "+"+name)
		}
	}
	var extra []string
	for _, name := range in {
		if !p.want.AppendGroups && !slices.Contains(wanted, name) {
			extra = append(extra, "-"+name)
		}
	}
	if changes := append(missing, extra...); len(changes) > 0 {
		p.option("-G", strings.Join(wanted, ","), "groups "+strings.Join(changes, " "))
		if p.want.AppendGroups {
			p.args = append(p.args, "-a")
		}
	}
}

// primary is the name of the primary group that the user will have.
func (p *userPlan) primary(have passwd.Line) string {
	ref := p.want.Group
	if ref == "" {
		ref = have.Field(passwd.GID)
	}
	if g := p.group.Refers(ref); g != nil {
		return g[0]
	}
	return ref
}

// texts compares shell and comment.
func (p *userPlan) texts(have passwd.Line) {
	a := p.want
	if a.Shell != "" && a.Shell != have.Field(passwd.Shell) {
		p.option("-s", a.Shell, "shell "+have.Field(passwd.Shell)+" -> "+a.Shell)
	}
	if a.Comment != nil && *a.Comment != have.Field(passwd.Comment) {
		p.option("-c", *a.Comment, "comment")
	}
}

// expires compares the day from which the account is closed.
func (p *userPlan) expires() {
	want, err := p.want.expiry() // Bind refused a bad one
	have := p.shadow.Named(p.want.Name).Field(passwd.Expires)
	if err != nil || p.want.Expires == "" || want == have {
		return
	}
	value := p.want.Expires
	if value == never {
		value = ""
	}
	p.option("-e", value, "expires "+dayOf(have)+" -> "+p.want.Expires)
}

// dayOf is the day of a number in the shadow file.
func dayOf(field string) string {
	days, err := strconv.Atoi(field)
	if err != nil {
		return never
	}
	return time.Unix(int64(days)*24*60*60, 0).UTC().Format(time.DateOnly)
}

// field is the password of a user that is there, from the shadow file where that has it.
func (p *userPlan) field(have passwd.Line) string {
	if have.Field(1) != "x" {
		return have.Field(1)
	}
	if s := p.shadow.Named(p.want.Name); s != nil {
		return s.Field(1)
	}
	return "!"
}

// secret compares the password and its lock.
func (p *userPlan) secret(have string) error {
	if p.want.Password == "" && p.want.Locked == nil {
		return nil
	}
	want, err := passwordField(have, p.want.Password, p.want.Locked)
	switch {
	case err != nil:
		return fmt.Errorf("user %s: %w", p.want.Name, err)
	case want == have:
	case want == "!"+have:
		p.lock = "-L"
		p.summary = append(p.summary, "lock")
	case want == strings.TrimLeft(have, "!"):
		p.lock = "-U"
		p.summary = append(p.summary, "unlock")
	default:
		p.password = want
		p.summary = append(p.summary, "password")
	}
	return nil
}

// possible finds what the tools would stumble over, before they change something.
func (p *userPlan) possible() error {
	a := p.want
	refs := slices.Clone(a.Groups)
	if a.Group != "" {
		refs = append(refs, a.Group)
	}
	for _, ref := range refs {
		if p.group.Refers(ref) == nil {
			return fmt.Errorf(
				"there is no group %q on this host: make it with a group.present step before this one",
				ref,
			)
		}
	}
	if a.UID != nil {
		if other := p.passwd.Numbered(*a.UID); other != nil && other[0] != a.Name {
			return fmt.Errorf("uid %d belongs to %s", *a.UID, other[0])
		}
	}
	return nil
}

// make carries the plan out. Work on a home is on record until it is done: a tool writes the account first, and what it
// leaves behind when it fails or is killed is done by the next run.
func (p *userPlan) make(ctx context.Context, h *apply.Host) error {
	name := p.want.Name
	if p.home.From != "" || len(p.args) > 0 {
		if err := p.home.begin(h, name); err != nil {
			return err
		}
	}
	if p.home.From != "" {
		if err := p.home.move(ctx, h, name); err != nil {
			return p.home.failed(h, name, busyHint(err, name))
		}
	}
	if len(p.args) > 0 { // a new user always has some
		if err := accountTool(ctx, h, "", p.tool, append(p.args, name)...); err != nil {
			return p.home.failed(h, name, busyHint(err, name))
		}
	}
	if p.password != "" {
		if err := accountTool(ctx, h, name+":"+p.password+"\n", "chpasswd", "-e"); err != nil {
			return err
		}
	}
	if p.lock != "" {
		if err := accountTool(ctx, h, "", "usermod", p.lock, name); err != nil {
			return err
		}
	}
	if p.home.make {
		if err := makeHome(ctx, h, name); err != nil {
			return err
		}
	}
	return endHomeWork(h, name)
}

// busyHint says what to do about a user with running processes.
func busyHint(err error, name string) error {
	if err != nil && strings.Contains(err.Error(), "currently used by process") {
		return fmt.Errorf(
			"%w; end its processes first: loginctl terminate-user %s, or stop the service that runs as it",
			err,
			name,
		)
	}
	return err
}
