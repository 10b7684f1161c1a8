package render

import (
	"os/exec"
	"testing"
)

// TestShquote gives texts to a shell: each is one word, and the word is the text.
func TestShquote(t *testing.T) {
	texts := append([]string{"", "a", "it's", "$(id)", "`id`", "a  b", "*", "-n", "\\", "'", "''", "a\nb"}, hostile...)
	for _, text := range texts {
		word, err := shquote(text)
		if text == "\x00" {
			if err == nil || err.Error() != "a word of a shell cannot hold the character NUL" {
				t.Errorf("NUL: %v", err)
			}
			continue
		}
		out, bad := exec.Command("/bin/sh", "-c", "printf '%s|' "+word).Output()
		if err != nil || bad != nil || string(out) != text+"|" {
			t.Errorf("%.40q: got %.60q, %v, %v", text, out, err, bad)
		}
	}
	job := "steps:\n- name: one\n  action: x\n  parameters:\n    plain: {{ shquote vars.list }}\n"
	if _, err := repo(opaqueRepo(map[string]string{"jobs/a.yaml": job})).Compile(of("a")); err == nil {
		t.Error("a list is a word")
	}
	job = "steps:\n- name: one\n  action: x\n  parameters:\n    plain: {{ shquote server.fqdn }}\n    single: 'x {{ shquote server.fqdn }}'\n    own: {{ shquote `it's` }}\n"
	cat, err := repo(opaqueRepo(map[string]string{"jobs/a.yaml": job})).Compile(of("it's"))
	if err != nil {
		t.Fatal(err)
	}
	got := cat.Jobs[0].Steps[0].Params.Value()
	if want := `'it'\''s'`; got["plain"] != want || got["single"] != "x "+want || got["own"] != want {
		t.Errorf("got %v", got)
	}
	if value, err := cat.Value("shquote('it' + vars.nested.fqdn)"); err != nil || value != `'itit'\''s'` {
		t.Errorf("in an expression: %v, %v", value, err)
	}
}
