// Package facts gathers what is true of a host, for templates and expressions: `server.os`, `server.addresses.eth0`.
//
// A fact is one row of the table below: a name, what it means, and a function that reads it. Facts come from files and
// from the kernel; nothing is executed and no network is asked, so gathering takes about a millisecond.
package facts

import (
	"bufio"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/pullet/pullet/render"
)

// Fact is one row of the reference: what `server.NAME` holds.
type Fact struct {
	Name string
	Doc  string
	read func(h *host) any // nil: this host does not have it
}

// All lists the facts in the order of the documentation.
func All() []Fact {
	return []Fact{
		{"os", "distribution, as in ID of os-release: debian, fedora", func(h *host) any { return h.release["ID"] }},
		{
			"osFamily",
			"distribution whose package names and paths it has: debian, redhat, suse, arch, or os itself",
			func(h *host) any { return osFamily(h.release["ID"], h.osLike()) },
		},
		{"osVersion", "version of the distribution: 12, 41", func(h *host) any { return h.release["VERSION_ID"] }},
		{
			"osMajor",
			"osVersion up to its first dot: 12, 24",
			func(h *host) any { return major(h.release["VERSION_ID"]) },
		},
		{
			"osCodename",
			"code name of the distribution, or empty: bookworm",
			func(h *host) any { return h.release["VERSION_CODENAME"] },
		},
		{"osLike", "the distributions that this one is like, a list", func(h *host) any { return h.osLike() }},
		{
			"hostname",
			"host name without its domain",
			func(h *host) any { short, _, _ := strings.Cut(h.hostname, "."); return short },
		},
		{"fqdn", "full name, as /etc/hosts gives it, else the host name", func(h *host) any { return h.fqdn() }},
		{"arch", "processor architecture in Go's words: amd64, arm64", func(*host) any { return runtime.GOARCH }},
		{"kernel", "kernel release: 6.1.0-18-amd64", func(h *host) any { return h.text("/proc/sys/kernel/osrelease") }},
		{"cpus", "processors that are online", func(*host) any { return runtime.NumCPU() }},
		{"memory", "main memory in MiB", func(h *host) any { return h.memory() }},
		{"machineId", "content of /etc/machine-id", func(h *host) any { return h.text("/etc/machine-id") }},
		{
			"addresses",
			"IP addresses by interface, IPv4 first, without loopback",
			func(*host) any { return addresses() },
		},
		{
			"defaultInterface",
			"interface of the IPv4 default route, or empty",
			func(h *host) any { return h.defaultInterface() },
		},
		{"address", "first address of the default interface, or empty", func(h *host) any { return h.address() }},
		{
			"virtual",
			"true in a container or a virtual machine, as far as the kernel tells",
			func(h *host) any { return h.virtual() },
		},
	}
}

// Gather reads the facts of the host whose files are below root ("/" for this one). A fact that cannot be read is
// empty: a host without an os-release is no reason to stop managing it.
func Gather(root string) render.Facts {
	h := &host{root: root}
	h.release = h.osRelease()
	h.hostname = h.name()
	out := render.Facts{}
	for _, f := range All() {
		out[f.Name] = f.read(h)
	}
	return out
}

// Sample are the facts of a made-up host, for what is rendered without its node.
func Sample(name string) render.Facts {
	return render.Facts{
		"os": "debian", "osFamily": "debian", "osVersion": "12", "osMajor": "12", "osCodename": "bookworm", "osLike": []any{},
		"hostname": name, "fqdn": name,
		"arch": "amd64", "kernel": "6.1.0", "cpus": 2, "memory": 4096, "machineId": "00000000000000000000000000000000",
		"addresses": map[string]any{
			"eth0": []any{"192.0.2.10"},
		}, "defaultInterface": "eth0", "address": "192.0.2.10", "virtual": true,
	}
}

// host reads files below a root.
type host struct {
	root     string
	hostname string
	release  map[string]string
}

// text is a one-line file's content; /proc and /sys are always those of the running kernel.
func (h *host) text(path string) string {
	if !strings.HasPrefix(path, "/proc/") && !strings.HasPrefix(path, "/sys/") {
		path = filepath.Join(h.root, path)
	}
	data, _ := os.ReadFile(path)
	return strings.TrimSpace(string(data))
}

// name is the kernel's host name; of another root, what it would be called when it runs.
func (h *host) name() string {
	if h.root != "/" {
		for line := range strings.Lines(h.text("/etc/hostname")) { // it may have comments
			if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
				return line
			}
		}
	}
	name, _ := os.Hostname()
	return name
}

// osRelease reads os-release(5).
func (h *host) osRelease() map[string]string {
	out := map[string]string{"ID": "", "VERSION_ID": "", "VERSION_CODENAME": ""}
	text := h.text("/etc/os-release")
	if text == "" {
		text = h.text("/usr/lib/os-release")
	}
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if ok && !strings.HasPrefix(key, "#") {
			out[key] = strings.Trim(value, `"'`)
		}
	}
	return out
}

func (h *host) osLike() []any {
	out := []any{}
	for _, id := range strings.Fields(h.release["ID_LIKE"]) {
		out = append(out, id)
	}
	return out
}

// fqdn is the first name with a dot that /etc/hosts has on a line with the host name.
func (h *host) fqdn() string {
	for line := range strings.Lines(h.text("/etc/hosts")) {
		line, _, _ = strings.Cut(line, "#")
		names := strings.Fields(line)
		if len(names) < 2 || !slices.Contains(names[1:], h.hostname) {
			continue
		}
		for _, n := range names[1:] {
			if strings.HasPrefix(n, h.hostname+".") {
				return n
			}
		}
	}
	return h.hostname
}

func (h *host) memory() int {
	for line := range strings.Lines(h.text("/proc/meminfo")) {
		if rest, ok := strings.CutPrefix(line, "MemTotal:"); ok {
			kib, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(rest), " kB"))
			return kib / 1024
		}
	}
	return 0
}

// addresses are the global addresses of all interfaces that are up.
func addresses() map[string]any {
	out := map[string]any{}
	interfaces, _ := net.Interfaces()
	for _, i := range interfaces {
		if i.Flags&net.FlagLoopback != 0 || i.Flags&net.FlagUp == 0 {
			continue
		}
		var v4, v6 []any
		addrs, _ := i.Addrs()
		for _, a := range addrs {
			ip, _, err := net.ParseCIDR(a.String())
			switch {
			case err != nil || ip.IsLinkLocalUnicast():
			case ip.To4() != nil:
				v4 = append(v4, ip.String())
			default:
				v6 = append(v6, ip.String())
			}
		}
		if all := append(v4, v6...); len(all) > 0 {
			out[i.Name] = all
		}
	}
	return out
}

// defaultInterface is the interface of the route to 0.0.0.0 in the kernel's table.
func (h *host) defaultInterface() string {
	scan := bufio.NewScanner(strings.NewReader(h.text("/proc/net/route")))
	for scan.Scan() {
		if f := strings.Fields(scan.Text()); len(f) > 2 && f[1] == "00000000" {
			return f[0]
		}
	}
	return ""
}

func (h *host) address() string {
	list, _ := addresses()[h.defaultInterface()].([]any)
	if len(list) == 0 {
		return ""
	}
	first, _ := list[0].(string)
	return first
}

func (h *host) virtual() bool {
	return h.text("/proc/1/environ") != "" && strings.Contains(h.text("/proc/1/environ"), "container=") ||
		strings.Contains(h.text("/proc/cpuinfo"), "hypervisor")
}
