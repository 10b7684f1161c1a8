package gitremote

import "testing"

// TestTry: the command that a message names reads the remote with what pullet itself uses: its key and known hosts, its
// authority, its proxy. It shows no secret.
func TestTry(t *testing.T) {
	key := Auth{SSHKey: "/etc/pullet/key", KnownHosts: "/etc/pullet/known_hosts"}
	ssh := "GIT_SSH_COMMAND='ssh -i /etc/pullet/key -o IdentitiesOnly=yes -o UserKnownHostsFile=/etc/pullet/known_hosts' git ls-remote "
	for want, r := range map[string]Remote{
		ssh + "git@git.example.org:ops/state.git":                                                            {URL: "git@git.example.org:ops/state.git", Auth: key},
		ssh + "ssh://git@git.example.org:2222/state":                                                         {URL: "ssh://git:secret@git.example.org:2222/state", Auth: key, Proxy: "http://p:3128"},
		"git ls-remote https://git.example.org/state":                                                        {URL: "https://ada:secret@git.example.org/state?token=secret"},
		"GIT_SSL_CAINFO=/etc/ca.pem git ls-remote https://git.example.org/state":                             {URL: "https://git.example.org/state", TLS: TLS{CA: "/etc/ca.pem"}},
		"git -c http.proxy=http://p:3128 ls-remote http://git.example.org/state":                             {URL: "http://git.example.org/state", Proxy: "http://p:3128"},
		"GIT_SSL_CAINFO=/etc/ca.pem git -c http.proxy=http://p:3128 ls-remote https://git.example.org/state": {URL: "https://git.example.org/state", TLS: TLS{CA: "/etc/ca.pem"}, Proxy: "http://p:3128"},
		"git ls-remote /srv/state.git":                                                                       {URL: "/srv/state.git"},
	} {
		if got := r.Try(); got != want {
			t.Errorf("%+v:\n%s\nwant\n%s", r, got, want)
		}
	}
}
