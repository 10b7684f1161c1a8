package action_test

import (
	"maps"

	"github.com/pullet/pullet/apply/action/actiontest"
)

// noAccounts is a host with nobody but root.
var noAccounts = []string{"f etc/passwd 644 root:x:0:0::/:/bin/sh", "f etc/group 644 root:x:0:"}

func init() {
	maps.Copy(examples, map[string][]actiontest.Example{
		"file.managed": {
			{Name: "on a whole host", Params: "{name: /etc/lab.conf, content: x, owner: root, group: adm, mode: 0640}", Whole: true, Setup: "rm -f /etc/lab.conf", Want: "create, mode 0640, group adm"},
			{Name: "create", Params: "{name: /motd, content: hello}", Want: "create"},
			{Name: "create an empty one", Params: "{name: /motd}", Want: "create"},
			{Name: "create with empty content", Params: "{name: /motd, content: ''}", Want: "create"},
			{Name: "with its parents", Params: "{name: /a/b/motd, content: hello, makeDirs: true}", Want: "create"},
			{Name: "right already", Params: "{name: /motd, content: hello, mode: 0644}", Host: []string{"f motd 644 hello"}},
			{Name: "only there", Params: "{name: /motd}", Host: []string{"f motd 600 anything"}},
			{Name: "content", Params: "{name: /motd, content: hello}", Host: []string{"f motd 600 old"}, Want: "content"},
			{Name: "emptied", Params: "{name: /motd, content: ''}", Host: []string{"f motd 600 old"}, Want: "content"},
			{Name: "mode", Params: "{name: /motd, content: hello, mode: 0600}", Host: []string{"f motd 644 hello"}, Want: "mode 0644 -> 0600"},
			{Name: "mode alone", Params: "{name: /motd, mode: '4755'}", Host: []string{"f motd 644 hello"}, Want: "mode 0644 -> 4755"},
			{Name: "content and mode", Params: "{name: /motd, content: new, mode: 0o600}", Host: []string{"f motd 644 old"}, Want: "content, mode 0644 -> 0600"},
			{Name: "a link stands there", Params: "{name: /motd, content: new}", Host: []string{"f other 644 x", "l motd other"}, Want: "replace a symbolic link by a file"},
			{Name: "a link stands there, no content", Params: "{name: /motd, mode: 0600}", Host: []string{"f other 644 x", "l motd other"}, Want: "mode 0644 -> 0600"},
			{Name: "a link stands there, only there", Params: "{name: /motd}", Host: []string{"f other 644 x", "l motd other"}},
			{Name: "a link stands there, not replaced", Params: "{name: /motd, content: new, replace: false, mode: 0600}", Host: []string{"f a/other 644 x", "l motd l", "l l /a/other"}, Want: "mode 0644 -> 0600"},
			{Name: "a dangling link, not replaced", Params: "{name: /motd, content: new, replace: false, mode: 0600}", Host: []string{"l motd gone"}},
			{Name: "a dangling link, no content", Params: "{name: /etc/motd, mode: 0600}", Host: []string{"l etc/motd ../gone"}, Fails: "/etc/motd is a symbolic link to /gone, which does not exist; make that first, or give content"},
			{Name: "a link to a directory, no content", Params: "{name: /motd, mode: 0600}", Host: []string{"d d 755", "l motd d"}, Fails: "/motd is a directory"},
			{Name: "a loop of links, no content", Params: "{name: /motd, mode: 0600}", Host: []string{"l motd motd"}, Fails: "too many levels of symbolic links"},
			{Name: "a dangling link", Params: "{name: /motd, content: new}", Host: []string{"l motd gone"}, Want: "replace a symbolic link by a file"},
			{Name: "validate", Params: "{name: /motd, content: hello, validate: grep -q hello %s}", Want: "create"},
			{Name: "validate fails", Params: "{name: /motd, content: hello, validate: 'exit 7 # %s'}", Want: "create", Fails: "validate: exit 7 # %s: exit code 7; the old file is untouched"},
			{Name: "no parent", Params: "{name: /a/b, content: hello}", Fails: "there is no directory /a"},
			{Name: "a directory stands there", Params: "{name: /d, content: x}", Host: []string{"d d 755"}, Fails: "/d is a directory"},
			{Name: "no such owner", Params: "{name: /motd, content: x, owner: nobody-has-this}", Host: noAccounts, Want: "create, owner nobody-has-this", Fails: `there is no user "nobody-has-this" on this host: make it with a user.present step before this one`},
			{Name: "no such owner and group of a file", Params: "{name: /motd, content: x, mode: 0600, owner: app, group: web}", Host: append(noAccounts, "f motd 644 x"),
				Want: "mode 0644 -> 0600, owner app (not there yet), group web (not there yet)", Fails: `there is no user "app" on this host`},
			{Name: "no such owner of a tree", Params: "{name: /site, source: site, recurse: true, owner: app}", Host: noAccounts, Files: map[string]string{"site/a": "a"},
				Want: "create 2", Fails: `there is no user "app" on this host`},
			{Name: "backup", Params: "{name: /motd, content: new, backup: true}", Host: []string{"f motd 644 old"}, Want: "content"},
			{Name: "backup of a link", Params: "{name: /motd, content: new, backup: true}", Host: []string{"l motd gone"}, Want: "replace a symbolic link by a file"},
		},
		"file.directory": {
			{Name: "create", Params: "{name: /a/b}", Want: "create"},
			{Name: "create with a mode", Params: "{name: /a, mode: 0700}", Want: "create, mode 0700"},
			{Name: "right already", Params: "{name: /a, mode: 0700}", Host: []string{"d a 700"}},
			{Name: "mode", Params: "{name: /a, mode: 0700}", Host: []string{"d a 755"}, Want: "mode 0755 -> 0700"},
			{Name: "a link to one", Params: "{name: /l, mode: 0700}", Host: []string{"d a 755", "l l /a"}, Want: "mode 0755 -> 0700"},
			{Name: "hard links below it", Params: "{name: /a, owner: '1500', recurse: true, fileMode: 0640}", Host: []string{"f a/b/c 644", "f a/one 644"}, Root: true,
				Prepare: func(s *actiontest.Scene) { s.Link("a/one", "a/b/two") }, Want: "owner 0 -> 1500, below it: change 4"},
			{Name: "a file stands there", Params: "{name: /a}", Host: []string{"f a 644"}, Fails: "/a is not a directory"},
			{Name: "no such owner", Params: "{name: /a/b, owner: app}", Host: noAccounts, Want: "create, owner app", Fails: `there is no user "app" on this host`},
			{Name: "no such group", Params: "{name: /a, group: web}", Host: append(noAccounts, "d a 755"), Want: "group web (not there yet)",
				Fails: `there is no group "web" on this host: make it with a group.present step before this one`},
			{Name: "no such owner of what is below", Params: "{name: /a, owner: app, recurse: true}", Host: append(noAccounts, "f a/b 644"),
				Want: "owner app (not there yet), below it: change 1", Fails: `there is no user "app" on this host`},
		},
		"file.symlink": {
			{Name: "create", Params: "{name: /l, target: /x}", Want: "create, to /x"},
			{Name: "right already", Params: "{name: /l, target: /x}", Host: []string{"l l /x"}},
			{Name: "another target", Params: "{name: /l, target: /x}", Host: []string{"l l /y"}, Want: "target /y -> /x"},
			{Name: "a file stands there", Params: "{name: /l, target: /x}", Host: []string{"f l 644"}, Fails: "is no symbolic link"},
			{Name: "force", Params: "{name: /l, target: /x, force: true}", Host: []string{"f l 644"}, Want: "replace a file by a link to /x"},
			{Name: "no such owner", Params: "{name: /l, target: /x, owner: app}", Host: append(noAccounts, "l l /x"), Want: "owner app (not there yet)", Fails: `there is no user "app" on this host`},
			{Name: "force does not remove a directory", Params: "{name: /l, target: /x, force: true}", Host: []string{"d l 755"}, Fails: "is no symbolic link"},
		},
		"file.absent": {
			{Name: "not there", Params: "{name: /a/b}"},
			{Name: "a file", Params: "{name: /a/b}", Host: []string{"f a/b 644"}, Want: "remove"},
			{Name: "a link, not what it names", Params: "{name: /a/l}", Host: []string{"f a/b 644", "l a/l b"}, Want: "remove"},
			{Name: "a directory", Params: "{name: /a/d}", Host: []string{"f a/d/e/f 644"}, Want: "remove the directory and what is in it"},
			{Name: "below a file", Params: "{name: /a/b/c}", Host: []string{"f a/b 644"}},
			{Name: "backup", Params: "{name: /a/b, backup: true}", Host: []string{"f a/b 644 x"}, Want: "remove"},
			{Name: "only empty, and it is", Params: "{name: /a/d, onlyEmpty: true}", Host: []string{"d a/d 755"}, Want: "remove the empty directory"},
			{Name: "only empty, and it is not", Params: "{name: /a/d, onlyEmpty: true}", Host: []string{"f a/d/f 644"}},
		},
	})
	mistakes = append(mistakes, []mistake{
		{"file.managed", "{content: x}", `jobs/a.yaml:2:3: parameters: "name" is missing`},
		{"file.managed", "{name: motd}", `jobs/a.yaml:4:22: name: "motd" is not an absolute path`},
		{"file.managed", "{name: /m, mode: rw}", `jobs/a.yaml:4:32: mode: "rw" is not a mode`},
		{"file.managed", "{name: /m, mode: 0888}", `jobs/a.yaml:4:32: mode: "0888" is not a mode`},
		{"file.managed", "{name: /m, mode: '17777'}", `jobs/a.yaml:4:32: mode: "17777" is not a mode`},
		{"file.managed", "{name: /m, content: a, source: b}", "jobs/a.yaml:4:46: source: content and source exclude each other"},
		{"file.managed", "{name: /m, template: true}", "jobs/a.yaml:4:36: template: only a source can be a template"},
		{"file.managed", "{name: /m, validate: 'true'}", "jobs/a.yaml:4:36: validate: %s is missing"},
		{"file.managed", "{name: /m, source: nope}", "jobs/a.yaml:4:34: source: there is no files/nope"},
		{"file.managed", "{name: /m, source: ../jobs/a.yaml}", "jobs/a.yaml:4:34: source: source \"../jobs/a.yaml\" leads out of files/"},
		{"file.managed", "{name: /m, source: bad, template: true}", "files/bad:2:4: vars.nope: there is no \"nope\""},
		{"file.managed", "{name: /m, backup: maybe}", `jobs/a.yaml:4:34: backup: expected true or false, found "maybe"`},
		{"file.directory", "{name: d}", `jobs/a.yaml:4:22: name: "d" is not an absolute path`},
		{"file.directory", "{name: /d, mode: x}", `jobs/a.yaml:4:32: mode: "x" is not a mode`},
		{"file.symlink", "{name: l, target: x}", `jobs/a.yaml:4:22: name: "l" is not an absolute path`},
		{"file.symlink", "{name: /l, target: ''}", "jobs/a.yaml:4:34: target: is empty"},
		{"file.symlink", "{name: /l}", `jobs/a.yaml:2:3: parameters: "target" is missing`},
		{"file.absent", "{name: a/b}", `jobs/a.yaml:4:22: name: "a/b" is not an absolute path`},
		{"file.absent", "{name: /etc}", "jobs/a.yaml:4:22: name: /etc is too near the root"},
		{"file.absent", "{name: /etc/x/..}", "jobs/a.yaml:4:22: name: /etc/x/.. is too near the root"},
	}...)
}
