package render

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
)

// secretCatalog compiles a step whose content is a template, on a node with secrets.
func secretCatalog(t *testing.T, template string) (*Catalog, error) {
	t.Helper()
	vars, secrets, err := HostVars(fstest.MapFS{"s.yaml": {Data: []byte(
		"sensitive: true\nn: 3\nf: 1.5\nlist: [a, b, c, d]\nsmall: x\ntext: 'a \"secret\": {value}'\n")}}, "vars.d")
	if err != nil {
		t.Fatal(err)
	}
	job := fmt.Sprintf("steps: [{name: a, action: x, parameters: {content: %s}}]", template)
	repo := Open(Layer{Name: "main", FS: fstest.MapFS{
		"base/jobs.yaml": {Data: []byte("jobs: {'*': [{name: a}]}")}, "jobs/a.yaml": {Data: []byte(job)},
	}})
	return repo.Compile(Input{Node: Node{Name: "n"}, HostVars: vars, Secrets: secrets})
}

// TestSecretsInTemplates: secrets do what other values do, whatever function reads them, and each step with one is
// known.
func TestSecretsInTemplates(t *testing.T) {
	t.Parallel()
	for template, want := range map[string]any{
		`{{ vars.n }}`:                                      3,
		`"{{ vars.n }}"`:                                    "3",
		`{{ add vars.n 1 }}`:                                4,
		`{{ mul vars.n 2 }}`:                                6,
		`{{ mulf vars.f 2 }}`:                               3,
		`{{ indent vars.n "x" | quote }}`:                   "   x",
		`{{ trunc vars.n "abcdef" }}`:                       "abc",
		`{{ index vars.list vars.n }}`:                      "d",
		`{{ slice vars.list 0 vars.n | join "," | quote }}`: "a,b,c",
		`{{ chunk vars.n vars.list | toJson }}`:             []any{[]any{"a", "b", "c"}, []any{"d"}},
		`{{ until vars.n | len }}`:                          3,
		`{{ toJson vars.n }}`:                               3,
		`{{ if and (eq vars.n 3) (gt vars.f 1.4) }}{{ vars.small }}{{ end }}`: "x",
		`{{ round vars.f 0 }}`:                              2,
		`{{ vars.text }}`:                                   `a "secret": {value}`,
		`{{ dict "k" vars.text | toYaml | quote }}`:         "k: 'a \"secret\": {value}'",
		`{{ with $t := vars.text }}{{ upper $t }}{{ end }}`: `A "SECRET": {VALUE}`,
	} {
		cat, err := secretCatalog(t, template)
		if err != nil {
			t.Errorf("%s: %v", template, err)
			continue
		}
		s := cat.Jobs[0].Steps[0]
		if got := s.Params.Value()["content"]; fmt.Sprintf("%T %[1]v", got) != fmt.Sprintf("%T %[1]v", want) {
			t.Errorf("%s: %T %[2]v, want %T %[3]v", template, got, want)
		}
		if !s.Secret || !s.Sensitive {
			t.Errorf("%s: the step is not known to hold a secret", template)
		}
	}
}

// TestSecretsInMessages: no mistake quotes one.
func TestSecretsInMessages(t *testing.T) {
	t.Parallel()
	for _, template := range []string{
		`{{ fail vars.text }}`, `{{ required vars.text "" }}`, `{{ index vars.text "x" }}`, `{{ regexMatch vars.text "(" }}`,
		`{{ vars.text | upper | fail }}`, `{{ toYaml vars.text }} }`, `x, timeout: "{{ vars.text }}"`,
		`{{ int vars.text }}`, `{{ add 1 vars.text }}`, `{{ mulf 2 vars.text }}`, `{{ toDecimal vars.text }}`, `{{ atoi vars.text }}`, `{{ printf "%d" vars.text }}`,
		`{{ fromJson vars.text }}`, `{{ b64dec vars.text }}`, `{{ join "," (list vars.text nil) }}`,
	} {
		_, err := secretCatalog(t, template)
		if err == nil {
			continue // some of them are no mistakes here
		}
		for _, secret := range []string{"value}", "VALUE}"} {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%s: %v", template, err)
			}
		}
	}
}

// TestTooManySecrets: what would be searched for in every text has a limit, with a mistake and no silence.
func TestTooManySecrets(t *testing.T) {
	t.Parallel()
	s := newSecretTexts()
	vars := map[string]any{}
	for i := range mostSecrets + 1 {
		vars[fmt.Sprint("k", i)] = fmt.Sprint("secret number ", i)
	}
	if err := s.addVars(vars); err == nil || !strings.HasPrefix(err.Error(), "more than 10000 secrets") {
		t.Error(err)
	}
	s = newSecretTexts()
	for i := range 200 {
		if err := s.addMade(fmt.Sprint("secret number ", i)); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.found) != 200 || !s.within("x secret number 7") || s.redact("a secret number 199 b") != "a (secret) b" {
		t.Errorf("%d texts", len(s.found))
	}
}
