package system

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/passwd"
	"github.com/pullet/pullet/apply/action/place"
	"github.com/pullet/pullet/apply/hostfile"
	"github.com/pullet/pullet/internal/lazyregexp"
)

// CronPresent is a file in /etc/cron.d that runs a command at its times. The file is replaced as a whole. Where nobody
// has installed cron, the step fails.
//
// To cron a % ends the command, and what follows is its input. Write \% for the character itself: date +\%F. Any other
// % is refused. A command has one line and less than 1000 characters; put what is longer into a script.
//
// Example:
//
//	steps:
//	  - name: nightly backup
//	    action: cron.present
//	    parameters:
//	      name: backup
//	      schedule: '30 2 * * mon-fri'
//	      user: backup
//	      command: /usr/local/bin/backup --to "backup-$(date +\%F)"
//	      env: {MAILTO: ops@example.org}
type CronPresent struct {
	// of the file: letters, digits, - and _, because cron leaves out other files
	Name    string `yaml:"name,required"`
	Command string `yaml:"command,required"` // a line for the shell, with every % as \%
	User    string `yaml:"user"`             // who runs it; default root
	// five words, such as '*/5 * * * *', or @hourly, @daily, @weekly, @monthly, @yearly, @reboot
	Schedule   string            `yaml:"schedule"`
	Minute     string            `yaml:"minute"`     // 0-59, instead of schedule; default *
	Hour       string            `yaml:"hour"`       // 0-23; default *
	DayOfMonth string            `yaml:"dayOfMonth"` // 1-31; default *
	Month      string            `yaml:"month"`      // 1-12, or jan to dec; default *
	DayOfWeek  string            `yaml:"dayOfWeek"`  // 0-7, or sun to sat; default *
	Env        map[string]string `yaml:"env"`        // of the command, such as MAILTO or PATH; nothing in it is expanded
	Mode       string            `yaml:"mode"`       // of the file, in octal; default 0644, with secrets 0600

	schedule string
}

const cronDir = "/etc/cron.d"

var (
	cronName = lazyregexp.New(`^[A-Za-z0-9_-]+$`)
	envName  = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// maxCronCommand is the most that every cron reads of a command.
const maxCronCommand = 999

// Bind checks all that cron would only say to its log.
func (a *CronPresent) Bind(b apply.Binding) error {
	if b.Secret() && b.Step.Params.Text("mode") == "" {
		a.Mode = "0600"
	}
	if err := cmp.Or(checkCronName(a.Name), passwd.CheckName("user", a.User), a.permissions().CheckMode()); err != nil {
		return err
	}
	if err := a.times(); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(a.Env)) {
		if !envName.MatchString(name) {
			return apply.BadParam("env", "%q is no name of a variable", name)
		}
		if strings.ContainsAny(a.Env[name], "\n\r\x00") ||
			strings.ContainsAny(a.Env[name], `"`) && strings.ContainsAny(a.Env[name], `'`) {
			return apply.BadParam(
				"env",
				"%s has a line break, or both kinds of quotes: cron cannot hold it; set it in a script",
				name,
			)
		}
	}
	return a.checkCommand()
}

func checkCronName(name string) error {
	if !cronName.MatchString(name) {
		return apply.BadParam(
			"name",
			"%q is no name for a file in %s: cron reads those of letters, digits, - and _ only",
			name,
			cronDir,
		)
	}
	return nil
}

// times makes one schedule of what is given, and checks it.
func (a *CronPresent) times() error {
	given := []string{a.Minute, a.Hour, a.DayOfMonth, a.Month, a.DayOfWeek}
	if a.Schedule != "" {
		for i, f := range cronFields() {
			if given[i] != "" {
				return apply.BadParam(f.name, "schedule and %s exclude each other", f.name)
			}
		}
		a.schedule = a.Schedule
		if err := checkSchedule(a.Schedule); err != nil {
			return &apply.ParamError{Param: "schedule", Err: err}
		}
		return nil
	}
	if strings.Join(given, "") == "" {
		return apply.BadParam("schedule", "is missing: write five words, such as '*/5 * * * *', or @daily")
	}
	for i, f := range cronFields() {
		if given[i] == "" {
			given[i] = "*"
		}
		if err := f.check(given[i]); err != nil {
			return &apply.ParamError{Param: f.name, Err: err}
		}
	}
	a.schedule = strings.Join(given, " ")
	return nil
}

// bareCent is a % that cron takes for the end of the command.
var bareCent = lazyregexp.New(`(^|[^\\])%`)

func (a *CronPresent) checkCommand() error {
	switch {
	case strings.TrimSpace(a.Command) == "":
		return apply.BadParam("command", "is empty")
	case strings.ContainsAny(a.Command, "\n\r\x00"):
		return apply.BadParam("command", "has several lines: cron reads one; put them into a script")
	case bareCent.MatchString(a.Command):
		return apply.BadParam("command", `cron ends a command at %%: write \%% for the character itself`)
	case len(a.Command) > maxCronCommand:
		return apply.BadParam(
			"command",
			"has %d characters, and cron reads %d: put it into a script",
			len(a.Command),
			maxCronCommand,
		)
	}
	return nil
}

// permissions are those with which cron reads the file: it must be the agent's own, who is root.
func (a *CronPresent) permissions() place.Permissions {
	return place.Permissions{Mode: a.Mode, Owner: strconv.Itoa(os.Geteuid())}
}

// text is the file.
func (a *CronPresent) text() string {
	var b strings.Builder
	b.WriteString("# Managed by pullet: changes are overwritten.\n")
	for _, name := range slices.Sorted(maps.Keys(a.Env)) {
		quote := `"`
		if strings.Contains(a.Env[name], quote) {
			quote = `'`
		}
		fmt.Fprintf(&b, "%s=%s%s%s\n", name, quote, a.Env[name], quote)
	}
	fmt.Fprintf(&b, "%s %s %s\n", a.schedule, a.User, strings.TrimSpace(a.Command))
	return b.String()
}

// file is the file at its place.
func (a *CronPresent) file(h *apply.Host, at *hostfile.Entry) (place.File, error) {
	w, err := a.permissions().Wanted(h)
	return place.File{Name: cronDir + "/" + a.Name, At: at, Want: place.Content{Data: []byte(a.text())}, Wanted: w}, err
}

// Manages is the file of the job.
func (a *CronPresent) Manages() []apply.Resource {
	return []apply.Resource{place.Resource(cronDir + "/" + a.Name)}
}

// Check compares the file.
func (a *CronPresent) Check(_ context.Context, h *apply.Host) (apply.Change, error) {
	at, err := h.Entry(cronDir + "/" + a.Name)
	if err != nil {
		return apply.Change{}, err
	}
	defer at.Close()
	f, err := a.file(h, at)
	if err != nil {
		return apply.Change{}, err
	}
	is, err := f.Check()
	if is.Content && place.Lacks(f.Name, at, false) != nil {
		is.Lacks = noCron()
	}
	return is.Change, err
}

// noCron is the directory that only the package brings.
func noCron() *apply.LackError {
	return &apply.LackError{
		Path: cronDir,
		Text: fmt.Sprintf("there is no directory %s: install cron with a pkg step before this one", cronDir),
	}
}

// Apply writes the file.
func (a *CronPresent) Apply(ctx context.Context, h *apply.Host, _ apply.Change) (apply.Output, error) {
	if !place.Resolves(h, cronDir) {
		return apply.Output{}, noCron()
	}
	if err := a.userThere(ctx, h); err != nil {
		return apply.Output{}, err
	}
	at, err := h.Entry(cronDir + "/" + a.Name)
	if err != nil {
		return apply.Output{}, err
	}
	defer at.Close()
	f, err := a.file(h, at)
	if err == nil {
		err = f.Apply(ctx, h, place.Placing{Permissions: a.permissions()})
	}
	return apply.Output{State: "present"}, err
}

// userThere refuses a user that there is not: cron would leave out the file. A host may have users that are not in its
// files.
func (a *CronPresent) userThere(ctx context.Context, h *apply.Host) error {
	users, err := passwd.Read(h, "passwd")
	if err != nil || users.Named(a.User) != nil {
		return err
	}
	if h.IsMachine() {
		out, err := h.Run(ctx, apply.Command{Args: []string{"getent", "passwd", a.User}})
		if err == nil && out.ExitCode == 0 {
			return nil
		}
	}
	return fmt.Errorf("there is no user %q on this host: make it with a user.present step before this one", a.User)
}

// CronAbsent is no file of this name in /etc/cron.d. A command that runs at the moment goes on.
//
// Example:
//
//	steps:
//	  - name: no old backup
//	    action: cron.absent
//	    parameters: {name: backup}
type CronAbsent struct {
	Name string `yaml:"name,required"` // of the file, as cron.present has it
}

// Bind checks the name.
func (a *CronAbsent) Bind(apply.Binding) error { return checkCronName(a.Name) }

func (a *CronAbsent) removal() place.Removal { return place.Removal{Name: cronDir + "/" + a.Name} }

// Check looks whether it is there.
func (a *CronAbsent) Check(ctx context.Context, h *apply.Host) (apply.Change, error) {
	return a.removal().Check(ctx, h)
}

// Apply removes it.
func (a *CronAbsent) Apply(ctx context.Context, h *apply.Host, _ apply.Change) (apply.Output, error) {
	return apply.Output{State: "absent"}, a.removal().Apply(ctx, h)
}
