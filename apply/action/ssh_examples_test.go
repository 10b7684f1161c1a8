package action_test

import "maps"

// Public keys whose private ones nobody has kept.
const (
	key1 = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMpNaqXbdv4j6vc211VA+HyrG5m+9yq0zmX24cJXuoDa"
	key2 = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDl9Tv8RzFbStJyJ2+0sDuv/eDtMpzeCiowWITtFSpy1"
)

// keysOf are a root's account files and root's own authorized_keys.
func keysOf(text string) []string {
	return []string{
		"f etc/passwd 644 root:x:0:0::/root:/bin/sh\nalice:x:1500:1500::/home/alice:/bin/sh\nbare:x:1501:1501::/:/bin/sh\n",
		"d root 700", "d root/.ssh 700", "f root/.ssh/authorized_keys 600 " + text,
	}
}

func init() {
	const file = "root/.ssh/authorized_keys"
	passwd := keysOf("")[0]
	maps.Copy(examples, map[string][]example{
		"ssh.authorized_key": {
			{name: "the first one", params: "{user: root, key: " + key1 + " a@b}", host: []string{passwd, "d root 700"}, want: "add a key", root: true},
			{name: "a new user's", params: "{user: alice, key: " + key1 + "}", host: []string{passwd, "d home/alice 755"}, want: "add a key", root: true},
			{name: "one more", params: "{user: root, key: " + key1 + "}", host: keysOf("# mine\n" + key2 + " x"), want: "add a key", root: true},
			{name: "several", params: "{user: root, keys: [" + key1 + ", " + key2 + " x]}", host: keysOf(""), want: "add 2 keys", root: true},
			{name: "right already", params: "{user: root, key: " + key1 + "}", host: keysOf("no-pty " + key1 + " other words\nnonsense"), root: true},
			{name: "its comment", params: "{user: root, key: " + key1 + ", comment: new}", host: keysOf("no-pty " + key1 + " old\n"), want: "change a key", root: true},
			{name: "its options", params: "{user: root, key: " + key1 + ", options: [no-pty, 'from=\"10.0.0.0/8,::1\"']}", host: keysOf(key1 + " old\n"), want: "change a key", root: true},
			{name: "no options", params: "{user: root, key: " + key1 + ", options: []}", host: keysOf("no-pty " + key1 + "\n"), want: "change a key", root: true},
			{name: "twice", params: "{user: root, key: 'no-pty " + key1 + "'}", host: keysOf(key1 + "\n" + key1 + " again\n"), want: "change a key, remove a key", root: true},
			{name: "no others", params: "{user: root, keys: [" + key1 + "], exclusive: true}", host: keysOf("# mine\n" + key2 + "\nnonsense\n"), want: "add a key, remove 2 keys", root: true},
			{name: "none at all", params: "{user: root, keys: [], exclusive: true}", host: keysOf(key2 + "\n"), want: "remove a key", root: true},
			{name: "absent", params: "{user: root, key: " + key1 + ", state: absent}", host: keysOf(key2 + "\n" + key1 + " a\n" + key1 + "\n"), want: "remove 2 keys", root: true},
			{name: "absent already", params: "{user: alice, key: " + key1 + ", state: absent}", host: []string{passwd, "d home/alice 755"}, root: true},
			{name: "modes", params: "{user: root, key: " + key1 + "}", want: ".ssh mode 0755 -> 0700, mode 0644 -> 0600", root: true,
				host: []string{passwd, "d root/.ssh 755", "f " + file + " 644 " + key1 + "\n"}},
			{name: "no such user", params: "{user: bob, key: " + key1 + "}", host: keysOf(""), want: "add a key", fails: `there is no user "bob" on this host: make it with a user.present step`},
			{name: "no home", params: "{user: alice, key: " + key1 + "}", host: keysOf(""), want: "add a key", fails: "there is no directory /home/alice, the home of alice"},
			{name: "the root as a home", params: "{user: bare, key: " + key1 + "}", host: keysOf(""), fails: `user bare has no home of its own: /etc/passwd says "/"`},
			{name: ".ssh is a link", params: "{user: root, key: " + key1 + "}", host: []string{passwd, "d etc/victim 700", "l root/.ssh /etc/victim"}, fails: "/root/.ssh is no directory (L", root: true},
			{name: "the file is a link", params: "{user: root, key: " + key1 + "}", host: []string{passwd, "d root/.ssh 700", "l " + file + " /etc/passwd"}, fails: "/root/.ssh/authorized_keys is no plain file", root: true},
			{name: "the file is a directory", params: "{user: root, key: " + key1 + "}", host: []string{passwd, "d " + file + " 700"}, fails: "authorized_keys is no plain file", root: true},
			{name: ".ssh is somebody else's", params: "{user: alice, key: " + key1 + "}", host: []string{passwd, "d home/alice/.ssh 700"}, fails: "/home/alice/.ssh belongs to uid 0: give it to alice", root: true},
			{name: "on a host", whole: true, setup: "id pt5 || useradd -m pt5; rm -rf ~pt5/.ssh", params: "{user: pt5, key: " + key1 + "}", want: "add a key"},
		},
		"ssh.known_host": {
			{name: "the first one", params: "{host: git.example.org, key: " + key1 + "}", host: []string{"d etc/ssh 755"}, want: "add"},
			{name: "a line of ssh-keyscan", params: "{host: git.example.org, key: git.example.org " + key1 + "}", host: []string{"f etc/ssh/ssh_known_hosts 644 git.example.org " + key1}},
			{name: "another port", params: "{host: Git.example.org, port: 2222, key: " + key1 + "}", host: []string{"f etc/ssh/ssh_known_hosts 644 git.example.org " + key1 + "\n"}, want: "add"},
			{name: "another key", params: "{host: git.example.org, key: " + key1 + "}", host: []string{"f etc/ssh/ssh_known_hosts 644 # ours\na,git.example.org " + key2 + " c\nb " + key2 + "\n"}, want: "another key"},
			{name: "one key too many", params: "{host: git.example.org, key: " + key1 + "}", host: []string{"f etc/ssh/ssh_known_hosts 644 git.example.org " + key1 + "\ngit.example.org " + key2 + "\n"}, want: "remove other keys"},
			{name: "a hashed line", params: "{host: localhost, key: " + key2 + "}", want: "another key",
				host: []string{"f etc/ssh/ssh_known_hosts 644 |1|CiJwHAZHUBvUJJgipjB+mq9Pfa0=|CQ/qtzBF8cbqXmSYFQGH6Y61yXw= " + key1 + "\n|1|nonsense|x " + key1 + "\n"}},
			{name: "absent", params: "{host: git.example.org, state: absent}", host: []string{"f etc/ssh/ssh_known_hosts 644 git.example.org " + key1 + "\nb " + key1 + "\n"}, want: "remove"},
			{name: "absent with this key", params: "{host: git.example.org, key: " + key2 + ", state: absent}", host: []string{"f etc/ssh/ssh_known_hosts 644 git.example.org " + key1 + "\n"}},
			{name: "of a user", params: "{host: git.example.org, key: " + key1 + ", user: root}", host: keysOf(""), want: "add", root: true},
			{name: "of a user who is not there", params: "{host: git.example.org, key: " + key1 + ", user: bob}", host: keysOf(""), want: "add", fails: `there is no user "bob"`},
			{name: "no ssh", params: "{host: git.example.org, key: " + key1 + "}", want: "add"},
		},
	})
	mistakes = append(mistakes, []mistake{
		{"ssh.authorized_key", "{user: a}", "jobs/a.yaml:2:3: key: is missing: give a key, or several in keys"},
		{"ssh.authorized_key", "{user: 'a b', key: x}", `jobs/a.yaml:4:22: user: "a b" is no name for an account`},
		{"ssh.authorized_key", "{user: a, key: x, keys: [y]}", "jobs/a.yaml:4:39: keys: key and keys exclude each other"},
		{"ssh.authorized_key", "{user: a, key: ssh-rsa nonsense}", "jobs/a.yaml:4:30: key: is no public key"},
		{"ssh.authorized_key", "{user: a, keys: [" + key1 + ", x]}", "jobs/a.yaml:4:31: keys: number 2 is no public key"},
		{"ssh.authorized_key", `{user: a, key: "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Blbn"}`, "key: is a private key: give the public one"},
		{"ssh.authorized_key", `{user: a, key: "` + key1 + `\n` + key2 + `"}`, "key: has several lines"},
		{"ssh.authorized_key", "{user: a, keys: [" + key1 + ", " + key2 + "], comment: c}", "comment: there are several keys"},
		{"ssh.authorized_key", "{user: a, key: " + key1 + ", state: absent, exclusive: true}", "exclusive: with state: absent it says nothing"},
		{"ssh.authorized_key", "{user: a, key: " + key1 + ", state: gone}", `"gone"`},
		{"ssh.authorized_key", "{user: a, key: no-pty " + key1 + ", options: [no-pty]}", "key: has options of its own"},
		{"ssh.authorized_key", `{user: a, key: ` + key1 + `, options: ['from="10']}`, "key: has options or a comment that do not make one line"},
		{"ssh.authorized_key", `{user: a, key: ` + key1 + `, comment: "x\ny"}`, "key: has options or a comment that do not make one line"},
		{"ssh.known_host", "{host: a}", "key: is missing: ssh-keyscan a shows it"},
		{"ssh.known_host", "{host: 'a b', key: x}", `jobs/a.yaml:4:22: host: "a b" is no name of one host`},
		{"ssh.known_host", "{host: a, port: 0, key: x}", "jobs/a.yaml:4:31: port: 0 is no port"},
		{"ssh.known_host", "{host: a, key: x}", "jobs/a.yaml:4:30: key: is no public key"},
		{"ssh.known_host", "{host: a, key: " + key1 + ", user: 'x y'}", `user: "x y" is no name for an account`},
	}...)
}
