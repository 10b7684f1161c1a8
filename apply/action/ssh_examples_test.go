package action_test

import (
	"maps"

	"github.com/pullet/pullet/apply/action/actiontest"
)

func init() {
	const file = "root/.ssh/authorized_keys"
	passwd := actiontest.KeysOf("")[0]
	maps.Copy(examples, map[string][]actiontest.Example{
		"ssh.authorized_key": {
			{Name: "the first one", Params: "{user: root, key: " + actiontest.Key1 + " a@b}", Host: []string{passwd, "d root 700"}, Want: "add a key", Root: true},
			{Name: "a new user's", Params: "{user: alice, key: " + actiontest.Key1 + "}", Host: []string{passwd, "d home/alice 755"}, Want: "add a key", Root: true},
			{Name: "one more", Params: "{user: root, key: " + actiontest.Key1 + "}", Host: actiontest.KeysOf("# mine\n" + actiontest.Key2 + " x"), Want: "add a key", Root: true},
			{Name: "several", Params: "{user: root, keys: [" + actiontest.Key1 + ", " + actiontest.Key2 + " x]}", Host: actiontest.KeysOf(""), Want: "add 2 keys", Root: true},
			{Name: "right already", Params: "{user: root, key: " + actiontest.Key1 + "}", Host: actiontest.KeysOf("no-pty " + actiontest.Key1 + " other words\nnonsense"), Root: true},
			{Name: "its comment", Params: "{user: root, key: " + actiontest.Key1 + ", comment: new}", Host: actiontest.KeysOf("no-pty " + actiontest.Key1 + " old\n"), Want: "change a key", Root: true},
			{Name: "its options", Params: "{user: root, key: " + actiontest.Key1 + ", options: [no-pty, 'from=\"10.0.0.0/8,::1\"']}", Host: actiontest.KeysOf(actiontest.Key1 + " old\n"), Want: "change a key", Root: true},
			{Name: "no options", Params: "{user: root, key: " + actiontest.Key1 + ", options: []}", Host: actiontest.KeysOf("no-pty " + actiontest.Key1 + "\n"), Want: "change a key", Root: true},
			{Name: "twice", Params: "{user: root, key: 'no-pty " + actiontest.Key1 + "'}", Host: actiontest.KeysOf(actiontest.Key1 + "\n" + actiontest.Key1 + " again\n"), Want: "change a key, remove a key", Root: true},
			{Name: "given twice", Params: "{user: root, keys: [" + actiontest.Key1 + " one, " + actiontest.Key1 + " one]}", Host: actiontest.KeysOf(""), Want: "add a key", Root: true},
			{Name: "no others", Params: "{user: root, keys: [" + actiontest.Key1 + "], exclusive: true}", Host: actiontest.KeysOf("# mine\n" + actiontest.Key2 + "\nnonsense\n"), Want: "add a key, remove 2 keys", Root: true},
			{Name: "none at all", Params: "{user: root, keys: [], exclusive: true}", Host: actiontest.KeysOf(actiontest.Key2 + "\n"), Want: "remove a key", Root: true},
			{Name: "absent", Params: "{user: root, key: " + actiontest.Key1 + ", state: absent}", Host: actiontest.KeysOf(actiontest.Key2 + "\n" + actiontest.Key1 + " a\n" + actiontest.Key1 + "\n"), Want: "remove 2 keys", Root: true},
			{Name: "absent already", Params: "{user: alice, key: " + actiontest.Key1 + ", state: absent}", Host: []string{passwd, "d home/alice 755"}, Root: true},
			{Name: "modes", Params: "{user: root, key: " + actiontest.Key1 + "}", Want: ".ssh mode 0755 -> 0700, mode 0644 -> 0600", Root: true,
				Host: []string{passwd, "d root/.ssh 755", "f " + file + " 644 " + actiontest.Key1 + "\n"}},
			{Name: "no such user", Params: "{user: bob, key: " + actiontest.Key1 + "}", Host: actiontest.KeysOf(""), Want: "add a key", Fails: `there is no user "bob" on this host: make it with a user.present step`},
			{Name: "no home", Params: "{user: alice, key: " + actiontest.Key1 + "}", Host: actiontest.KeysOf(""), Want: "add a key", Fails: "there is no directory /home/alice, the home of alice"},
			{Name: "the root as a home", Params: "{user: bare, key: " + actiontest.Key1 + "}", Host: actiontest.KeysOf(""), Fails: `user bare has no home of its own: /etc/passwd says "/"`},
			{Name: ".ssh is a link", Params: "{user: root, key: " + actiontest.Key1 + "}", Host: []string{passwd, "d etc/victim 700", "l root/.ssh /etc/victim"}, Fails: "/root/.ssh is no directory (L", Root: true},
			{Name: "the file is a link", Params: "{user: root, key: " + actiontest.Key1 + "}", Host: []string{passwd, "d root/.ssh 700", "l " + file + " /etc/passwd"}, Fails: "/root/.ssh/authorized_keys is no plain file", Root: true},
			{Name: "the file is a directory", Params: "{user: root, key: " + actiontest.Key1 + "}", Host: []string{passwd, "d " + file + " 700"}, Fails: "authorized_keys is no plain file", Root: true},
			{Name: ".ssh is somebody else's", Params: "{user: alice, key: " + actiontest.Key1 + "}", Host: []string{passwd, "d home/alice/.ssh 700"}, Fails: "/home/alice/.ssh belongs to uid 0: give it to alice", Root: true},
			{Name: "on a host", Whole: true, Setup: "id pt5 || useradd -m pt5; rm -rf ~pt5/.ssh", Params: "{user: pt5, key: " + actiontest.Key1 + "}", Want: "add a key"},
		},
		"ssh.known_host": {
			{Name: "the first one", Params: "{host: git.example.org, key: " + actiontest.Key1 + "}", Host: []string{"d etc/ssh 755"}, Want: "add"},
			{Name: "a line of ssh-keyscan", Params: "{host: git.example.org, key: git.example.org " + actiontest.Key1 + "}", Host: []string{"f etc/ssh/ssh_known_hosts 644 git.example.org " + actiontest.Key1}},
			{Name: "another port", Params: "{host: Git.example.org, port: 2222, key: " + actiontest.Key1 + "}", Host: []string{"f etc/ssh/ssh_known_hosts 644 git.example.org " + actiontest.Key1 + "\n"}, Want: "add"},
			{Name: "another key", Params: "{host: git.example.org, key: " + actiontest.Key1 + "}", Host: []string{"f etc/ssh/ssh_known_hosts 644 # ours\na,git.example.org " + actiontest.Key2 + " c\nb " + actiontest.Key2 + "\n"}, Want: "another key"},
			{Name: "one key too many", Params: "{host: git.example.org, key: " + actiontest.Key1 + "}", Host: []string{"f etc/ssh/ssh_known_hosts 644 git.example.org " + actiontest.Key1 + "\ngit.example.org " + actiontest.Key2 + "\n"}, Want: "remove other keys"},
			{Name: "a hashed line", Params: "{host: localhost, key: " + actiontest.Key2 + "}", Want: "another key",
				Host: []string{"f etc/ssh/ssh_known_hosts 644 |1|CiJwHAZHUBvUJJgipjB+mq9Pfa0=|CQ/qtzBF8cbqXmSYFQGH6Y61yXw= " + actiontest.Key1 + "\n|1|nonsense|x " + actiontest.Key1 + "\n"}},
			{Name: "absent", Params: "{host: git.example.org, state: absent}", Host: []string{"f etc/ssh/ssh_known_hosts 644 git.example.org " + actiontest.Key1 + "\nb " + actiontest.Key1 + "\n"}, Want: "remove"},
			{Name: "absent with this key", Params: "{host: git.example.org, key: " + actiontest.Key2 + ", state: absent}", Host: []string{"f etc/ssh/ssh_known_hosts 644 git.example.org " + actiontest.Key1 + "\n"}},
			{Name: "of a user", Params: "{host: git.example.org, key: " + actiontest.Key1 + ", user: root}", Host: actiontest.KeysOf(""), Want: "add", Root: true},
			{Name: "of a user who is not there", Params: "{host: git.example.org, key: " + actiontest.Key1 + ", user: bob}", Host: actiontest.KeysOf(""), Want: "add", Fails: `there is no user "bob"`},
			{Name: "no ssh", Params: "{host: git.example.org, key: " + actiontest.Key1 + "}", Want: "add"},
		},
	})
	mistakes = append(mistakes, []mistake{
		{"ssh.authorized_key", "{user: a}", "jobs/a.yaml:2:3: key: is missing: give a key, or several in keys"},
		{"ssh.authorized_key", "{user: 'a b', key: x}", `jobs/a.yaml:4:22: user: "a b" is no name for an account`},
		{"ssh.authorized_key", "{user: a, key: x, keys: [y]}", "jobs/a.yaml:4:39: keys: key and keys exclude each other"},
		{"ssh.authorized_key", "{user: a, key: ssh-rsa nonsense}", "jobs/a.yaml:4:30: key: is no public key"},
		{"ssh.authorized_key", "{user: a, keys: [" + actiontest.Key1 + " one, " + actiontest.Key2 + ", " + actiontest.Key1 + " two]}", "keys: number 3 is the same key as number 1, with another comment"},
		{"ssh.authorized_key", "{user: a, keys: [" + actiontest.Key1 + ", x]}", "jobs/a.yaml:4:31: keys: number 2 is no public key"},
		{"ssh.authorized_key", `{user: a, key: "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Blbn"}`, "key: is a private key: give the public one"},
		{"ssh.authorized_key", `{user: a, key: "` + actiontest.Key1 + `\n` + actiontest.Key2 + `"}`, "key: has several lines"},
		{"ssh.authorized_key", "{user: a, keys: [" + actiontest.Key1 + ", " + actiontest.Key2 + "], comment: c}", "comment: there are several keys"},
		{"ssh.authorized_key", "{user: a, key: " + actiontest.Key1 + ", state: absent, exclusive: true}", "exclusive: with state: absent it says nothing"},
		{"ssh.authorized_key", "{user: a, key: " + actiontest.Key1 + ", state: gone}", `"gone"`},
		{"ssh.authorized_key", "{user: a, key: no-pty " + actiontest.Key1 + ", options: [no-pty]}", "key: has options of its own"},
		{"ssh.authorized_key", `{user: a, key: ` + actiontest.Key1 + `, options: ['from="10']}`, "key: has options or a comment that do not make one line"},
		{"ssh.authorized_key", `{user: a, key: ` + actiontest.Key1 + `, comment: "x\ny"}`, "key: has options or a comment that do not make one line"},
		{"ssh.known_host", "{host: a}", "key: is missing: ssh-keyscan a shows it"},
		{"ssh.known_host", "{host: 'a b', key: x}", `jobs/a.yaml:4:22: host: "a b" is no name of one host`},
		{"ssh.known_host", "{host: a, port: 0, key: x}", "jobs/a.yaml:4:31: port: 0 is no port"},
		{"ssh.known_host", "{host: a, key: x}", "jobs/a.yaml:4:30: key: is no public key"},
		{"ssh.known_host", "{host: a, key: " + actiontest.Key1 + ", user: 'x y'}", `user: "x y" is no name for an account`},
	}...)
}
