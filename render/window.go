package render

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/pullet/pullet/internal/lazyregexp"
)

// Window is a time in the week in which upgrades may begin. It gates beginning, never finishing.
type Window struct {
	Days  Days    `yaml:"days"`  // mon-fri, sat, or a list; default every day
	From  Clock   `yaml:"from"`  // '22:00'; default 00:00
	To    Clock   `yaml:"to"`    // '04:00': before from means the next day; default 24:00
	Zone  Zone    `yaml:"zone"`  // UTC, Europe/Berlin; default UTC
	Roles Strings `yaml:"roles"` // or groups that it is for; default all
}

// Days are days of the week.
type Days [7]bool

var dayNames = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

func (v *Days) decode(d *decoder, n *yaml.Node) {
	var list Strings
	list.decode(d, n)
	for _, text := range list {
		for part := range strings.SplitSeq(text, ",") {
			first, last, ranged := strings.Cut(strings.ToLower(strings.TrimSpace(part)), "-")
			from, to := slices.Index(dayNames, first), slices.Index(dayNames, last)
			if !ranged {
				to = from
			}
			if from < 0 || to < 0 {
				d.failf(n, "%q is not a day of the week: write mon, tue, wed, thu, fri, sat, sun, or mon-fri", part)
				return
			}
			for i := from; ; i = (i + 1) % 7 {
				v[i] = true
				if i == to {
					break
				}
			}
		}
	}
}

// Clock is a time of the day, in minutes.
type Clock int

var clockText = lazyregexp.New(`^([01]?[0-9]|2[0-4]):([0-5][0-9])$`)

func (v *Clock) decode(d *decoder, n *yaml.Node) {
	m := clockText.FindStringSubmatch(n.Value)
	if m == nil || n.Kind != yaml.ScalarNode || m[1] == "24" && m[2] != "00" {
		d.failf(n, "%s is not a time of the day: write '22:00', in quotes", kindName(n))
		return
	}
	hour, _ := strconv.Atoi(m[1]) // two digits are a number
	minute, _ := strconv.Atoi(m[2])
	*v = Clock(hour*60 + minute)
}

// Zone is a time zone by its name.
type Zone struct{ *time.Location }

func (v *Zone) decode(d *decoder, n *yaml.Node) {
	location, err := time.LoadLocation(n.Value)
	if err != nil || n.Value == "Local" || n.Value == "" { // each host would have its own
		d.failf(n, "%q is not a time zone of this host: write UTC, or a name such as Europe/Berlin", n.Value)
		return
	}
	v.Location = location
}

// open reports whether the window is open at a time.
func (w Window) open(now time.Time) bool {
	zone := w.Zone.Location
	if zone == nil {
		zone = time.UTC
	}
	now = now.In(zone)
	minute, to := now.Hour()*60+now.Minute(), int(w.To)
	if to == 0 {
		to = 24 * 60
	}
	day := int(now.Weekday())
	if int(w.From) < to {
		return w.on(day) && minute >= int(w.From) && minute < to
	}
	return w.on(day) && minute >= int(w.From) || w.on((day+6)%7) && minute < to // it began yesterday
}

func (w Window) on(day int) bool { return w.Days == Days{} || w.Days[day] }

// WindowTime is how times of windows are written for people.
const WindowTime = "Mon 15:04 MST"

// Opens says when upgrades of a group may begin next: the zero time is now, as it is without windows.
func (r Rollout) Opens(group string, now time.Time) time.Time {
	windows := slices.DeleteFunc(
		slices.Clone(r.Windows),
		func(w Window) bool { return len(w.Roles) > 0 && !slices.Contains(w.Roles, group) },
	)
	opens := func(at time.Time) bool {
		return slices.ContainsFunc(windows, func(w Window) bool { return w.open(at) })
	}
	if len(windows) == 0 || opens(now) {
		return time.Time{}
	}
	at := now.Truncate(time.Minute)
	for range 8 * 24 * 60 {
		if at = at.Add(time.Minute); opens(at) {
			return at
		}
	}
	return at
}

func (v *Days) shape() *Shape {
	one := &Shape{Kind: Text, NotNull: true}
	return &Shape{Kind: Either, Name: "days: mon-fri, or list of days", Either: []*Shape{one, {Kind: List, Elem: one}}}
}

func (v *Clock) shape() *Shape {
	return &Shape{Kind: Text, Name: "time of the day: '22:00'", Pattern: clockText.String(), NotNull: true}
}

func (v *Zone) shape() *Shape { return &Shape{Kind: Text, Name: "time zone: UTC", NotNull: true} }
