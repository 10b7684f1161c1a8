package render

import (
	"strings"
	"testing"
)

// TestSecrets: secrets in clear are found, and never shown.
func TestSecrets(t *testing.T) {
	for text, want := range map[string]string{
		"db_password: hunter2\n": "vars/v.yaml:1:14: warning: a password stands here in clear", "a: {password: \"hunter2\", b: 1}\n": "vars/v.yaml:1:15: warning: a password",
		"api_token: hunter2hunter2hunter2aaaa==\n": "a secret stands",
		"aws: AKIA" + "IOSFODNN7HUNTER2\n":         "vars/v.yaml:1:6: warning: an AWS access key", "k: |\n  -----BEGIN RSA PRIVATE KEY-----\n  hunter2\n": "vars/v.yaml:2:3: warning: a private key",
		"secret: short\n": "", "password: '{{ vars.x }}'\n": "", "password: true\n": "", "password_file: /etc/x\n": "", "password: $6$abc\n": "",
		"password:\n  min: 3\n": "", "# the password: see the wiki\n": "", "password: /run/secrets/db\n": "", "password: \"\"\n": "",
	} {
		var got []string
		var found ErrorList
		for _, f := range repo(map[string]string{"vars/v.yaml": text}).Texts() {
			found = append(found, f.SecretsInClear()...)
		}
		for _, e := range found {
			if strings.Contains(e.Error()+e.Excerpt, "hunter2") {
				t.Errorf("%q: the value is shown: %s\n%s", text, e, e.Excerpt)
			}
			got = append(got, e.Error())
		}
		all := strings.Join(got, "\n")
		if (want == "") != (all == "") || !strings.Contains(all, want) {
			t.Errorf("%q: got %q, want %q", text, all, want)
		}
	}
}
