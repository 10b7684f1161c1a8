package render

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// TestServicesOfMistakes: a mistake says which services the action reads that failed, however it is written.
func TestServicesOfMistakes(t *testing.T) {
	for _, c := range []struct {
		action string
		want   []string
	}{
		{"{{ (index (services `db`) 0).address }}", []string{"db"}},
		{"{{ $db := services `db` }}\n    # {{ (index $db 0).address }}", []string{"db"}},
		{"{{ $db := services `db` }}{{ $first := index $db 0 }}", []string{"db"}},
		{"{{ with services `db` }}{{ end }}{{ index (services (print `d` `b`)) 0 }}", []string{""}},
		{"{{ range services `db` }}{{ end }}{{ index vars.services 0 }}", nil},
		{"{{ $x := services `db` }}" + strings.Repeat("{{ $x = print $x $x }}", 40) + "{{ index $x.a 0 }}", []string{"db"}},
		{"{{ services `db` | len }}{{ vars.missing }} # services `db`", nil},
	} {
		job := "steps:\n  - name: x\n    # " + c.action + "\n    action: test.succeed\n"
		_, err := repo(map[string]string{"base/jobs.yaml": "jobs: {'*': [{name: a}]}\n", "jobs/a.yaml": job}).Compile(web1)
		var bad *Error
		if !errors.As(err, &bad) || !slices.Equal(bad.Services, c.want) {
			t.Errorf("%s: %q, want %q (%v)", c.action, bad.Services, c.want, err)
		}
	}
}

// TestMissingInABlock: what stands in a block that cannot be made is not said to be missing.
func TestMissingInABlock(t *testing.T) {
	job := "steps:\n- name: x\n  action: test.succeed\n  conditions:\n    when:\n      {{ if vars.nothing }}\n      condition: 'true'\n      {{ end }}\n"
	_, err := repo(map[string]string{"base/jobs.yaml": "jobs: {'*': [{name: a}]}\n", "jobs/a.yaml": job}).Compile(web1)
	if err == nil || strings.Contains(err.Error(), "is missing") || !strings.Contains(err.Error(), "nothing") {
		t.Errorf("%v", err)
	}
}
