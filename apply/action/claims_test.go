package action_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action"
	"github.com/pullet/pullet/apply/action/actiontest"
	"github.com/pullet/pullet/render"
)

// withoutClaims are the actions that do not say what they make of the host, and why.
var withoutClaims = map[string]string{
	"cmd.run":             "what a command does is not known before it runs",
	"cmd.script":          "what a script does is not known before it runs",
	"event.emit":          "an event is no state",
	"file.content":        "it only reads",
	"http.request":        "what a request does is not known before it is sent",
	"pkg.uptodate":        "whether it upgrades what another step pins depends on what the repositories have",
	"service.wait":        "it only waits",
	"system.reboot":       "a boot is no state",
	"template.expression": "it only computes",
	"test.change":         "it does nothing",
	"test.echo":           "it does nothing",
	"test.fail":           "it does nothing",
	"test.succeed":        "it does nothing",
	"time.sleep":          "it only waits",
	"time.sleep_rand":     "it only waits",
}

// TestClaims: every action says what it makes of the host, or the table says why not. One that was not bound, because
// its parameters wait, is asked as well.
func TestClaims(t *testing.T) {
	reasons := maps.Clone(withoutClaims)
	for _, spec := range action.All() {
		act, claims := spec.New().(apply.Claimer)
		if _, excused := reasons[spec.Name]; claims == excused {
			t.Errorf("%s: says what it makes of the host: %t, is in the table of those that do not: %t", spec.Name, claims, excused)
		}
		delete(reasons, spec.Name)
		if claims {
			act.Claims()
		}
	}
	if len(reasons) > 0 {
		t.Errorf("there are no such actions: %v", slices.Sorted(maps.Keys(reasons)))
	}
}

// pair is two steps of one job, each an action and its parameters.
type pair struct{ name, one, two string }

// TestContradictions binds real steps in both orders: pairs that undo each other are refused, with both places.
func TestContradictions(t *testing.T) {
	key, key2 := "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDmQMr2tQW0PdmoQ1e5d9gmPsKTxgS+nPDOLaHEVWcaI", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"
	for _, c := range []pair{
		{"a file twice", "file.managed {name: /etc/l, content: a}", "file.managed {name: /etc/l, content: b}"},
		{"a file and its absence", "file.managed {name: /etc/l, content: a}", "file.absent {name: /etc//l/}"},
		{"a file and a directory", "file.managed {name: /etc/l, content: a}", "file.directory {name: /etc/l}"},
		{"a file and a link", "file.managed {name: /etc/l, content: a}", "file.symlink {name: /etc/l, target: m}"},
		{"a file and a line", "file.managed {name: /etc/l, content: a}", "file.line {name: /etc/l, line: b}"},
		{"a file and a line that is absent", "file.managed {name: /etc/l, content: a}", "file.line {name: /etc/l, line: b, state: absent}"},
		{"a file and a block", "file.managed {name: /etc/l, content: a}", "file.block {name: /etc/l, content: b}"},
		{"a file of data and a line", "file.managed {name: /etc/l, data: {a: 1}, format: ini}", "file.line {name: /etc/l, line: b}"},
		{"a file of the repository and another", "file.managed {name: /etc/l, source: conf}", "file.managed {name: /etc/l, content: b}"},
		{"a file from an address and a line", "file.managed {name: /etc/l, source: 'https://x.example/y', digest: 'sha256:1b4f0e9851971998e732078544c96b36c3d01cedf7caa332359d6f1d83567014'}", "file.line {name: /etc/l, line: b}"},
		{"a file of host.present", "file.managed {name: /etc/hosts, content: a}", "host.present {ip: 10.0.0.1, names: [b]}"},
		{"a file of host.absent", "file.managed {name: /etc/hosts, content: a}", "host.absent {names: [b]}"},
		{"a file of the host name's entry", "file.managed {name: /etc/hosts, content: a}", "system.hostname {name: b, hosts: true}"},
		{"a file of a mount", "file.managed {name: /etc/fstab, content: a}", "mount.mounted {name: /srv/x, device: /dev/sda1}"},
		{"a file of an unmount", "file.managed {name: /etc/fstab, content: a}", "mount.unmounted {name: /srv/x}"},
		{"a file of a cron job", "file.managed {name: /etc/cron.d/a, content: a}", "cron.present {name: a, schedule: '@daily', command: x}"},
		{"a line of a cron job", "file.line {name: /etc/cron.d/a, line: a}", "cron.present {name: a, schedule: '@daily', command: x}"},
		{"a file of a sysctl", "file.managed {name: /etc/sysctl.d/60-pullet-vm.swappiness.conf, content: a}", "sysctl.present {name: vm.swappiness, value: 1}"},
		{"no file of a sysctl", "file.absent {name: /etc/sysctl.d/7.conf}", "sysctl.present {name: vm.swappiness, value: 1, file: /etc/sysctl.d/7.conf}"},
		{"a file of a host name", "file.managed {name: /etc/hostname, content: a}", "system.hostname {name: b}"},
		{"a link of a time zone", "file.symlink {name: /etc/localtime, target: /usr/share/zoneinfo/UTC}", "system.timezone {name: Europe/Berlin}"},
		{"a file of a time zone", "file.managed {name: /etc/timezone, content: UTC}", "system.timezone {name: Europe/Berlin}"},
		{"a file of a module", "file.managed {name: /etc/modules-load.d/pullet-dm_mod.conf, content: a}", "kmod.present {name: dm-mod}"},
		{"a file of a package repository", "file.managed {name: /etc/apt/sources.list.d/a.sources, content: a}", "pkgrepo.managed {name: a, url: 'https://x.example', suites: ./}"},
		{"a file of known hosts", "file.managed {name: /etc/ssh/ssh_known_hosts, content: a}", "ssh.known_host {host: h, key: " + key + "}"},
		{"a file of root's keys", "file.managed {name: /root/.ssh/authorized_keys, content: a}", "ssh.authorized_key {user: root, key: " + key + "}"},
		{"a file whose content is known later", "file.managed {name: /etc/l, content: '{{ (step \"c\").StdOut }}'}", "file.managed {name: /etc/l, content: b}"},
		{"a file whose template is known later", "file.managed {name: /etc/l, source: late, template: true}", "file.line {name: /etc/l, line: b}"},
		{"two modes", "file.managed {name: /etc/l, content: a, mode: 0644}", "file.managed {name: /etc/l, mode: 0600}"},
		{"two modes of a directory", "file.directory {name: /srv/d, mode: 0755}", "file.directory {name: /srv/d, mode: 0700}"},
		{"two owners", "file.managed {name: /etc/l, content: a, owner: ann}", "file.line {name: /etc/l, line: a, owner: bob}"},
		{"two groups", "file.directory {name: /srv/d, group: ann}", "git.checkout {name: /srv/d, url: /srv/git, group: bob}"},
		{"two contents of a new file", "file.managed {name: /etc/l, content: a, replace: false}", "file.managed {name: /etc/l, content: b, replace: false}"},
		{"two links", "file.symlink {name: /etc/l, target: a}", "file.symlink {name: /etc/l, target: b}"},
		{"a file below an absent directory", "file.managed {name: /srv/a/f, content: x, makeDirs: true}", "file.absent {name: /srv/a}"},
		{"a directory far below an absent one", "file.directory {name: /srv/a/b/c/d}", "file.absent {name: /srv/a}"},
		{"a line below an absent directory", "file.line {name: /srv/a/f, line: x}", "file.absent {name: /srv/a}"},
		{"a checkout that is absent", "git.checkout {name: /srv/a, url: /srv/git}", "file.absent {name: /srv/a}"},
		{"an archive below an absent directory", "archive.extracted {name: /srv/a/b, source: app.tar}", "file.absent {name: /srv/a}"},
		{"a mount point that is absent", "mount.mounted {name: /srv/a, device: /dev/sda1}", "file.absent {name: /srv/a}"},
		{"a file below a file", "file.managed {name: /srv/a, content: x}", "file.managed {name: /srv/a/b, content: x}"},
		{"a file of a tree", "file.managed {name: /srv/t, source: tree, recurse: true}", "file.managed {name: /srv/t/a, content: other}"},
		{"a line of a file of a tree", "file.managed {name: /srv/t, source: tree, recurse: true}", "file.line {name: /srv/t/sub/b, line: other}"},
		{"no directory of a tree", "file.managed {name: /srv/t, source: tree, recurse: true}", "file.absent {name: /srv/t/sub}"},
		{"the mode of a file of a tree", "file.managed {name: /srv/t, source: tree, recurse: true, mode: 0640}", "file.managed {name: /srv/t/a, mode: 0600}"},
		{"the mode of a directory of a tree", "file.managed {name: /srv/t, source: tree, recurse: true, mode: 0640}", "file.directory {name: /srv/t/sub, mode: 0700}"},

		{"two lines for one match", "file.line {name: /etc/l, line: a=1, match: '^a='}", "file.line {name: /etc/l, line: a=2, match: '^a='}"},
		{"a match that finds another line", "file.line {name: /etc/l, line: a=1, match: a}", "file.line {name: /etc/l, line: ba}"},
		{"a line present and absent", "file.line {name: /etc/l, line: a=1}", "file.line {name: /etc/l, line: a=1, state: absent}"},
		{"a line that a match removes", "file.line {name: /etc/l, line: a=1}", "file.line {name: /etc/l, match: '^a', state: absent}"},
		{"a block twice", "file.block {name: /etc/l, content: a}", "file.block {name: /etc/l, content: b}"},
		{"a block present and absent", "file.block {name: /etc/l, content: a, marker: m}", "file.block {name: /etc/l, state: absent, marker: m}"},
		{"a line of a block", "file.block {name: /etc/l, content: \"x\\na=1\\n\"}", "file.line {name: /etc/l, line: a=2, match: '^a='}"},

		{"a user present and absent", "user.present {name: ann}", "user.absent {name: ann}"},
		{"two shells", "user.present {name: ann, shell: /bin/sh}", "user.present {name: ann, shell: /bin/bash}"},
		{"two homes", "user.present {name: ann, home: /srv/a}", "user.present {name: ann, home: /srv/b}"},
		{"two comments", "user.present {name: ann, comment: a}", "user.present {name: ann, comment: ''}"},
		{"two numbers of a user", "user.present {name: ann, uid: 1001}", "user.present {name: ann, uid: 1002}"},
		{"a number of two users", "user.present {name: ann, uid: 1001}", "user.present {name: bob, uid: 1001}"},
		{"two primary groups", "user.present {name: ann, group: a}", "user.present {name: ann, group: b}"},
		{"two passwords", "user.present {name: ann, password: '*'}", "user.present {name: ann, password: '!'}"},
		{"locked and not", "user.present {name: ann, locked: true}", "user.present {name: ann, locked: false}"},
		{"two days", "user.present {name: ann, expires: never}", "user.present {name: ann, expires: 2030-12-31}"},
		{"exact groups and another", "user.present {name: ann, groups: [a], appendGroups: false}", "user.present {name: ann, groups: [b]}"},
		{"exact groups and a member", "user.present {name: ann, groups: [a], appendGroups: false}", "group.present {name: b, members: [ann]}"},
		{"exact members and a group", "user.present {name: ann, groups: [a]}", "group.present {name: a, members: [], appendMembers: false}"},
		{"a group of a user that is absent", "user.present {name: ann, groups: [a]}", "group.absent {name: a}"},
		{"a member that is absent", "group.present {name: a, members: [ann]}", "user.absent {name: ann}"},
		{"a group present and absent", "group.present {name: a}", "group.absent {name: a}"},
		{"two numbers of a group", "group.present {name: a, gid: 1001}", "group.present {name: a, gid: 1002}"},
		{"a number of two groups", "group.present {name: a, gid: 1001}", "group.present {name: b, gid: 1001}"},
		{"a home that is absent", "user.present {name: ann, home: /srv/a, createHome: true}", "file.absent {name: /srv/a}"},
		{"a key present and absent", "ssh.authorized_key {user: ann, key: " + key + "}", "ssh.authorized_key {user: ann, key: " + key + " other, state: absent}"},
		{"a key beside exclusive ones", "ssh.authorized_key {user: ann, key: " + key + ", exclusive: true}", "ssh.authorized_key {user: ann, key: " + key2 + "}"},
		{"two options of a key", "ssh.authorized_key {user: ann, key: " + key + ", options: [no-pty]}", "ssh.authorized_key {user: ann, key: " + key + ", options: [restrict]}"},
		{"a key of a user that is absent", "ssh.authorized_key {user: ann, key: " + key + "}", "user.absent {name: ann}"},
		{"two keys of a host", "ssh.known_host {host: h, key: " + key + "}", "ssh.known_host {host: H, key: " + key2 + "}"},
		{"a key of a host present and absent", "ssh.known_host {host: h, key: " + key + "}", "ssh.known_host {host: h, state: absent}"},

		{"a package installed and removed", "pkg.installed {name: a}", "pkg.removed {pkgs: [b, a]}"},
		{"the newest package and none", "pkg.latest {name: a}", "pkg.removed {name: a}"},
		{"two versions", "pkg.installed {name: a, version: '1.2'}", "pkg.installed {pkgs: [a=1.3]}"},
		{"a version and the newest", "pkg.installed {name: a, version: '1.2*'}", "pkg.latest {name: a}"},
		{"held and not", "pkg.installed {name: a, hold: true}", "pkg.installed {name: a, hold: false}"},
		{"a package repository present and absent", "pkgrepo.managed {name: a, url: 'https://x.example', suites: ./}", "pkgrepo.absent {name: a}"},
		{"two addresses of a package repository", "pkgrepo.managed {name: a, url: 'https://x.example', suites: ./}", "pkgrepo.managed {name: a, url: 'https://y.example', suites: ./}"},
		{"a package repository that is replaced", "pkgrepo.managed {name: a, url: 'https://x.example', suites: ./}", "pkgrepo.managed {name: b, url: 'https://y.example', suites: ./, replaces: a.sources}"},

		{"started and stopped", "service.ensure {name: a, state: started}", "service.ensure {name: a.service, state: stopped}"},
		{"restarted and stopped", "service.ensure {name: a, state: restarted}", "service.ensure {name: a, state: stopped}"},
		{"enabled and disabled", "service.ensure {name: a, enabled: true}", "service.ensure {name: a, state: disabled}"},
		{"started and masked", "service.ensure {name: a, state: started}", "service.ensure {name: a, state: masked}"},
		{"a service offered and withdrawn", "service.publish {name: a}", "service.withdraw {name: a}"},
		{"two ports of a service", "service.publish {name: a, port: 1}", "service.publish {name: a, port: 2}"},

		{"two values of a sysctl", "sysctl.present {name: net.ipv4.ip_forward, value: 1}", "sysctl.present {name: net/ipv4/ip_forward, value: 0}"},
		{"a module present and absent", "kmod.present {name: dm-mod}", "kmod.absent {name: dm_mod}"},
		{"two options of a module", "kmod.present {name: a, options: [x=1]}", "kmod.present {name: a}"},
		{"a mount present and absent", "mount.mounted {name: /srv/x, device: /dev/sda1}", "mount.unmounted {name: /srv/x/}"},
		{"two devices of a mount", "mount.mounted {name: /srv/x, device: /dev/sda1}", "mount.mounted {name: /srv/x, device: /dev/sdb1}"},
		{"two options of a mount", "mount.mounted {name: /srv/x, device: /dev/sda1, options: ro}", "mount.mounted {name: /srv/x, device: /dev/sda1}"},
		{"a job present and absent", "cron.present {name: a, schedule: '@daily', command: x}", "cron.absent {name: a}"},
		{"two times of a job", "cron.present {name: a, schedule: '@daily', command: x}", "cron.present {name: a, minute: 1, command: x}"},
		{"two host names", "system.hostname {name: a}", "system.hostname {name: b}"},
		{"two time zones", "system.timezone {name: UTC}", "system.timezone {name: Europe/Berlin}"},
		{"a name present and absent", "host.present {ip: 10.0.0.1, names: [db]}", "host.absent {names: [DB]}"},
		{"an address present and absent", "host.present {ip: '::1', names: [db]}", "host.absent {ip: '0::1'}"},
		{"a name at an address present and absent", "host.present {ip: 10.0.0.1, names: [a, b]}", "host.absent {ip: 10.0.0.1, names: [b]}"},
		{"a unique name at two addresses", "host.present {ip: 10.0.0.1, names: [db], unique: true}", "host.present {ip: 10.0.0.2, names: [db]}"},
		{"exact names and another", "host.present {ip: 10.0.0.1, names: [a], exact: true}", "host.present {ip: 10.0.0.1, names: [b]}"},
		{"two orders of names", "host.present {ip: 10.0.0.1, names: [a, b], exact: true}", "host.present {ip: 10.0.0.1, names: [b, a], exact: true}"},
		{"a host's own name and another", "system.hostname {name: a.example, hosts: true}", "host.present {ip: 127.0.1.1, names: [b]}"},
		{"two repositories of a checkout", "git.checkout {name: /srv/d, url: /srv/a}", "git.checkout {name: /srv/d/, url: /srv/b}"},
		{"two commits of a checkout", "git.checkout {name: /srv/d, url: /srv/a, ref: v1}", "git.checkout {name: /srv/d, url: /srv/a}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, steps := range [][2]string{{c.one, c.two}, {c.two, c.one}} {
				_, err := bindSteps(t, twoSteps(steps[0], steps[1]))
				var list render.ErrorList
				if !errors.As(err, &list) || len(list) != 1 || !strings.Contains(err.Error(), " contradicts ") ||
					!strings.Contains(err.Error(), "in step a/one (jobs/a.yaml:4:") || list[0].Pos.Line != 5 {
					t.Errorf("%s, %s: got %v", steps[0], steps[1], err)
				}
			}
		})
	}
}

// TestComposing binds pairs of steps that hold together, in both orders.
func TestComposing(t *testing.T) {
	key, key2 := "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDmQMr2tQW0PdmoQ1e5d9gmPsKTxgS+nPDOLaHEVWcaI", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"
	for _, c := range []pair{
		{"the same file twice", "file.managed {name: /etc/l, content: a}", "file.managed {name: /etc/l, content: a, mode: 0644}"},
		{"content and mode", "file.managed {name: /etc/l, content: a}", "file.managed {name: /etc/l, mode: 0600, owner: root}"},
		{"one mode in two forms", "file.managed {name: /etc/l, content: a, mode: '644'}", "file.managed {name: /etc/l, mode: 0644}"},
		{"a name and a number", "file.managed {name: /etc/l, content: a, owner: ann}", "file.managed {name: /etc/l, owner: 1001}"},
		{"root", "file.managed {name: /etc/l, content: a, owner: root}", "file.managed {name: /etc/l, owner: 0}"},
		{"a line and the mode of its file", "file.line {name: /etc/l, line: a}", "file.managed {name: /etc/l, mode: 0600}"},
		{"a link and the mode of its target", "file.symlink {name: /etc/l, target: m}", "file.managed {name: /etc/l, mode: 0600}"},
		{"a new file and a line", "file.managed {name: /etc/l, content: a, replace: false}", "file.line {name: /etc/l, line: b}"},
		{"two lines", "file.line {name: /etc/l, line: a=1, match: '^a='}", "file.line {name: /etc/l, line: b=1, match: '^b='}"},
		{"one line, one match", "file.line {name: /etc/l, line: a=1, match: '^a='}", "file.line {name: /etc/l, line: a=1}"},
		{"a line and another that is absent", "file.line {name: /etc/l, line: a=1}", "file.line {name: /etc/l, match: '^b=', state: absent}"},
		{"two blocks", "file.block {name: /etc/l, content: a, marker: one}", "file.block {name: /etc/l, content: b, marker: two}"},
		{"a block and a line", "file.block {name: /etc/l, content: a=1}", "file.line {name: /etc/l, line: b=1, match: '^b='}"},
		{"a line that is absent, and the file, too", "file.line {name: /etc/l, line: a, state: absent}", "file.absent {name: /etc/l}"},
		{"a file in a directory", "file.directory {name: /srv/d, mode: 0750}", "file.managed {name: /srv/d/f, content: a, mode: 0600}"},
		{"a file in a directory that is cleaned", "file.directory {name: /srv/d, clean: true, recurse: true, fileMode: 0600}", "file.managed {name: /srv/d/f, content: a, mode: 0644}"},
		{"a directory twice", "file.directory {name: /srv/d, mode: 0755}", "file.directory {name: /srv/d/}"},
		{"a directory that a link leads to", "file.symlink {name: /srv/d, target: e}", "file.directory {name: /srv/d, mode: 0755}"},
		{"a file below a link", "file.symlink {name: /srv/d, target: e}", "file.managed {name: /srv/d/f, content: a}"},
		{"a file in a directory that goes when it is empty", "file.absent {name: /srv/d, onlyEmpty: true}", "file.managed {name: /srv/d/f, content: a}"},
		{"a tree and another file", "file.managed {name: /srv/t, source: tree, recurse: true}", "file.managed {name: /srv/t/own, content: a}"},
		{"a tree and the mode of a file", "file.managed {name: /srv/t, source: tree, recurse: true}", "file.managed {name: /srv/t/a, mode: 0600}"},
		{"two archives", "archive.extracted {name: /srv/a, source: app.tar}", "archive.extracted {name: /srv/a, source: app.tgz}"},
		{"an archive and its path that is absent", "archive.extracted {name: /srv/a, source: app.tar, creates: /srv/done}", "file.absent {name: /srv/a}"},
		{"a checkout and its directory", "git.checkout {name: /srv/d, url: /srv/a}", "file.directory {name: /srv/d, mode: 0755}"},
		{"a mount and its mount point", "mount.mounted {name: /srv/d, device: /dev/sda1}", "file.directory {name: /srv/d, mode: 0755}"},
		{"a mount for now and no entry", "mount.mounted {name: /srv/d, device: /dev/sda1, persist: false}", "file.managed {name: /etc/fstab, content: a}"},
		{"two mounts", "mount.mounted {name: /srv/a, device: /dev/sda1}", "mount.mounted {name: /srv/b, device: /dev/sdb1}"},
		{"entries of a file", "mount.mounted {name: /srv/a, device: /dev/sda1}", "file.line {name: /etc/fstab, line: '# ours'}"},

		{"a user in two groups", "user.present {name: ann, groups: [a]}", "user.present {name: ann, groups: [b], shell: /bin/sh}"},
		{"exact groups and one of them", "user.present {name: ann, groups: [a], appendGroups: false}", "group.present {name: a, members: [ann]}"},
		{"exact members and another group", "group.present {name: a, members: [bob], appendMembers: false}", "user.present {name: ann, groups: [b]}"},
		{"the primary group", "user.present {name: ann, group: a, groups: [a]}", "group.present {name: a, members: [], appendMembers: false}"},
		{"groups by number", "user.present {name: ann, groups: ['100'], appendGroups: false}", "user.present {name: ann, groups: [users]}"},
		{"a user and a group of one name", "user.absent {name: a}", "group.present {name: a}"},
		{"two keys", "ssh.authorized_key {user: ann, key: " + key + "}", "ssh.authorized_key {user: ann, key: " + key2 + "}"},
		{"a key of exclusive ones", "ssh.authorized_key {user: ann, keys: [" + key + ", " + key2 + "], exclusive: true}", "ssh.authorized_key {user: ann, key: " + key2 + "}"},
		{"a key of two users", "ssh.authorized_key {user: ann, key: " + key + "}", "ssh.authorized_key {user: bob, key: " + key + ", state: absent}"},
		{"a host at two ports", "ssh.known_host {host: h, key: " + key + "}", "ssh.known_host {host: h, port: 2222, key: " + key2 + "}"},
		{"a new key and the old one", "ssh.known_host {host: h, key: " + key + "}", "ssh.known_host {host: h, key: " + key2 + ", state: absent}"},
		{"a file of keys of another user", "user.present {name: ann}", "file.managed {name: /root/.ssh/authorized_keys, content: a}"},

		{"a package twice", "pkg.installed {name: a}", "pkg.installed {pkgs: [a=1.2, b]}"},
		{"a package and the newest", "pkg.installed {name: a}", "pkg.latest {name: a}"},
		{"a version that begins so", "pkg.installed {name: a, version: '1.2*'}", "pkg.installed {name: a, version: 1.2.7-1}"},
		{"two packages", "pkg.installed {name: a}", "pkg.removed {name: b}"},
		{"running and enabled", "service.ensure {name: a, state: started}", "service.ensure {name: a, state: enabled}"},
		{"running and restarted", "service.ensure {name: a, state: started}", "service.ensure {name: a, state: restarted}"},
		{"stopped and masked", "service.ensure {name: a, state: stopped}", "service.ensure {name: a, state: masked}"},
		{"running and disabled", "service.ensure {name: a, state: started}", "service.ensure {name: a, state: disabled}"},
		{"one value in two forms", "sysctl.present {name: net.ipv4.tcp_rmem, value: [1, 2]}", "sysctl.present {name: net/ipv4/tcp_rmem, value: '1  2', file: /etc/sysctl.d/7.conf}"},
		{"two values", "sysctl.present {name: vm.swappiness, value: 1}", "sysctl.present {name: vm.overcommit_memory, value: 0}"},
		{"a module for now", "kmod.present {name: a, persist: false}", "kmod.present {name: a, options: [x=1]}"},
		{"a name at two addresses", "host.present {ip: 10.0.0.1, names: [db]}", "host.present {ip: 10.0.0.2, names: [db]}"},
		{"a unique name of both kinds", "host.present {ip: 10.0.0.1, names: [db], unique: true}", "host.present {ip: 'fd00::1', names: [db], unique: true}"},
		{"a name at another address that is absent", "host.present {ip: 10.0.0.1, names: [db]}", "host.absent {ip: 10.0.0.2}"},
		{"exact names and one of them", "host.present {ip: 10.0.0.1, names: [a, b], exact: true}", "host.present {ip: 10.0.0.1, names: [B]}"},
		{"a host's own name", "system.hostname {name: a.example, hosts: true}", "host.present {ip: 127.0.1.1, names: [a]}"},
		{"a time zone and its link", "system.timezone {name: Europe/Berlin}", "file.symlink {name: /etc/localtime, target: ../usr/share/zoneinfo/Europe/Berlin}"},
		{"two jobs", "cron.present {name: a, schedule: '@daily', command: x}", "cron.absent {name: b}"},
		{"a name that is known later", "file.managed {name: '/x/{{ (step \"c\").StdOut }}', content: a}", "file.managed {name: '/x/{{ (step \"c\").StdOut }}', content: b}"},
		{"a value that is known later", "sysctl.present {name: vm.swappiness, value: '{{ (step \"c\").StdOut }}'}", "sysctl.present {name: vm.swappiness, value: 1}"},
		{"a state that is known later", "service.ensure {name: '{{ (step \"c\").StdOut }}', state: started}", "service.ensure {name: a, state: stopped}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, steps := range [][2]string{{c.one, c.two}, {c.two, c.one}} {
				p, err := bindSteps(t, twoSteps(steps[0], steps[1]))
				if err != nil || len(p.Warnings()) > 0 {
					t.Errorf("%s, %s: got %v", steps[0], steps[1], err)
				}
			}
		})
	}
}

// twoSteps returns a job with a command and two steps, the first in line 4 and the second in line 5.
func twoSteps(one, two string) string {
	text := "runOptions: {ordering: ansible}\nsteps:\n- {name: c, action: cmd.run, parameters: {cmd: x}}\n"
	for i, step := range []string{one, two} {
		act, params, _ := strings.Cut(step, " ")
		text += fmt.Sprintf("- {name: %s, action: %s, parameters: %s}\n", []string{"one", "two"}[i], act, params)
	}
	return text
}

// bindSteps binds a job of a repository with a tree of files.
func bindSteps(t *testing.T, job string) (*apply.Program, error) {
	t.Helper()
	s := actiontest.New(t)
	s.Files["conf"], s.Files["late"] = "of the repository\n", "{{ (step \"c\").StdOut }}\n"
	s.Files["tree/a"], s.Files["tree/sub/b"] = "a", "b"
	return s.BindText(job)
}

// TestApart: what may keep two steps from running in one pull makes a warning of their contradiction, unless it is the
// same for both.
func TestApart(t *testing.T) {
	const when = ", conditions: {when: {condition: \"server.fqdn == '%s'\"}}"
	const apart, together = true, false
	for _, c := range []struct {
		name, one, two string // behind the parameters
		warns          bool
		hint           string
	}{
		{"nothing", "", "", together, "keep one of them"},
		{"a condition", fmt.Sprintf(when, "a"), "", apart, "their conditions must exclude each other"},
		{"two conditions", fmt.Sprintf(when, "a"), fmt.Sprintf(when, "b"), apart, "their conditions must exclude each other"},
		{"one condition of both", fmt.Sprintf(when, "a"), fmt.Sprintf(when, "a"), together, "keep one of them"},
		{"a target", "", ", runOptions: {target: {limit: 1}}", apart, "their targets must exclude each other"},
		{"one target of both", ", runOptions: {target: {limit: 1}}", ", runOptions: {target: {limit: 1}}", together, ""},
		{"once", ", runOptions: {runs: once}", "", apart, "they must never run in the same pull"},
		{"once twice", ", runOptions: {runs: once}", ", runOptions: {runs: once}", apart, ""},
		{"at updates", "", ", runOptions: {runs: onUpdate}", apart, ""},
		{"both at updates", ", runOptions: {runs: onUpdate}", ", runOptions: {runs: onUpdate}", together, ""},
		{"always", "", ", runOptions: {runs: always}", together, ""},
		{"onchanges", "", ", onchanges: [c]", apart, "they must never run in the same pull"},
		{"onchanges of both", ", onchanges: [c]", ", onchanges: [c]", together, ""},
		{"onfail", ", onfail: [c]", "", apart, ""},
		{"onfail_all", ", onfail_all: [c]", "", apart, ""},
		{"prereq", ", prereq: [two]", "", apart, ""},
		{"require", "", ", require: [one]", together, ""},
		{"watch", "", ", watch: [c]", together, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			job := "steps:\n- {name: c, action: cmd.run, parameters: {cmd: x}}\n" +
				"- {name: one, action: service.ensure, parameters: {name: a, state: started}" + c.one + "}\n" +
				"- {name: two, action: service.ensure, parameters: {name: a, state: stopped}" + c.two + "}\n"
			p, err := bindSteps(t, job)
			var found render.ErrorList
			if !errors.As(err, &found) {
				if err != nil {
					t.Fatal(err)
				}
				found = p.Warnings()
			}
			want := render.Mistake
			if c.warns {
				want = render.Warning
			}
			if len(found) != 1 || found[0].Severity != want || !strings.Contains(found[0].Hint, c.hint) ||
				!strings.HasPrefix(found[0].Message, `unit a.service: state "stopped" contradicts state "started" in step a/one`) {
				t.Errorf("got %v, severity %v", found, found)
			}
		})
	}
}

// TestNever: a step whose condition is false whatever a run finds contradicts nothing; one whose condition may be true
// does.
func TestNever(t *testing.T) {
	for condition, want := range map[string]int{
		"hasLabel('role=web')": 0, "!hasLabel('role=web')": 1, "false": 0, "true": 1, "vars.n == 2": 0, "vars.n == 1": 1,
		"server.fqdn == 'x'": 1, "false && server.fqdn == 'x'": 0, "steps['c'].Changed": 1,
	} {
		t.Run(condition, func(t *testing.T) {
			t.Parallel()
			p, _, err := apply.Compile(render.Open(render.Layer{Name: "main", FS: fstest.MapFS{
				"base/jobs.yaml": {Data: []byte("jobs:\n  '*': [{name: a}]\n")}, "base/vars.yaml": {Data: []byte("files: {'*': [{name: v}]}\n")},
				"vars/v.yaml": {Data: []byte("n: 1\n")},
				"jobs/a.yaml": {Data: []byte("steps:\n- {name: c, action: cmd.run, parameters: {cmd: x}}\n" +
					"- {name: one, action: service.ensure, parameters: {name: a, state: started}}\n" +
					"- {name: two, action: service.ensure, parameters: {name: a, state: stopped}, conditions: {when: {condition: \"" + condition + "\"}}}\n")},
			}}), render.Input{Node: render.Node{Name: "n1"}, Facts: actiontest.Facts(), Version: "v1"}, action.All())
			if err != nil || len(p.Warnings()) != want {
				t.Errorf("got %v, want %d warnings", err, want)
			}
		})
	}
}

// TestApartJobs: the condition of a job keeps its steps from those of others, and not from each other.
func TestApartJobs(t *testing.T) {
	const on, off = "- {name: s, action: service.ensure, parameters: {name: a, state: started}}\n", "- {name: t, action: service.ensure, parameters: {name: a, state: stopped}}\n"
	const when = ", conditions: {when: {condition: \"server.fqdn == 'a'\"}}"
	for name, c := range map[string]struct {
		jobs, a, b string
		warns      bool
	}{
		"one job":            {"[{name: a" + when + "}, {name: b}]", on + off, "", false},
		"two jobs":           {"[{name: a" + when + "}, {name: b}]", on, off, true},
		"two jobs with one":  {"[{name: a" + when + "}, {name: b" + when + "}]", on, off, false},
		"two jobs with none": {"[{name: a}, {name: b}]", on, off, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _, err := apply.Compile(render.Open(render.Layer{Name: "main", FS: fstest.MapFS{
				"base/jobs.yaml": {Data: []byte("jobs:\n  '*': " + c.jobs + "\n")},
				"jobs/a.yaml":    {Data: []byte("steps:\n" + c.a)}, "jobs/b.yaml": {Data: []byte("steps:\n" + c.b)},
			}}), render.Input{Node: render.Node{Name: "n1"}, Version: "v1"}, action.All())
			switch {
			case c.warns && (err != nil || len(p.Warnings()) != 1):
				t.Errorf("got %v, want a warning", err)
			case !c.warns && (err == nil || !strings.Contains(err.Error(), "keep one of them")):
				t.Errorf("got %v, want a mistake", err)
			}
		})
	}
}

// TestContradictionsHide: what is secret is compared, and no message has it.
func TestContradictionsHide(t *testing.T) {
	vars, secrets, err := render.HostVars(fstest.MapFS{"v.yaml": {Data: []byte("sensitive: true\nline: s3cret-canary\nshell: /bin/canary\n")}}, "v")
	if err != nil {
		t.Fatal(err)
	}
	hash := "$6$canary$" + strings.Repeat("x", 85)
	for name, c := range map[string]pair{
		"a line of a variable":  {"", "file.line {name: /etc/l, line: 'a={{ vars.line }}', match: '^a='}", "file.line {name: /etc/l, line: a=1, match: '^a='}"},
		"a value of a variable": {"", "user.present {name: ann, shell: '{{ vars.shell }}'}", "user.present {name: ann, shell: /bin/sh}"},
		"passwords":             {"", "user.present {name: ann, password: '" + hash + "4'}", "user.present {name: ann, password: '" + hash + "5'}"},
		"beside a password":     {"", "user.present {name: ann, password: '" + hash + "4', shell: /bin/a}", "user.present {name: ann, password: '" + hash + "4', shell: /bin/b}"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, steps := range [][2]string{{c.one, c.two}, {c.two, c.one}} {
				_, _, err := apply.Compile(render.Open(render.Layer{Name: "main", FS: fstest.MapFS{
					"base/jobs.yaml": {Data: []byte("jobs:\n  '*': [{name: a}]\n")},
					"jobs/a.yaml":    {Data: []byte(twoSteps(steps[0], steps[1]))},
				}}), render.Input{Node: render.Node{Name: "n1"}, Version: "v1", HostVars: vars, Secrets: secrets}, action.All())
				var list render.ErrorList
				if !errors.As(err, &list) || !strings.Contains(err.Error(), " contradicts ") {
					t.Fatalf("got %v", err)
				}
				for _, e := range list {
					if strings.Contains(e.Error()+e.Excerpt, "canary") {
						t.Errorf("shown: %v\n%s", e, e.Excerpt)
					}
				}
			}
		})
	}
}
