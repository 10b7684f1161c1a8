package system

import (
	"strings"
	"testing"
)

// TestSchedules: what cron takes is taken, and what it does not has its place and its cure; each at the edge.
func TestSchedules(t *testing.T) {
	for schedule, want := range map[string]string{
		"*/59 * * * *":            "",
		"*/1 */23 */31 */12 */7":  "",
		"0-59/59 0 1 1 0":         "",
		"59 23 31 12 7":           "",
		"* * * jan,dec sun-sat":   "",
		"* * * JAN-Dec Sun":       "",
		"* * * jan-1 sun-0":       "", // a word is its number
		"* * * dec-12 sat-6":      "",
		"5-5 * * * *":             "",
		"*/60 * * * *":            `the step "60" of the minute is no number from 1 to 59`,
		"* */24 * * *":            `the step "24" of the hour is no number from 1 to 23`,
		"*/0 * * * *":             `the step "0" of the minute is no number from 1 to 59`,
		"*/-1 * * * *":            `the step "-1" of the minute is no number`,
		"*/x * * * *":             `the step "x" of the minute is no number`,
		"*/+5 * * * *":            `the step "+5" of the minute is no number`,
		"* * * 2-jan *":           "the range 2-jan of the month ends before it begins",
		"* * * * sat-sun":         "the range sat-sun of the dayOfWeek ends before it begins",
		"* 24 * * *":              `"24" is no hour: 0 to 23`,
		"* * * * 8":               `"8" is no dayOfWeek: 0 to 7`,
		"* * * january *":         `"january" is no month: 1 to 12`,
		"* * 1 jan-x *":           `"x" is no month: 1 to 12`,
		"jan * * * *":             `"jan" is no minute: 0 to 59`,
		"* * * * sun/2":           "a step needs a range: write sun-7/2",
		"*/5 * * * * /bin/backup": "is no schedule: write five words",
	} {
		err := checkSchedule(schedule)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", schedule, err, want)
		}
	}
}
