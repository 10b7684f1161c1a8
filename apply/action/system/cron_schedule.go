package system

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// cronField is one of the five places of a schedule.
type cronField struct {
	name      string // of the parameter
	low, high int
	words     []string // for the numbers from low on
}

func cronFields() []cronField {
	months := []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}
	days := []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}
	return []cronField{
		{
			"minute",
			0,
			59,
			nil,
		}, {"hour", 0, 23, nil}, {"dayOfMonth", 1, 31, nil}, {"month", 1, 12, months}, {"dayOfWeek", 0, 7, days},
	}
}

// cronWords are the schedules that have a name.
func cronWords() []string {
	return []string{"@reboot", "@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"}
}

// checkSchedule finds a schedule that cron does not take. Every cron would then leave out the whole file, and say so
// only in its log.
func checkSchedule(schedule string) error {
	if strings.HasPrefix(schedule, "@") {
		if !slices.Contains(cronWords(), schedule) {
			return fmt.Errorf("%q is none of %s", schedule, strings.Join(cronWords(), ", "))
		}
		return nil
	}
	parts := strings.Fields(schedule)
	fields := cronFields()
	if len(parts) != len(fields) || strings.Join(parts, " ") != schedule {
		return fmt.Errorf(
			"%q is no schedule: write five words, minute hour day month weekday, such as '*/5 * * * *', or @daily",
			schedule,
		)
	}
	for i, f := range fields {
		if err := f.check(parts[i]); err != nil {
			return err
		}
	}
	return nil
}

// check finds what is wrong with one place: a list of *, numbers and ranges, with a step behind each.
func (f cronField) check(text string) error {
	for part := range strings.SplitSeq(text, ",") {
		if err := f.checkPart(part); err != nil {
			return fmt.Errorf("%q: %w", text, err)
		}
	}
	return nil
}

func (f cronField) checkPart(part string) error {
	span, step, stepped := strings.Cut(part, "/")
	from, to, ranged := strings.Cut(span, "-")
	if stepped {
		if n, ok := digits(step); !ok || n < 1 || n > f.high {
			return fmt.Errorf("the step %q of the %s is no number from 1 to %d", step, f.name, f.high)
		}
		if span != "*" && !ranged {
			return fmt.Errorf("a step needs a range: write %s-%d/%s", span, f.high, step)
		}
	}
	if span == "*" {
		return nil
	}
	first, err := f.number(from)
	if err != nil || !ranged {
		return err
	}
	last, err := f.number(to)
	if err == nil && last < first {
		return fmt.Errorf("the range %s of the %s ends before it begins", span, f.name)
	}
	return err
}

func (f cronField) number(text string) (int, error) {
	if i := slices.Index(f.words, strings.ToLower(text)); i >= 0 {
		return f.low + i, nil
	}
	n, ok := digits(text)
	if !ok || n < f.low || n > f.high {
		return 0, fmt.Errorf("%q is no %s: %d to %d", text, f.name, f.low, f.high)
	}
	return n, nil
}

// digits is a number without a sign.
func digits(text string) (int, bool) {
	n, err := strconv.Atoi(text)
	return n, err == nil && text[0] >= '0' && text[0] <= '9'
}
