package render

import (
	"strings"

	"github.com/pullet/pullet/internal/lazyregexp"
)

// To check the jobs of a reaction, an event is made up: it says all that some text of the repository asks for.

// madeUpWord stands in the name of an event where a glob has a pattern.
const madeUpWord = "made-up"

var (
	asksForData = lazyregexp.New(
		"\\bevent\\.[dD]ata((?:\\??\\.[\\pL_]\\w*|\\[\\s*[\"'`][^\"'`\\]]+[\"'`]\\s*\\])+)" +
			"|\\bindex\\s+event\\.[dD]ata((?:\\s+[\"`][^\"`]+[\"`])+)",
	)
	// the keys in such a path
	dataKey = lazyregexp.New("[\\pL_][\\w]*|[\"'`][^\"'`\\]]+[\"'`]")
	// a block that repeats what it is about
	rangesOver = lazyregexp.New(`\{\{-?\s*range\s+(?:\$\w+\s*(?:,\s*\$\w+\s*)?:=\s*)?\(?\s*$`)
)

// MadeUpEvent is an event for the reaction that is about one host, to check its jobs with. Its data has what the
// repository asks for, each value named for its keys: <event.data.KEY>.
func (r *Reaction) MadeUpEvent(host string) map[string]any {
	return map[string]any{
		"name": r.events.example(), "occurrences": r.Limiter.MinOccurrences, "data": r.repo.reacts.asked(), "node": host,
		"hosts": []any{host}, "time": "2000-01-01T00:00:00Z", "id": "made-up", "cause": []any{},
	}
}

// dataAskedFor is a value for all that some of the texts ask of the data of an event.
func dataAskedFor(texts []TextFile) map[string]any {
	data := map[string]any{}
	for _, f := range texts {
		for _, m := range asksForData.FindAllStringSubmatchIndex(f.Text, -1) {
			path := m[2:4]
			if path[0] < 0 {
				path = m[4:6]
			}
			var keys []string
			for _, key := range dataKey.FindAllString(f.Text[path[0]:path[1]], -1) {
				keys = append(keys, strings.Trim(key, "\"'`"))
			}
			put(data, keys, rangesOver.MatchString(f.Text[:m[0]]))
		}
	}
	return data
}

// put makes a value for a path of keys. What has keys below it is a map.
func put(data map[string]any, keys []string, list bool) {
	for _, key := range keys[:len(keys)-1] {
		inner, ok := data[key].(map[string]any)
		if !ok {
			inner = map[string]any{}
			data[key] = inner
		}
		data = inner
	}
	last := keys[len(keys)-1]
	if _, is := data[last].(map[string]any); is {
		return
	}
	if _, is := data[last].([]any); is {
		return
	}
	var value any = madeUpMark + strings.Join(keys, ".") + ">"
	if list {
		value = []any{value}
	}
	data[last] = value
}

// madeUpMark begins each value of data that was made up.
const madeUpMark = "<event.data."

// noSuchField is a key that no event has: the data has all that is asked for.
var noSuchField = lazyregexp.New(`^event\.[\w.]+: there is no "`)

// OfMadeUp reports a mistake that says nothing of the repository: it is about a value of the event that was made up,
// and not about a key that no event has.
func OfMadeUp(e *Error) bool {
	return strings.Contains(e.Message, madeUpMark) || e.event && !noSuchField.MatchString(e.Message)
}

// Emit is an event that a step raises, by a name that its file shows.
type Emit struct {
	Event string
	Step  *Step
	Pos   Position
}

// Emits are the events that the steps of a catalog raise, as far as their names are known.
func Emits(c *Catalog) []Emit {
	var out []Emit
	for _, j := range c.Jobs {
		for _, s := range j.Steps {
			name := s.Params.Text("name")
			if s.Action != "event.emit" || name == "" || s.Params.Waits("name") || strings.Contains(name, madeUpMark) ||
				strings.Contains(name, madeUpWord) {
				continue
			}
			out = append(out, Emit{name, s, s.Params.Position("name", s.Pos)})
		}
	}
	return out
}
