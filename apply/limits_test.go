package apply_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/render"
)

// TestLimitsOfRequisites: steps that mean thousands of others, by the thousand, or that ask so many whether they are
// meant, are a mistake with a place, soon.
func TestLimitsOfRequisites(t *testing.T) {
	for name, c := range map[string]struct {
		steps   int
		pattern string
	}{
		"too many are meant": {1200, "s*"},  // 1.4 million, of 2.9 million names
		"too many are asked": {2500, "s1?"}, // ten are meant
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			b.WriteString("runOptions: {ordering: justdoit}\nsteps:\n")
			for i := range c.steps {
				fmt.Fprintf(&b, "- {name: s%d, action: test.succeed}\n- {name: t%d, action: test.succeed, require: ['%s']}\n", i, i, c.pattern)
			}
			files := fstest.MapFS{"base/jobs.yaml": {Data: []byte("jobs: {'*': [{name: a}]}\n")}, "jobs/a.yaml": {Data: []byte(b.String())}}
			cat, err := render.Open(render.Layer{Name: "main", FS: files}).Compile(render.Input{Node: render.Node{Name: "n1"}})
			if err != nil {
				t.Fatal(err)
			}
			specs := []apply.Spec{{Name: "test.succeed", New: func() apply.Action { return &slow{} }}}
			_, err = apply.Bind(cat, specs)
			if err == nil || !strings.Contains(err.Error(), "the requisites of this host mean too many steps") || !strings.HasPrefix(err.Error(), "jobs/a.yaml:") {
				t.Errorf("got %.300v", err)
			}
		})
	}
}
