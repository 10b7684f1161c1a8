package action_test

import (
	"maps"

	"github.com/pullet/pullet/apply/action/actiontest"
)

// forwarding is where net.ipv4.ip_forward stands for the boot.
const forwarding = "etc/sysctl.d/60-pullet-net.ipv4.ip_forward.conf"

// resetForwarding prepares a whole host: the kernel says 0, and no file says anything.
const resetForwarding = "rm -f /etc/sysctl.d/*pullet*.conf; echo 0 >/proc/sys/net/ipv4/ip_forward; "

func init() {
	maps.Copy(examples, map[string][]actiontest.Example{
		"sysctl.present": {
			{Name: "create", Params: "{name: net.ipv4.ip_forward, value: 1}", Want: "at boot none -> 1"},
			{Name: "right already", Params: "{name: net.ipv4.ip_forward, value: 1}", Host: []string{"f " + forwarding + " 644 net.ipv4.ip_forward=1"}},
			{Name: "another value", Params: "{name: net.ipv4.ip_forward, value: 1}", Host: []string{"f " + forwarding + " 600 net.ipv4.ip_forward = 0\n"}, Want: "at boot 0 -> 1"},
			{Name: "written with slashes", Params: "{name: net/ipv4/ip_forward, value: 1}", Host: []string{"f " + forwarding + " 644 -net/ipv4/ip_forward=0x1\n"}},
			{Name: "an interface with a dot", Params: "{name: net.ipv4.conf.eth0/100.forwarding, value: 1}", Want: "at boot none -> 1"},
			{Name: "a list", Params: `{name: net.ipv4.tcp_rmem, value: [4096, 131072, 6291456]}`, Want: "at boot none -> 4096 131072 6291456"},
			{Name: "a list, right already", Params: `{name: net.ipv4.tcp_rmem, value: "4096\t131072\t6291456", file: /etc/sysctl.conf}`,
				Host: []string{"f etc/sysctl.conf 644 net.ipv4.tcp_rmem =  4096 131072 6291456"}},
			{Name: "among other lines", Params: "{name: kernel.panic, value: 10, file: /etc/sysctl.d/50-site.conf}",
				Host: []string{"f etc/sysctl.d/50-site.conf 640 # site\nvm.swappiness = 1\nkernel.panic=5\n; end"}, Want: "at boot 5 -> 10"},
			{Name: "the last of two counts", Params: "{name: kernel.panic, value: 10, file: /etc/sysctl.d/50-site.conf}",
				Host: []string{"f etc/sysctl.d/50-site.conf 640 kernel.panic=10\nkernel.panic=5\n"}, Want: "at boot 5 -> 10"},
			{Name: "a later file says the same", Params: "{name: kernel.panic, value: 10}",
				Host: []string{"f etc/sysctl.d/99-a.conf 640 kernel.panic=5\n", "f usr/lib/sysctl.d/99-b.conf 644 kernel/panic = 10\n"}, Want: "at boot none -> 10"},
			{Name: "a later file is hidden", Params: "{name: kernel.panic, value: 10}",
				Host: []string{"f etc/sysctl.d/99-a.conf 640 # nothing\n", "f usr/lib/sysctl.d/99-a.conf 644 kernel.panic = 5\n"}, Want: "at boot none -> 10"},
			{Name: "an earlier file says something else", Params: "{name: kernel.panic, value: 10}",
				Host: []string{"f etc/sysctl.d/10-a.conf 640 kernel.panic=5\n"}, Want: "at boot none -> 10"},
			{Name: "a later file says something else", Params: "{name: kernel.panic, value: 10}",
				Host: []string{"f etc/sysctl.conf 640 # site\nkernel.panic=5\n", "l etc/sysctl.d/99-sysctl.conf ../sysctl.conf"},
				Want: "at boot none -> 10, overridden by /etc/sysctl.d/99-sysctl.conf:2", Fails: "/etc/sysctl.d/99-sysctl.conf:2 sets kernel.panic too, and is read after"},
			{Name: "the directory is a file", Params: "{name: kernel.panic, value: 10}", Host: []string{"f etc/sysctl.d 644"}, Want: "at boot none -> 10", Fails: "not a directory"},

			{Name: "now and at boot", Whole: true, Setup: resetForwarding, Params: "{name: net.ipv4.ip_forward, value: 1}", Want: "now 0 -> 1, at boot none -> 1"},
			{Name: "only the kernel is wrong", Whole: true, Setup: resetForwarding + "echo net.ipv4.ip_forward = 1 >/" + forwarding,
				Params: "{name: net.ipv4.ip_forward, value: 1}", Want: "now 0 -> 1", Unseen: true},
			{Name: "only the file is wrong", Whole: true, Setup: resetForwarding + "echo net.ipv4.ip_forward = 1 >/" + forwarding,
				Params: "{name: net.ipv4.ip_forward, value: 0}", Want: "at boot 1 -> 0"},
			{Name: "three numbers", Whole: true, Setup: resetForwarding + "echo 4096 131072 6291456 >/proc/sys/net/ipv4/tcp_rmem",
				Params: `{name: net.ipv4.tcp_rmem, value: [4096, 131072, 7000000]}`, Want: "now 4096 131072 6291456 -> 4096 131072 7000000, at boot none -> 4096 131072 7000000"},
			{Name: "the kernel refuses", Whole: true, Setup: resetForwarding, Params: "{name: net.ipv4.ip_forward, value: maybe}",
				Want: "now 0 -> maybe, at boot none -> maybe", Fails: `the kernel refuses "maybe" for net.ipv4.ip_forward: invalid argument`},
			{Name: "the kernel makes something else of it", Whole: true, Setup: resetForwarding + "echo >/proc/sys/net/ipv4/ip_local_reserved_ports",
				Params: "{name: net.ipv4.ip_local_reserved_ports, value: '8080,8081'}", Want: "now none -> 8080,8081, at boot none -> 8080,8081",
				Fails: `the kernel made "8080-8081" of "8080,8081" for net.ipv4.ip_local_reserved_ports, which has its old value again`},
			{Name: "misspelt", Whole: true, Setup: resetForwarding, Params: "{name: net.ipv4.ip_forwad, value: 1}",
				Want: "now none -> 1, at boot none -> 1", Fails: `the kernel has no parameter net.ipv4.ip_forwad: did you mean "net.ipv4.ip_forward"?`},
			{Name: "of a module that is not loaded", Whole: true, Setup: resetForwarding, Params: "{name: net.nonesuch.enable, value: 1}",
				Want: "now none -> 1, at boot none -> 1", Fails: "load its module in a step before this one (kmod.present)"},
			{Name: "a group", Whole: true, Setup: resetForwarding, Params: "{name: net.ipv4, value: 1}", Fails: "net.ipv4 is not a parameter, but a group of them"},
			{Name: "not this host's to set", Whole: true, Setup: resetForwarding, Params: "{name: kernel.ngroups_max, value: 7}",
				Want: "now 65536 -> 7, at boot none -> 7", Fails: `the kernel refuses "7" for kernel.ngroups_max: `},
			{Name: "the interface eth0.5", Whole: true, Setup: resetForwarding + "ip link show d0.5 2>/dev/null || ip link add d0.5 type bridge; echo 0 >/proc/sys/net/ipv4/conf/d0.5/forwarding",
				Params: "{name: net.ipv4.conf.d0/5.forwarding, value: 1}", Want: "now 0 -> 1, at boot none -> 1"},
		},
		"system.hostname": {
			{Name: "create", Params: "{name: web1}", Want: "at boot none -> web1"},
			{Name: "right already", Params: "{name: web1}", Host: []string{"f etc/hostname 644 # ours\n\nweb1\n"}},
			{Name: "another", Params: "{name: web1.example.org}", Host: []string{"f etc/hostname 600 old\n"}, Want: "at boot old -> web1.example.org"},
			{Name: "in hosts", Params: "{name: web1.example.org, hosts: true}", Host: []string{"f etc/hostname 644 web1.example.org\n", "f etc/hosts 644 # h\n127.0.0.1 localhost\n::1 localhost\n"}, Want: "127.0.1.1 in /etc/hosts"},
			{Name: "in hosts, right already", Params: "{name: web1, hosts: true}", Host: []string{"f etc/hostname 644 web1\n", "f etc/hosts 644 127.0.1.1   web1 # me"}},
			{Name: "in hosts, another", Params: "{name: web1, hosts: true}", Host: []string{"f etc/hostname 644 old\n", "f etc/hosts 644 127.0.0.1 localhost\n127.0.1.1 old.example.org old\n"},
				Want: "at boot old -> web1, 127.0.1.1 in /etc/hosts"},
			{Name: "no hosts at all", Params: "{name: web1, hosts: true}", Want: "at boot none -> web1, 127.0.1.1 in /etc/hosts"},
			{Name: "hosts without a last newline", Params: "{name: web1, hosts: true}", Host: []string{"f etc/hosts 644 127.0.0.1 localhost"}, Want: "at boot none -> web1, 127.0.1.1 in /etc/hosts"},
			{Name: "a directory stands there", Params: "{name: web1}", Host: []string{"d etc/hostname 755"}, Fails: "/etc/hostname is a directory, not a file"},

			{Name: "now and at boot", Whole: true, Setup: "hostname old; echo old >/etc/hostname", Params: "{name: new.example.org}", Want: "now old -> new.example.org, at boot old -> new.example.org"},
			{Name: "only now", Whole: true, Setup: "hostname old; echo new >/etc/hostname", Params: "{name: new}", Want: "now old -> new", Unseen: true},
		},
		"system.timezone": {
			{Name: "create", Params: "{name: Europe/Berlin}", Host: []string{"f usr/share/zoneinfo/Europe/Berlin 644 TZif2", "d etc 755"}, Want: "none -> Europe/Berlin"},
			{Name: "right already", Params: "{name: UTC}", Host: []string{"l etc/localtime /usr/share/zoneinfo/UTC", "f etc/timezone 644 UTC\n"}},
			{Name: "another", Params: "{name: Asia/Tokyo}", Host: []string{"f usr/share/zoneinfo/Asia/Tokyo 644 TZif2", "l etc/localtime ../usr/share/zoneinfo/UTC", "f etc/timezone 644 UTC\n"}, Want: "UTC -> Asia/Tokyo, /etc/timezone"},
			{Name: "the file of Debian alone", Params: "{name: Asia/Tokyo}", Host: []string{"f usr/share/zoneinfo/Asia/Tokyo 644 TZif2", "l etc/localtime ../usr/share/zoneinfo/Asia/Tokyo", "f etc/timezone 644 UTC\n"}, Want: "/etc/timezone"},
			{Name: "a copy stands there", Params: "{name: Asia/Tokyo}", Host: []string{"f usr/share/zoneinfo/Asia/Tokyo 644 TZif2", "f etc/localtime 644 TZif2"}, Want: "a copy -> Asia/Tokyo"},
			{Name: "misspelt", Params: "{name: Europe/Berlni}", Host: []string{"f usr/share/zoneinfo/Europe/Berlin 644 TZif2", "l etc/localtime ../usr/share/zoneinfo/UTC"}, Want: "UTC -> Europe/Berlni", Fails: `there is no time zone "Europe/Berlni" on this host: did you mean "Europe/Berlin"?`},
			{Name: "a table is no zone", Params: "{name: Xyz}", Host: []string{"f usr/share/zoneinfo/Xyz 644 text", "f usr/share/zoneinfo/Europe/Berlin 644 TZif2"}, Want: "none -> Xyz", Fails: "zoneinfo/Xyz is not the file of a time zone"},
			{Name: "no zones", Params: "{name: Europe/Berlin}", Want: "none -> Europe/Berlin", Fails: "install the package tzdata before this step"},
			{Name: "a directory stands there", Params: "{name: UTC}", Host: []string{"d etc/localtime 755"}, Fails: "/etc/localtime is a directory"},
		},
		"kmod.present": {
			{Name: "create", Params: "{name: br-netfilter}", Want: "load at boot"},
			{Name: "with options", Params: "{name: nf_conntrack, options: [hashsize=131072, acct]}", Want: "load at boot, options"},
			{Name: "right already", Params: "{name: nf-conntrack, options: acct=1}",
				Host: []string{"f etc/modules-load.d/pullet-nf_conntrack.conf 644 nf_conntrack\n", "f etc/modprobe.d/pullet-nf_conntrack.conf 644 options nf_conntrack acct=1\n"}},
			{Name: "no options any more", Params: "{name: loop}", Host: []string{"f etc/modules-load.d/pullet-loop.conf 644 loop\n", "f etc/modprobe.d/pullet-loop.conf 644 options loop max_part=8\n"}, Want: "options"},
			{Name: "not at boot", Params: "{name: loop, persist: false}"},

			{Name: "built in", Whole: true, Setup: "rm -f /etc/modules-load.d/pullet-*; test -d /sys/module/tcp_cubic", Params: "{name: tcp-cubic}", Want: "load at boot"},
			{Name: "options of one that is loaded", Whole: true, Setup: "rm -f /etc/modules-load.d/pullet-* /etc/modprobe.d/pullet-*", Params: "{name: tcp_cubic, options: beta=700}", Want: "load at boot, options, for when it is loaded next"},
			{Name: "no such module", Whole: true, Setup: "rm -f /etc/modules-load.d/pullet-* /etc/modprobe.d/pullet-*", Params: "{name: no_such_module, options: a=b}", Want: "load, load at boot, options", Fails: "modprobe"},
		},
		"kmod.absent": {
			{Name: "not there", Params: "{name: dccp}", Host: []string{"f etc/modules 644 # nothing\n"}},
			{Name: "blacklist", Params: "{name: dccp, blacklist: true}", Want: "blacklist"},
			{Name: "blacklisted already", Params: "{name: dccp, blacklist: true}", Host: []string{"f etc/modprobe.d/pullet-dccp.conf 644 blacklist dccp\ninstall dccp /bin/false\n"}},
			{Name: "not blacklisted any more", Params: "{name: dccp}", Host: []string{"f etc/modprobe.d/pullet-dccp.conf 644 blacklist dccp\n"}, Want: "remove /etc/modprobe.d/pullet-dccp.conf"},
			{Name: "was there", Params: "{name: snd-seq}", Host: []string{"f etc/modules 644 # h\nsnd_seq\nloop\n", "f etc/modules-load.d/pullet-snd_seq.conf 644 snd_seq\n", "f etc/modules-load.d/x.conf 644 snd-seq\n"},
				Want: "remove from /etc/modules, remove from /etc/modules-load.d/pullet-snd_seq.conf, remove from /etc/modules-load.d/x.conf"},
			{Name: "built in", Whole: true, Params: "{name: tcp_cubic}", Want: "unload", Fails: "tcp_cubic is built into this kernel and cannot be unloaded"},
		},
	})
	mistakes = append(mistakes, []mistake{
		{"sysctl.present", "{value: 1}", `jobs/a.yaml:2:3: parameters: "name" is missing`},
		{"sysctl.present", "{name: net.ipv4.ip_forward}", `parameters: "value" is missing`},
		{"sysctl.present", "{name: ip_forward, value: 1}", `jobs/a.yaml:4:22: name: "ip_forward" is not the name of a kernel parameter`},
		{"sysctl.present", "{name: net/../../etc/passwd, value: 1}", `name: "net/../../etc/passwd" is not the name of a kernel parameter`},
		{"sysctl.present", "{name: net.//.//.etc.passwd, value: 1}", "is not the name of a kernel parameter"},
		{"sysctl.present", "{name: net.ipv4.conf.*.rp_filter, value: 1}", "is not the name of a kernel parameter"},
		{"sysctl.present", "{name: net.ipv4.ip_forward = 1, value: 1}", "is not the name of a kernel parameter"},
		{"sysctl.present", "{name: kernel.panic, value: ''}", "jobs/a.yaml:4:43: value: is empty"},
		{"sysctl.present", `{name: kernel.panic, value: "1\n2"}`, "is more than one line"},
		{"sysctl.present", "{name: kernel.panic, value: 1, file: x.conf}", `file: "x.conf" is not an absolute path`},
		{"sysctl.present", "{name: kernel.panic, value: 1, file: /etc/sysctl.d/x}", "file: /etc/sysctl.d/x is not read at boot"},
		{"system.hostname", "{}", `parameters: "name" is missing`},
		{"system.hostname", "{name: web_1}", `jobs/a.yaml:4:22: name: "web_1" is not a host name`},
		{"system.hostname", "{name: -web}", "is not a host name"},
		{"system.hostname", "{name: web.}", "is not a host name"},
		{"system.hostname", "{name: a123456789012345678901234567890123456789012345678901234567890123}", "is not a host name"},
		{"system.timezone", "{name: ../../etc/passwd}", `jobs/a.yaml:4:22: name: "../../etc/passwd" is not a time zone`},
		{"system.timezone", "{name: 'Europe/'}", "is not a time zone"},
		{"kmod.present", "{name: a/b}", `jobs/a.yaml:4:22: name: "a/b" is not the name of a kernel module`},
		{"kmod.present", "{name: -r}", "is not the name of a kernel module"},
		{"kmod.present", "{name: loop, options: ['#x']}", `options: "#x" is not an option of a module`},
		{"kmod.absent", "{name: ''}", `name: "" is not the name of a kernel module`},
	}...)
}
