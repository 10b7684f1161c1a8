package action_test

import "maps"

// people are the account files of a host with a user alice, whose hash is that of no password.
func people(more ...string) []string {
	return append([]string{
		"f etc/passwd 644 root:x:0:0:root:/root:/bin/sh\nalice:x:1500:1500:An Alice:/home/alice:/bin/sh\n",
		"f etc/shadow 640 root:*:19000:0:99999:7:::\nalice:" + hash + ":19000:0:99999:7:::\n",
		"f etc/group 644 root:x:0:\nwheel:x:10:alice\ndocker:x:11:alice\nusers:x:100:\nalice:x:1500:\n",
		"f etc/gshadow 640 root:*::\nwheel:!::alice\ndocker:!::alice\nusers:*::\nalice:!::\n",
	}, more...)
}

const (
	hash  = "$6$pFQcySuN$zhQ8oFpeyE3WpThzEN5O6LJtZ.yX57FxZpnnBGo8Vmr66iuyt3ZojoVoX1LMIrghJfDPFGR2nkZgnOwI/1Gs30"
	other = "$y$j9T$WDZX3xYzjNDMH1Wp3A1bF.$GPYSIIYx9x8YEPnyYqZyRaXXzO8ZDuZOqfMKnT0IYQk"
	home  = "d home/alice 755"
)

func init() {
	maps.Copy(examples, map[string][]example{
		"user.present": {
			{name: "create", params: "{name: bob}", host: people(), want: "create", root: true},
			{name: "create with all", params: `{name: bob, uid: 1700, group: users, groups: [wheel, '11'], home: /srv/bob, shell: /bin/bash, comment: A Bob, password: '` + hash + `', expires: 2031-02-03, locked: true}`,
				host: people("f etc/skel/.profile 644 hello"), want: "create", root: true},
			{name: "create for the system", params: "{name: svc, system: true, shell: /usr/sbin/nologin, password: '*'}", host: people(), want: "create", root: true},
			{name: "create where its group is there", params: "{name: docker}", host: people(), want: "create", root: true},
			{name: "create without a home", params: "{name: bob, createHome: false}", host: people(), want: "create", root: true},
			{name: "create without shadow", params: "{name: bob, password: '" + other + "'}", host: []string{people()[0], people()[2]}, want: "create", root: true},
			{name: "right already", params: "{name: alice, uid: 1500, group: alice, groups: [wheel], home: /home/alice, shell: /bin/sh, comment: An Alice, password: '" + hash + "', expires: never, locked: false}", host: people(home)},
			{name: "groups in full", params: "{name: alice, groups: [docker, '10', alice], appendGroups: false}", host: people(home)},
			{name: "uid", params: "{name: alice, uid: 1600}", host: people(home), want: "uid 1500 -> 1600, only its home follows", root: true},
			{name: "primary group", params: "{name: alice, group: users}", host: people(home), want: "group alice -> users", root: true},
			{name: "primary group by number", params: "{name: alice, group: 100}", host: people(home), want: "group alice -> 100", root: true},
			{name: "one more group", params: "{name: alice, groups: [users, wheel]}", host: people(home), want: "groups +users", root: true},
			{name: "these groups only", params: "{name: alice, groups: [users, wheel], appendGroups: false}", host: people(home), want: "groups +users -docker", root: true},
			{name: "no groups", params: "{name: alice, groups: [], appendGroups: false}", host: people(home), want: "groups -wheel -docker", root: true},
			{name: "shell and comment", params: "{name: alice, shell: /bin/bash, comment: ''}", host: people(home), want: "shell /bin/sh -> /bin/bash, comment", root: true},
			{name: "a new home", params: "{name: alice, home: /srv/alice}", host: people("f home/alice/.rc 644 x"), want: "home /home/alice -> /srv/alice, make /srv/alice", root: true},
			{name: "a home that moves", params: "{name: alice, home: /home/al, moveHome: true}", host: people("f home/alice/.rc 644 x"), want: "home /home/alice -> /home/al", root: true},
			{name: "a home that is missing", params: "{name: alice}", host: people("f etc/skel/.rc 640 x", "d etc/skel/bin 700", "l etc/skel/l .rc"), want: "make /home/alice", root: true},
			{name: "a home where others write", params: "{name: alice}", host: people("d home 777"), want: "make /home/alice", root: true, fails: "home of alice: others than root can write to /home or above it"},
			{name: "a home that may be missing", params: "{name: alice, createHome: false}", host: people()},
			{name: "password", params: "{name: alice, password: '" + other + "'}", host: people(home), want: "password", root: true},
			{name: "no password", params: "{name: alice, password: '*'}", host: people(home), want: "password", root: true},
			{name: "locked", params: "{name: alice, locked: true}", host: people(home), want: "lock", root: true},
			{name: "unlocked", params: "{name: alice, locked: false}", root: true, want: "unlock",
				host: append(people(home), "f etc/shadow 640 alice:!"+hash+":19000:0:99999:7:::\n")},
			{name: "nothing to unlock", params: "{name: alice, locked: false}", fails: "user alice: there is no password to unlock",
				host: append(people(home), "f etc/shadow 640 alice:!:19000:0:99999:7:::\n")},
			{name: "a new user, unlocked without a password", params: "{name: bob, locked: false}", fails: "there is no password to unlock", host: people()},
			{name: "expires", params: "{name: alice, expires: 2031-02-03}", host: people(home), want: "expires never -> 2031-02-03", root: true},
			{name: "expires no more", params: "{name: alice, expires: never}", root: true, want: "expires 2030-01-01 -> never",
				host: append(people(home), "f etc/shadow 640 alice:!:19000:0:99999:7::21915:\n")},
			{name: "its own uid", params: "{name: alice, uid: 1500, expires: 2031-02-03}", host: people(home), want: "expires never -> 2031-02-03", root: true},
			{name: "uid is taken", params: "{name: bob, uid: 1500}", host: people(), want: "create", fails: "uid 1500 belongs to alice"},
			{name: "no such group", params: "{name: bob, groups: [wheel, nope]}", host: people(), want: "create", fails: `there is no group "nope" on this host: make it with a group.present step`},
			{name: "no such primary group", params: "{name: alice, group: nope}", host: people(home), want: "group alice -> nope", fails: `there is no group "nope"`},
			{name: "no account files", params: "{name: alice}", fails: "etc/passwd: no such file"},
			{name: "on a host", whole: true, setup: "userdel -r pt1 || true; groupadd -f ptg", params: "{name: pt1, groups: [ptg], shell: /bin/bash, password: '" + hash + "'}", want: "create"},
			{name: "changed on a host", whole: true, setup: "userdel -r pt2 || true; groupadd -f ptg; useradd -u 4241 -m -G ptg pt2",
				params: "{name: pt2, uid: 3900, groups: [], appendGroups: false, locked: true, password: '" + hash + "'}", want: "uid 4241 -> 3900, only its home follows, groups -ptg, password"},
		},
		"user.absent": {
			{name: "not there", params: "{name: bob}", host: people()},
			{name: "remove", params: "{name: alice}", host: people(home), want: "remove", root: true},
			{name: "with a home that is not there", params: "{name: alice, removeHome: true}", host: people(), want: "remove", root: true},
			{name: "a home of somebody else's", params: "{name: alice, removeHome: true}", host: people(home), want: "remove, with /home/alice", root: true,
				fails: "/home/alice, the home of alice, belongs to uid 0: leave out removeHome"},
			{name: "another root", params: "{name: toor}", host: []string{"f etc/passwd 644 toor:x:0:0::/root:/bin/sh\n"}, fails: "user toor has root's number 0"},
			{name: "on a host", whole: true, setup: "useradd -m pt3 || true", params: "{name: pt3, removeHome: true}", want: "remove, with /home/pt3"},
			{name: "with processes", whole: true, setup: "useradd -m pt4 || true; systemctl is-active -q pt4 || systemd-run -q --unit pt4 --uid pt4 sleep infinity",
				params: "{name: pt4}", want: "remove", fails: "currently used by process"},
		},
		"group.present": {
			{name: "create", params: "{name: ops}", host: people(), want: "create", root: true},
			{name: "create with all", params: "{name: ops, gid: 3000, members: [alice, root]}", host: people(), want: "create", root: true},
			{name: "create for the system", params: "{name: ops, system: true}", host: people(), want: "create", root: true},
			{name: "right already", params: "{name: wheel, gid: 10, members: [alice], appendMembers: false}", host: people()},
			{name: "gid", params: "{name: alice, gid: 1501}", host: people(), want: "gid 1500 -> 1501, files keep their group", root: true},
			{name: "one more member", params: "{name: wheel, members: [root]}", host: people(), want: "members +root", root: true},
			{name: "these members only", params: "{name: wheel, members: [root], appendMembers: false}", host: people(), want: "members +root -alice", root: true},
			{name: "no members", params: "{name: wheel, members: [], appendMembers: false}", host: people(), want: "members -alice", root: true},
			{name: "gid is taken", params: "{name: ops, gid: 10}", host: people(), want: "create", fails: "gid 10 belongs to wheel"},
			{name: "no such member", params: "{name: ops, members: [bob]}", host: people(), want: "create", fails: `there is no user "bob" on this host`},
			{name: "on a host", whole: true, setup: "groupdel ptg2 || true", params: "{name: ptg2, gid: 4300, members: [root]}", want: "create"},
		},
		"group.absent": {
			{name: "not there", params: "{name: ops}", host: people()},
			{name: "remove", params: "{name: wheel}", host: people(), want: "remove", root: true},
			{name: "a primary group", params: "{name: alice}", host: people(), want: "remove", fails: "group alice is the primary group of alice"},
			{name: "no account files", params: "{name: ops}", fails: "etc/group: no such file"},
			{name: "on a host", whole: true, setup: "groupadd -f ptg3", params: "{name: ptg3}", want: "remove"},
		},
	})
	mistakes = append(mistakes, []mistake{
		{"user.present", "{name: 'a:b'}", `jobs/a.yaml:4:22: name: "a:b" is no name for an account`},
		{"user.present", "{name: '-a'}", `name: "-a" is no name for an account`},
		{"user.present", "{name: '12'}", `name: "12" is no name for an account`},
		{"user.present", "{name: toor, uid: 0}", "jobs/a.yaml:4:33: uid: 0 is root's"},
		{"user.present", "{name: a, uid: -1}", "jobs/a.yaml:4:30: uid: -1 is no number of an account"},
		{"user.present", "{name: a, uid: 4294967295}", "jobs/a.yaml:4:30: uid: 4294967295 is no number of an account"},
		{"user.present", "{name: a, group: 'x y'}", `jobs/a.yaml:4:32: group: "x y" is no name`},
		{"user.present", "{name: a, groups: ['x,y']}", `jobs/a.yaml:4:33: groups: "x,y" is no name`},
		{"user.present", "{name: a, appendGroups: false}", "jobs/a.yaml:4:39: appendGroups: groups is missing"},
		{"user.present", "{name: a, home: x}", `jobs/a.yaml:4:31: home: "x" is not an absolute path`},
		{"user.present", "{name: a, shell: '/bin/a:b'}", `jobs/a.yaml:4:32: shell: "/bin/a:b" has a colon`},
		{"user.present", "{name: a, comment: 'a:b'}", `jobs/a.yaml:4:34: comment: "a:b" has a colon`},
		{"user.present", "{name: a, password: sEcret}", "jobs/a.yaml:4:35: password: it looks like clear text"},
		{"user.present", "{name: a, password: abcdefghijklm}", "jobs/a.yaml:4:35: password: it looks like clear text"},
		{"user.present", "{name: a, password: '$6$salt$short'}", "password: it looks like clear text, or like a hash that was cut"},
		{"user.present", "{name: a, expires: tomorrow}", `jobs/a.yaml:4:34: expires: "tomorrow" is no day: write 2030-12-31, or never`},
		{"user.absent", "{name: root}", "jobs/a.yaml:4:22: name: root is not removed"},
		{"user.absent", "{name: 'a b'}", `name: "a b" is no name for an account`},
		{"group.present", "{name: 'a b'}", `jobs/a.yaml:4:22: name: "a b" is no name for an account`},
		{"group.present", "{name: a, gid: -1}", "jobs/a.yaml:4:30: gid: -1 is no number of an account"},
		{"group.present", "{name: a, members: ['b:c']}", `jobs/a.yaml:4:34: members: "b:c" is no name for an account`},
		{"group.present", "{name: a, appendMembers: false}", "jobs/a.yaml:4:40: appendMembers: members is missing"},
		{"group.absent", "{name: root}", "jobs/a.yaml:4:22: name: root is not removed"},
		{"group.absent", "{name: '*'}", `name: "*" is no name for an account`},
	}...)
}
