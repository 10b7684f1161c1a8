package action_test

import "maps"

// fstabText is an /etc/fstab as people keep it.
const fstabText = "# /etc/fstab\nUUID=ab-cd  /         ext4  errors=remount-ro  0  1\n\n# data\n/dev/sdb1   /srv/data  xfs   noatime\t0 2 # ours\n/dev/sdc1 none swap sw 0 0\n"

// clearMount prepares a whole host: nothing is mounted at /srv/m, and no entry names it.
const clearMount = "while umount -R /srv/m 2>/dev/null; do :; done; rm -rf /srv/m /srv/from; touch /etc/fstab; sed -i '\\,/srv/,d' /etc/fstab; "

// mountTmpfs is what follows it where a file system is mounted already, as the entry says.
const mountTmpfs = clearMount + "mkdir -p /srv/m; mount -t tmpfs -o nodev,size=8m tmpfs /srv/m; echo 'tmpfs /srv/m tmpfs nodev,size=8m 0 0' >>/etc/fstab; "

func init() {
	maps.Copy(examples, map[string][]example{
		"mount.mounted": {
			{name: "create", params: "{name: /srv/data, device: UUID=ab-cd, fstype: ext4, options: [noatime, nofail], pass: 2}", want: "entry in /etc/fstab"},
			{name: "among others", params: "{name: /srv/my data/, device: /dev/sdd1}", host: []string{"f etc/fstab 640 " + fstabText}, want: "entry in /etc/fstab"},
			{name: "right already", params: "{name: /srv/data, device: /dev/sdb1, fstype: xfs, options: noatime, pass: 2}", host: []string{"f etc/fstab 644 " + fstabText}},
			{name: "right already, escaped", params: "{name: '/a b', device: tmpfs, fstype: tmpfs}", host: []string{"f etc/fstab 644 tmpfs /a\\040b tmpfs defaults"}},
			{name: "other options", params: "{name: /srv/data, device: /dev/sdb1, fstype: xfs, options: [ro, noatime], pass: 2}", host: []string{"f etc/fstab 644 " + fstabText}, want: "entry in /etc/fstab"},
			{name: "with its directory", params: "{name: /srv/a/b, device: /dev/sdb1, makeDirs: true}", want: "make the directory, entry in /etc/fstab"},
			{name: "not persistent", params: "{name: /srv/data, device: tmpfs, fstype: tmpfs, persist: false}", host: []string{"f etc/fstab 644 " + fstabText}},
			{name: "two entries", params: "{name: /srv/data, device: tmpfs, fstype: tmpfs}", host: []string{"f etc/fstab 644 a /srv/data xfs\n# b\nb /srv/data/ xfs\n"},
				fails: "/etc/fstab has two entries for /srv/data, in lines 1 and 3: remove one of them"},

			{name: "mount", whole: true, setup: clearMount, params: "{name: /srv/m, device: tmpfs, fstype: tmpfs, options: [size=8m, nodev], makeDirs: true}",
				want: "make the directory, mount, entry in /etc/fstab"},
			{name: "mount, not at boot", whole: true, setup: clearMount + "mkdir /srv/m", params: "{name: /srv/m, device: tmpfs, fstype: tmpfs, persist: false}", want: "mount"},
			{name: "mounted already", whole: true, setup: mountTmpfs, params: "{name: /srv/m, device: tmpfs, fstype: tmpfs, options: [nodev, size=8m]}"},
			{name: "the entry alone", whole: true, setup: mountTmpfs + "sed -i '/srv/d' /etc/fstab", params: "{name: /srv/m, device: tmpfs, fstype: tmpfs, options: [nodev, size=8m]}", want: "entry in /etc/fstab"},
			{name: "mounted with other flags", whole: true, setup: mountTmpfs + "mount -o remount,ro,noexec /srv/m", params: "{name: /srv/m, device: tmpfs, fstype: tmpfs, options: [nodev, size=8m]}",
				want: "remount with exec,rw", unseen: true},
			{name: "another size, other flags", whole: true, setup: mountTmpfs, params: "{name: /srv/m, device: tmpfs, fstype: tmpfs, options: [noatime, nosuid, size=16m, mode=0755]}",
				want: "remount with dev,nosuid,noatime,size=16m,mode=0755, entry in /etc/fstab"},
			{name: "another device than the entry's", whole: true, setup: clearMount + "mkdir -p /srv/from /srv/m; echo '/dev/gone /srv/m auto nofail 0 0' >>/etc/fstab; systemctl daemon-reload",
				params: "{name: /srv/m, device: /srv/from, options: bind}", want: "mount, entry in /etc/fstab"},
			{name: "bind", whole: true, setup: clearMount + "mkdir -p /srv/from /srv/m", params: "{name: /srv/m, device: /srv/from, options: [bind, ro]}", want: "mount, entry in /etc/fstab"},
			{name: "bind a file", whole: true, setup: clearMount + "mkdir -p /srv/from; echo x >/srv/from/x", params: "{name: /srv/m, device: /srv/from/x, options: bind, makeDirs: true}", want: "make the directory, mount, entry in /etc/fstab"},
			{name: "bind, writable by now", whole: true, setup: clearMount + "mkdir -p /srv/from /srv/m; mount -o bind,ro /srv/from /srv/m; echo /srv/from /srv/m none bind,ro >>/etc/fstab",
				params: "{name: /srv/m, device: /srv/from, options: [bind, rw]}", want: "remount with rw, entry in /etc/fstab"},
			{name: "something else is mounted", whole: true, setup: mountTmpfs + "mkdir /srv/from", params: "{name: /srv/m, device: /srv/from, options: bind}",
				fails: "tmpfs (tmpfs) is mounted at /srv/m, and not /srv/from: unmount it first"},
			{name: "no directory", whole: true, setup: clearMount, params: "{name: /srv/m, device: tmpfs, fstype: tmpfs}", want: "mount, entry in /etc/fstab", fails: "there is no directory /srv/m: add makeDirs: true"},
			{name: "no such device", whole: true, setup: clearMount, params: "{name: /srv/m, device: LABEL=nonesuch, makeDirs: true}", want: "make the directory, mount, entry in /etc/fstab",
				fails: "mount: /srv/m: can't find LABEL=nonesuch"},
			{name: "no such option", whole: true, setup: mountTmpfs, params: "{name: /srv/m, device: tmpfs, fstype: tmpfs, options: nonesuch}", want: "remount with dev,nonesuch, entry in /etc/fstab",
				fails: "mount: /srv/m"},
		},
		"mount.unmounted": {
			{name: "not there", params: "{name: /srv/old}", host: []string{"f etc/fstab 644 " + fstabText}},
			{name: "no fstab", params: "{name: /srv/old}"},
			{name: "an entry", params: "{name: /srv/data/}", host: []string{"f etc/fstab 640 " + fstabText}, want: "remove from /etc/fstab"},
			{name: "the entry stays", params: "{name: /srv/data, persist: false}", host: []string{"f etc/fstab 644 " + fstabText}},

			{name: "unmount", whole: true, setup: mountTmpfs, params: "{name: /srv/m}", want: "unmount tmpfs, remove from /etc/fstab"},
			{name: "unmount two", whole: true, setup: mountTmpfs + "mount -t tmpfs upper /srv/m", params: "{name: /srv/m, persist: false}", want: "unmount upper", unseen: true},
			{name: "in use", whole: true, setup: mountTmpfs + "mkdir /srv/m/d; mount -t tmpfs other /srv/m/d", params: "{name: /srv/m}", want: "unmount tmpfs, remove from /etc/fstab", fails: "umount /srv/m: exit code 32: umount: /srv/m: target is busy"},
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
		{"mount.mounted", "{name: /m, device: /dev/sda1, options: 'a,,b'}", `options: "a,,b" is not a list of options`},
		{"mount.mounted", "{name: /m, device: /dev/sda1, options: remount}", `options: "remount" is not a list of options`},
		{"mount.mounted", `{name: /m, device: "/dev/a\nb"}`, "have more than one line"},
		{"mount.mounted", "{name: /m, device: /dev/sda1, pass: two}", `pass: expected a number, found "two"`},
		{"mount.mounted", "{name: /m, device: /dev/sda1, pass: -1}", "pass: dump and pass are not negative"},
		{"mount.unmounted", "{name: m}", `name: "m" is not an absolute path`},
		{"mount.unmounted", "{name: /../}", "name: the root cannot be unmounted"},
	}...)
}
