package journal

import "testing"

// TestAttempt: what a journal knows of the last attempt at a step, also after the run and after a pull that was killed.
func TestAttempt(t *testing.T) {
	t.Parallel()
	claim := func(j *Journal) error { return j.Claim("s", "key", "1") }
	start := func(j *Journal) error { return j.Start("s", nil) }
	fails := func(j *Journal) error { return j.End("s", "key", false, "no") }
	succeeds := func(j *Journal) error { return j.End("s", "key", true, "yes") }
	finish := func(j *Journal) error { return j.Finish(every, none) }
	opens := func(j *Journal) error { return j.End("s", OpenStep, true, "half") }
	other := func(j *Journal) error { j.Begin("r2", "v1", "another digest"); return j.Start("t", nil) }
	for name, c := range map[string]struct {
		do   []func(*Journal) error
		want Attempt
		done bool
	}{
		"nothing":                    {nil, Attempt{}, false},
		"about to start":             {[]func(*Journal) error{claim}, Attempt{"1", false}, false},
		"in its middle":              {[]func(*Journal) error{claim, start}, Attempt{"1", true}, false},
		"in its middle, another run": {[]func(*Journal) error{claim, start, other}, Attempt{"1", true}, false},
		"its conditions are open":    {[]func(*Journal) error{claim, start, opens}, Attempt{"1", true}, false},
		"failed":                     {[]func(*Journal) error{claim, start, fails}, Attempt{"1", false}, false},
		"failed, and the run ended":  {[]func(*Journal) error{claim, start, fails, finish}, Attempt{"1", false}, false},
		"done":                       {[]func(*Journal) error{claim, start, succeeds}, Attempt{}, true},
		"done, and the run ended":    {[]func(*Journal) error{claim, start, succeeds, finish}, Attempt{}, true},
	} {
		dir := t.TempDir()
		j, err := Open(dir)
		must(t, err)
		j.Begin("r1", "v1", "digest")
		for _, do := range c.do {
			must(t, do(j))
		}
		for _, reopened := range []bool{false, true} { // it may be killed here
			if reopened {
				j, err = Open(dir)
				must(t, err)
			}
			var result string
			if got := j.Attempt("s", "key"); got != c.want || j.Done("s", "key", &result) != c.done || j.Attempt("s", "another key") != (Attempt{}) {
				t.Errorf("%s (reopened %v): %+v, want %+v", name, reopened, got, c.want)
			}
		}
	}
}
