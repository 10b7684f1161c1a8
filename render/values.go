package render

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/pullet/pullet/internal/lazyregexp"
)

// Duration is a length of time, written as in Go ("90s", "1h30m") or with days and weeks ("2d", "1w").
type Duration time.Duration

func (v *Duration) decode(d *decoder, n *yaml.Node) {
	if waits(n.Value) {
		return // checked when its value is known
	}
	t, err := ParseDuration(n.Value)
	if err != nil || n.Kind != yaml.ScalarNode {
		d.failf(n, "%s is not a duration: write 30s, 5m, 1h30m or 2d", kindName(n))
		return
	}
	*v = Duration(t)
}

// ParseDuration reads a duration as time.ParseDuration does, and also whole days (d) and weeks (w) before the rest. It
// is never negative.
func ParseDuration(text string) (time.Duration, error) {
	bad := fmt.Errorf("%q is not a duration: write 30s, 5m, 1h30m or 2d", text)
	var total time.Duration
	rest, whole := strings.ReplaceAll(text, " ", ""), false
	for _, unit := range []struct {
		name string
		size time.Duration
	}{{"w", 7 * 24 * time.Hour}, {"d", 24 * time.Hour}} {
		number, after, found := strings.Cut(rest, unit.name)
		if !found {
			continue
		}
		n, err := strconv.ParseUint(number, 10, 32)
		if err != nil || n > uint64((math.MaxInt64-total)/unit.size) {
			return 0, bad
		}
		total, rest, whole = total+time.Duration(n)*unit.size, after, true
	}
	if rest == "" && whole {
		return total, nil
	}
	d, err := time.ParseDuration(rest)
	if err != nil || d < 0 || d > math.MaxInt64-total {
		return 0, bad
	}
	return total + d, nil
}

// Std is the duration in Go's type.
func (v Duration) Std() time.Duration { return time.Duration(v) }

// Size is a number of bytes, as YAML writes it: 500KiB, 50MiB, 1GiB.
type Size int64

var sizeText = lazyregexp.New(`^([0-9]{1,9}) ?(B|KiB|MiB|GiB)$`)

func (v *Size) decode(d *decoder, n *yaml.Node) {
	m := sizeText.FindStringSubmatch(n.Value)
	if m == nil || n.Kind != yaml.ScalarNode {
		d.failf(n, "%s is not a size: write 500KiB, 50MiB or 1GiB", kindName(n))
		return
	}
	number, _ := strconv.ParseInt(m[1], 10, 64) // nine digits are a number
	*v = Size(number << map[string]int{"B": 0, "KiB": 10, "MiB": 20, "GiB": 30}[m[2]])
}

// String is the size in the largest unit in which it is a whole number.
func (v Size) String() string {
	shift, unit := 0, "B"
	for i, larger := range []string{"KiB", "MiB", "GiB"} {
		if v != 0 && v&(1<<(10*(i+1))-1) == 0 {
			shift, unit = 10*(i+1), larger
		}
	}
	return strconv.FormatInt(int64(v)>>shift, 10) + unit
}

// Strings is a list of texts; a single text is a list of one.
type Strings []string

func (v *Strings) decode(d *decoder, n *yaml.Node) {
	switch {
	case isNull(n):
	case n.Kind == yaml.ScalarNode:
		*v = Strings{n.Value}
	default:
		d.value(n, reflect.ValueOf((*[]string)(v)).Elem(), "")
	}
}

// Line is a command: a text for the shell, or a list of a program and its arguments.
type Line struct {
	Args  []string
	Shell bool
}

func (l *Line) decode(d *decoder, n *yaml.Node) {
	if n.Kind == yaml.SequenceNode {
		d.value(n, reflect.ValueOf(&l.Args).Elem(), "")
		return
	}
	var line string
	d.scalar(n, reflect.ValueOf(&line).Elem(), "")
	if line != "" {
		*l = Line{[]string{line}, true}
	}
}

// String is the command in one line, shortened, for people.
func (l Line) String() string {
	text := strings.Join(strings.Fields(strings.Join(l.Args, " ")), " ")
	if len(text) > 80 {
		return text[:77] + "..."
	}
	return text
}
