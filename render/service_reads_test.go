package render

import (
	"errors"
	"slices"
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
