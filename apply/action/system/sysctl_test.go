package system

import "testing"

// TestSysctlNames: names lead to where sysctl(8) would look, and never out of /proc/sys.
func TestSysctlNames(t *testing.T) {
	for name, want := range map[string]string{
		"net.ipv4.ip_forward": "net/ipv4/ip_forward", "net/ipv4/ip_forward": "net/ipv4/ip_forward",
		"net.ipv4.conf.eth0/100.forwarding": "net/ipv4/conf/eth0.100/forwarding", "net/ipv4/conf/eth0.100/forwarding": "net/ipv4/conf/eth0.100/forwarding",
		"kernel": "", "": "", ".kernel.x": "", "kernel..x": "", "kernel.x.": "", "kernel/../x": "", "kernel.//.x": "", "-kernel.x": "", "kernel.x y": "", "kernel.*": "", "/kernel/x": "",
	} {
		got := sysctlKey(name)
		if got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
		if got != "" && sysctlKey(sysctlName(got)) != got {
			t.Errorf("%q is written as %q", got, sysctlName(got))
		}
	}
}

// TestSysctlValues compares as the kernel reads.
func TestSysctlValues(t *testing.T) {
	for _, same := range [][2]string{{"1", "1"}, {"1 2", " 1\t2\n"}, {"0x1b", "27"}, {"010", "8"}, {"-1", "-1"}, {"a  b", "a b"}, {"", " "}} {
		if !sameSysctl(same[0], same[1]) {
			t.Errorf("%q and %q are the same", same[0], same[1])
		}
	}
	for _, other := range [][2]string{{"1", "2"}, {"1 2", "12"}, {"0b1", "1"}, {"1_0", "10"}, {"a", "A"}, {"1", ""}} {
		if sameSysctl(other[0], other[1]) {
			t.Errorf("%q and %q are not the same", other[0], other[1])
		}
	}
}

// TestBuiltIn reads the kernel's list.
func TestBuiltIn(t *testing.T) {
	const list = "kernel/fs/ext4/ext4.ko\nkernel/sound/core/snd-seq.ko.xz\n"
	for m, want := range map[kmod]bool{"ext4": true, "snd_seq": true, "ext": false, "xz": false} {
		if m.listed(list) != want {
			t.Errorf("%s: want %v", m, want)
		}
	}
}
