package account

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/passwd"
	"github.com/pullet/pullet/apply/action/place"
	"github.com/pullet/pullet/apply/hostfile"
)

// homeWork is what is to be done for the home of a user beside its entry in the passwd file. It is on record from
// before the tools start until it is done.
type homeWork struct {
	From string `json:"from,omitempty"` // whose files move to To; "": none do
	To   string `json:"to"`             // the home
	make bool   // it is made where it is missing
}

// newHome stands for the home that useradd chooses.
const newHome = "new"

// homeRecord is where the work on a user's home is on record, beside the account files.
func homeRecord(name string) string { return "/etc/.pullet-home-" + name }

// maxHomeRecord bounds a record.
const maxHomeRecord = 1 << 16

// begunHomeWork returns the work on a user's home that was begun and not ended; a zero value for none.
func begunHomeWork(h *apply.Host, name string) (w homeWork, err error) {
	at, err := h.Entry(homeRecord(name))
	if err != nil {
		return w, err
	}
	defer at.Close()
	data, err := at.ReadFile(maxHomeRecord)
	if hostfile.NotThere(err) {
		return w, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &w)
	}
	if err != nil {
		return w, fmt.Errorf("%s: %w; remove it, and look whether the home of %s is complete", homeRecord(name), err, name)
	}
	return w, nil
}

// begin puts the work on record. Without work an old record ends.
func (w homeWork) begin(h *apply.Host, name string) error {
	if w.To == "" {
		return endHomeWork(h, name)
	}
	at, err := h.Entry(homeRecord(name))
	if err != nil {
		return err
	}
	defer at.Close()
	data, err := json.Marshal(w)
	if err != nil {
		return err
	}
	return place.Put(at, data, hostfile.Attributes{UID: -1, GID: -1, Mode: 0o600, SetMode: true})
}

// endHomeWork removes the record.
func endHomeWork(h *apply.Host, name string) error { return place.Remove(h, homeRecord(name)) }

// homes compares the home of a user that exists, and takes up what an earlier run began.
func (p *userPlan) homes(h *apply.Host, have passwd.Line) error {
	a, home := p.want, path.Clean(have.Field(passwd.Home))
	to, changes := home, a.home() != "" && a.home() != home
	if changes {
		to = a.home()
	}
	begun, err := begunHomeWork(h, a.Name)
	if err != nil {
		return err
	}
	resumes := begun.To == to || begun.To == newHome
	switch {
	case changes && a.MoveHome && place.Resolves(h, home):
		p.home = homeWork{From: home, To: to}
		p.summary = append(p.summary, "home "+home+" -> "+to)
		return p.home.possible(h)
	case begun.From != "" && a.MoveHome && resumes && !changes && !place.Resolves(h, begun.From):
		p.summary = append(p.summary, "note that "+begun.From+" was moved")
		return nil
	case begun.From != "" && a.MoveHome && resumes && !changes:
		p.home = begun
		p.summary = append(p.summary, "move "+begun.From+" to "+to)
		return begun.possible(h)
	case changes:
		p.option("-d", to, "home "+home+" -> "+to)
	}
	asked := a.CreateHome != nil && *a.CreateHome
	owed := begun.To != "" && begun.From == "" && resumes
	if (asked || (changes || owed) && a.makesHome()) && !place.Resolves(h, to) {
		p.home = homeWork{To: to, make: true}
		p.summary = append(p.summary, "make "+to)
	}
	return nil
}

// possible finds what the files of a home cannot be moved over or away from.
func (w homeWork) possible(h *apply.Host) error {
	if place.Resolves(h, w.To) {
		return fmt.Errorf("%s is not moved to %s: both exist; hint: merge them by hand and remove one", w.From, w.To)
	}
	at, err := h.Follow(w.From)
	if err != nil {
		return err
	}
	defer at.Close()
	mounted, err := at.IsMount()
	if mounted {
		return fmt.Errorf("%s is not moved to %s: it is a mount point; hint: mount its file system at %s", w.From, w.To, w.To)
	}
	return err
}

// move has usermod move the files. It writes the passwd file first: when the files stayed where they were, the user
// keeps the old home.
func (w homeWork) move(ctx context.Context, h *apply.Host, name string) error {
	if err := w.keepOld(ctx, h, name); err != nil { // of a run that was cut off
		return err
	}
	to, err := h.Follow(w.To)
	if err != nil {
		return err
	}
	defer to.Close()
	if err := to.MakeParents(0o755); err != nil {
		return err
	}
	err = accountTool(ctx, h, "", "usermod", "-d", w.To, "-m", name)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%w; the files are still in %s", err, w.From)
	return errors.Join(err, w.keepOld(context.WithoutCancel(ctx), h, name))
}

// failed returns the error of a tool. Where the account is as it was, nothing was begun, and the record ends.
func (w homeWork) failed(h *apply.Host, name string, err error) error {
	all, bad := passwd.Read(h, "passwd")
	user := all.Named(name)
	if bad != nil || user != nil && (w.To == newHome || path.Clean(user.Field(passwd.Home)) == w.To) {
		return err
	}
	return errors.Join(err, endHomeWork(h, name))
}

// keepOld gives the user the old home where the passwd file has the new one and nothing is there.
func (w homeWork) keepOld(ctx context.Context, h *apply.Host, name string) error {
	all, err := passwd.Read(h, "passwd")
	if err != nil {
		return err
	}
	if path.Clean(all.Named(name).Field(passwd.Home)) != w.To || place.Resolves(h, w.To) {
		return nil
	}
	return accountTool(ctx, h, "", "usermod", "-d", w.From, name)
}
