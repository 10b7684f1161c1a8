package action_test

import (
	"maps"

	"github.com/pullet/pullet/apply/action/actiontest"
)

// fstabText is an /etc/fstab as people keep it.
const fstabText = "# /etc/fstab\nUUID=ab-cd  /         ext4  errors=remount-ro  0  1\n\n# data\n/dev/sdb1   /srv/data  xfs   noatime\t0 2 # ours\n/dev/sdc1 none swap sw 0 0\n"

// clearMount prepares a whole host: nothing is mounted at /srv/m, and no entry names it.
const clearMount = "while umount -R /srv/m 2>/dev/null; do :; done; rm -rf /srv/m /srv/from; touch /etc/fstab; sed -i '\\,/srv/,d' /etc/fstab; "

// mountTmpfs is what follows it where a file system is mounted already, as the entry says.
const mountTmpfs = clearMount + "mkdir -p /srv/m; mount -t tmpfs -o nodev,size=8m tmpfs /srv/m; echo 'tmpfs /srv/m tmpfs nodev,size=8m 0 0' >>/etc/fstab; "

func init() {
	maps.Copy(examples, map[string][]actiontest.Example{
		"mount.mounted": {
			{Name: "create", Params: "{name: /srv/data, device: UUID=ab-cd, fstype: ext4, options: [noatime, nofail], pass: 2}", Want: "entry in /etc/fstab"},
			{Name: "among others", Params: "{name: /srv/my data/, device: /dev/sdd1}", Host: []string{"f etc/fstab 640 " + fstabText}, Want: "entry in /etc/fstab"},
			{Name: "right already", Params: "{name: /srv/data, device: /dev/sdb1, fstype: xfs, options: noatime, pass: 2}", Host: []string{"f etc/fstab 644 " + fstabText}},
			{Name: "right already, escaped", Params: "{name: '/a b', device: tmpfs, fstype: tmpfs}", Host: []string{"f etc/fstab 644 tmpfs /a\\040b tmpfs defaults"}},
			{Name: "other options", Params: "{name: /srv/data, device: /dev/sdb1, fstype: xfs, options: [ro, noatime], pass: 2}", Host: []string{"f etc/fstab 644 " + fstabText}, Want: "entry in /etc/fstab"},
			{Name: "with its directory", Params: "{name: /srv/a/b, device: /dev/sdb1, makeDirs: true}", Want: "make the directory, entry in /etc/fstab"},
			{Name: "not persistent", Params: "{name: /srv/data, device: tmpfs, fstype: tmpfs, persist: false}", Host: []string{"f etc/fstab 644 " + fstabText}},
			{Name: "two entries", Params: "{name: /srv/data, device: tmpfs, fstype: tmpfs}", Host: []string{"f etc/fstab 644 a /srv/data xfs\n# b\nb /srv/data/ xfs\n"},
				Fails: "/etc/fstab has two entries for /srv/data, in lines 1 and 3: remove one of them"},

			{Name: "mount", Whole: true, Setup: clearMount, Params: "{name: /srv/m, device: tmpfs, fstype: tmpfs, options: [size=8m, nodev], makeDirs: true}",
				Want: "make the directory, mount, entry in /etc/fstab"},
			{Name: "mount, not at boot", Whole: true, Setup: clearMount + "mkdir /srv/m", Params: "{name: /srv/m, device: tmpfs, fstype: tmpfs, persist: false}", Want: "mount"},
			{Name: "mounted already", Whole: true, Setup: mountTmpfs, Params: "{name: /srv/m, device: tmpfs, fstype: tmpfs, options: [nodev, size=8m]}"},
			{Name: "the entry alone", Whole: true, Setup: mountTmpfs + "sed -i '/srv/d' /etc/fstab", Params: "{name: /srv/m, device: tmpfs, fstype: tmpfs, options: [nodev, size=8m]}", Want: "entry in /etc/fstab"},
			{Name: "mounted with other flags", Whole: true, Setup: mountTmpfs + "mount -o remount,ro,noexec /srv/m", Params: "{name: /srv/m, device: tmpfs, fstype: tmpfs, options: [nodev, size=8m]}",
				Want: "remount with exec,rw", Unseen: true},
			{Name: "another size, other flags", Whole: true, Setup: mountTmpfs, Params: "{name: /srv/m, device: tmpfs, fstype: tmpfs, options: [noatime, nosuid, size=16m, mode=0755]}",
				Want: "remount with dev,nosuid,noatime,size=16m,mode=0755, entry in /etc/fstab"},
			{Name: "another device than the entry's", Whole: true, Setup: clearMount + "mkdir -p /srv/from /srv/m; echo '/dev/gone /srv/m auto nofail 0 0' >>/etc/fstab; systemctl daemon-reload",
				Params: "{name: /srv/m, device: /srv/from, options: bind}", Want: "mount, entry in /etc/fstab"},
			{Name: "bind", Whole: true, Setup: clearMount + "mkdir -p /srv/from /srv/m", Params: "{name: /srv/m, device: /srv/from, options: [bind, ro]}", Want: "mount, entry in /etc/fstab"},
			{Name: "bind a file", Whole: true, Setup: clearMount + "mkdir -p /srv/from; echo x >/srv/from/x", Params: "{name: /srv/m, device: /srv/from/x, options: bind, makeDirs: true}", Want: "make the directory, mount, entry in /etc/fstab"},
			{Name: "bind, writable by now", Whole: true, Setup: clearMount + "mkdir -p /srv/from /srv/m; mount -o bind,ro /srv/from /srv/m; echo /srv/from /srv/m none bind,ro >>/etc/fstab",
				Params: "{name: /srv/m, device: /srv/from, options: [bind, rw]}", Want: "remount with rw, entry in /etc/fstab"},
			{Name: "something else is mounted", Whole: true, Setup: mountTmpfs + "mkdir /srv/from", Params: "{name: /srv/m, device: /srv/from, options: bind}",
				Fails: "tmpfs (tmpfs) is mounted at /srv/m, and not /srv/from: unmount it first"},
			{Name: "no directory", Whole: true, Setup: clearMount, Params: "{name: /srv/m, device: tmpfs, fstype: tmpfs}", Want: "mount, entry in /etc/fstab", Fails: "there is no directory /srv/m: add makeDirs: true"},
			{Name: "no such device", Whole: true, Setup: clearMount, Params: "{name: /srv/m, device: LABEL=nonesuch, makeDirs: true}", Want: "make the directory, mount, entry in /etc/fstab",
				Fails: "mount: /srv/m: can't find LABEL=nonesuch"},
			{Name: "no such option", Whole: true, Setup: mountTmpfs, Params: "{name: /srv/m, device: tmpfs, fstype: tmpfs, options: nonesuch}", Want: "remount with dev,nonesuch, entry in /etc/fstab",
				Fails: "mount: /srv/m"},
		},
		"mount.unmounted": {
			{Name: "not there", Params: "{name: /srv/old}", Host: []string{"f etc/fstab 644 " + fstabText}},
			{Name: "no fstab", Params: "{name: /srv/old}"},
			{Name: "an entry", Params: "{name: /srv/data/}", Host: []string{"f etc/fstab 640 " + fstabText}, Want: "remove from /etc/fstab"},
			{Name: "the entry stays", Params: "{name: /srv/data, persist: false}", Host: []string{"f etc/fstab 644 " + fstabText}},

			{Name: "unmount", Whole: true, Setup: mountTmpfs, Params: "{name: /srv/m}", Want: "unmount tmpfs, remove from /etc/fstab"},
			{Name: "unmount two", Whole: true, Setup: mountTmpfs + "mount -t tmpfs upper /srv/m", Params: "{name: /srv/m, persist: false}", Want: "unmount upper", Unseen: true},
			{Name: "in use", Whole: true, Setup: mountTmpfs + "mkdir /srv/m/d; mount -t tmpfs other /srv/m/d", Params: "{name: /srv/m}", Want: "unmount tmpfs, remove from /etc/fstab", Fails: "umount /srv/m: exit code 32: umount: /srv/m: target is busy"},
		},
	})
	mistakes = append(mistakes, []mistake{
		{"mount.mounted", "{name: /m}", `parameters: "device" is missing`},
		{"mount.mounted", "{name: m, device: /dev/sda1}", `jobs/a.yaml:4:22: name: "m" is not an absolute path`},
		{"mount.mounted", "{name: /m, device: ''}", `jobs/a.yaml:4:34: device: "" is not a device`},
		{"mount.mounted", "{name: /m, device: --all}", `device: "--all" is not a device`},
		{"mount.mounted", "{name: /m, device: tmpfs}", `fstype: is missing: "tmpfs" is no disk that could tell its type`},
		{"mount.mounted", "{name: /m, device: /dev/sda1, fstype: ''}", `fstype: "" is not a type of file systems`},
		{"mount.mounted", "{name: /m, device: /dev/sda1, fstype: swap}", "fstype: swap is not mounted"},
		{"mount.mounted", "{name: /m, device: /dev/sda1, options: 'a,,b'}", "options: there is an empty option"},
		{"mount.mounted", "{name: /m, device: /dev/sda1, options: [ro, '']}", "options: there is an empty option"},
		{"mount.mounted", "{name: /m, device: /dev/sda1, options: remount}", `options: "remount" is not an option of /etc/fstab`},
		{"mount.mounted", "{name: /m, device: /dev/sda1, options: 'ro, noatime'}", `options: the option " noatime" has a blank; write options with commas alone: ro,noatime`},
		{"mount.mounted", "{name: /m, device: /dev/sda1, options: [ro, ' noatime']}", `the option " noatime" has a blank`},
		{"mount.mounted", "{name: /m, device: /dev/sda1, options: ro noatime}", `the option "ro noatime" has a blank`},
		{"mount.mounted", `{name: /m, device: /dev/sda1, options: "commit=7\t"}`, `the option "commit=7\t" has a blank`},
		{"mount.mounted", `{name: /m, device: /dev/sda1, options: "a=b\nc"}`, "has a control character"},
		{"mount.mounted", `{name: /m, device: /dev/sda1, options: 'context="a,ro'}`, "has an unterminated quote"},
		{"mount.mounted", "{name: /m, device: /dev/sda1, options: noauto, persist: false}", "persist: noauto leaves nothing to do"},
		{"mount.mounted", "{name: /m, device: /srv/a, fstype: none}", "fstype: none is the type of a bind"},
		{"mount.mounted", `{name: /m, device: "/dev/a\nb"}`, "neither name, device nor fstype may have a control character"},
		{"mount.mounted", "{name: /m, device: '/dev/a '}", "neither name nor device may begin or end with a blank"},
		{"mount.mounted", `{name: "/m\n/dev/b /c", device: /dev/a}`, "neither name, device nor fstype may have a control character"},
		{"mount.mounted", "{name: /m, device: /dev/sda1, pass: two}", `pass: expected a number, found "two"`},
		{"mount.mounted", "{name: /m, device: /dev/sda1, pass: -1}", "pass: dump and pass are not negative"},
		{"mount.unmounted", "{name: m}", `name: "m" is not an absolute path`},
		{"mount.unmounted", "{name: /../}", "name: the root cannot be unmounted"},
	}...)
}
