package render

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/internal/patience"
)

// asked evaluates a condition on web1, whose variables have a list of 3,000 numbers, a text and a map.
func asked(t *testing.T, text string) (bool, error) {
	t.Helper()
	cat, err := repo(map[string]string{
		"base/vars.yaml": "files: {'*': [{name: v}]}\n",
		"vars/v.yaml":    "many: [" + strings.TrimSuffix(strings.Repeat("7,", 3000), ",") + "]\nword: x\nports: {c: 3, a: 1, b: 2}\n",
		"base/jobs.yaml": "jobs: {'*': [{name: a}]}\n",
		"jobs/a.yaml":    "steps:\n- name: a\n  action: x\n  conditions:\n    when:\n      condition: \"" + text + "\"\n",
	}).Compile(web1)
	if err != nil {
		return false, err
	}
	return cat.Eval(cat.Jobs[0].Steps[0].Conditions.When.Expression, Judged{})
}

// doubled is an expression in which each name holds twice the one before.
func doubled(first, twice, last string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "let a0 = %s; ", first)
	for i := range 60 {
		fmt.Fprintf(&b, "let a%d = %s; ", i+1, strings.ReplaceAll(twice, "@", fmt.Sprint("a", i)))
	}
	return b.String() + strings.ReplaceAll(last, "@", "a60")
}

// TestLimitsOfExpressions: what would never end, or fill the memory, is a mistake with a place, soon.
func TestLimitsOfExpressions(t *testing.T) {
	tooMuch := "too much work"
	if raced { // or too long
		tooMuch = "the expression takes "
	}
	for _, c := range []struct{ name, text, want string }{
		{"a loop in a loop", "len(map(1..3000, map(1..3000, # + 1))) == 1", "the expression makes more than 500000 values"},
		{"a loop in a loop over a variable", "all(vars.many, all(vars.many, # > 1))", "the expression takes too much work"},
		{"loops that make nothing", "count(vars.many, count(vars.many, count(vars.many, # > 1) == 1) == 1) == 1", "too much work"},
		{"a great range", "len(1..2000000000) == 1", "the expression makes more than 500000 values"},
		{"a nested range", "len(map(1..9000, 1..9000)) == 1", "the expression makes more than 500000 values"},
		{"a text that doubles", doubled("'x'", "@ + @", "len(@) == 1"), "a text of more than 1 MiB"},
		{"a variable that doubles", doubled("vars.word", "@ + @", "len(@) == 1"), "a text of more than 1 MiB"},
		{"a text that doubles in a loop", "len(reduce(1..60, #acc + #acc, 'x')) == 1", "a text of more than 1 MiB"},
		{"a list that doubles", doubled("[1]", "[@, @]", "len(toJSON(@)) == 1"), "more than 200000 values"},
		{"a list that doubles and is compared", doubled("[1]", "[@, @]", "@ == 1"), "more than 200000 values"},
		{"a map that doubles", doubled("{'a': 1}", "{'a': @, 'b': @}", "@ == 1"), "more than 200000 values"},
		{"a list that is joined to itself", doubled("[1]", "concat(@, @)", "len(@) == 1"), "more than 200000 values"},
		{"repeat", "repeat('x', 3) == 'xxx'", "unknown name repeat"},
		{"a great join", "let s = reduce(1..18, #acc + #acc, 'xx'); len(join(map(1..3000, 'x'), s)) == 1", "a text of more than 1 MiB"},
		{"a great replace", "let s = reduce(1..18, #acc + #acc, 'xx'); len(replace(s, 'x', s)) == 1", "a text of more than 1 MiB"},
		{"a search in a loop", "all(1..100000, not (# * 0 in vars.many))", tooMuch},
		{"a great uniq", "len(uniq(1..90000)) == 1", "too much work"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			_, err := asked(t, c.text)
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "jobs/a.yaml:6:") {
				t.Errorf("got  %.300v\nwant %s", err, c.want)
			}
			made, took := (after.TotalAlloc-before.TotalAlloc)>>20, time.Since(start)
			if made > 1024 || took > patience.Stretch(20*time.Second) {
				t.Errorf("took %s and %d MB", took, made)
			}
			t.Logf("%s, %d MB: %.160v", took.Round(time.Millisecond), made, err)
		})
	}
}

// TestExpressionsWithinLimits: what real conditions do stays possible, and maps come apart in one order.
func TestExpressionsWithinLimits(t *testing.T) {
	for _, text := range []string{
		"all(vars.many, # == 7)", "len(filter(vars.many, # in [6, 7])) == 3000", "sum(vars.many) == 21000", "1 + 1 == 2",
		"join(map(1..3, string(#)), ',') == '1,2,3'", "replace('aXa', 'X', 'b') == 'aba'", "uniq([1, 1, 2]) == [1, 2]",
		"keys(vars.ports) == ['a', 'b', 'c']", "values(vars.ports) == [1, 2, 3]", "toPairs(vars.ports)[2][1] == 3", "vars.word + 'y' == 'xy'",
		"{'a': vars.word}.a == 'x'", "split('a,b', ',')[1] == 'b'", "vars.word matches '^[x-z]$'", "len(1..9999) == 9999",
	} {
		if yes, err := asked(t, text); !yes || err != nil {
			t.Errorf("%s: %v, %v", text, yes, err)
		}
	}
}

// TestForEachIsOneList: what a forEach gives depends on nothing but the repository and the host.
func TestForEachIsOneList(t *testing.T) {
	files := map[string]string{
		"base/vars.yaml": "files: {'*': [{name: v}]}\n", "vars/v.yaml": "ports: {c: 3, a: 1, b: 2, d: 4}\n", "base/jobs.yaml": "jobs: {'*': [{name: a}]}\n",
		"jobs/a.yaml": "steps:\n- {name: s, forEach: keys(vars.ports), action: x, parameters: {a: '{{ item }}'}}\n",
	}
	first := compile(t, files).Digest
	for range 20 {
		if again := compile(t, files).Digest; again != first {
			t.Fatal("two catalogs of one snapshot differ")
		}
	}
	files["jobs/a.yaml"] = "steps:\n- {name: s, forEach: '[now()]', action: x}\n"
	if _, err := repo(files).Compile(web1); err == nil || !strings.Contains(err.Error(), "jobs/a.yaml:2:24: expression: unknown name now") {
		t.Error(err)
	}
}
