package system

import (
	"net/netip"
	"strconv"
	"strings"

	"github.com/pullet/pullet/apply/action/place"
	"github.com/pullet/pullet/apply/claim"
)

// hostEntry is what steps about /etc/hosts have of the file.
const hostEntry = "entry of a host"

// Claims returns the job with its times, and its file as a whole.
func (a *CronPresent) Claims() []claim.Claim {
	of, file := claim.Of("cron job", a.Name), cronDir+"/"+a.Name
	out := []claim.Claim{
		of.Is("state", "present"), of.Is("user", a.User), of.Is("command", strings.TrimSpace(a.Command)),
	}
	if a.schedule != "" { // else it waits for other steps
		out = append(out, of.Is("schedule", a.schedule))
	}
	out = append(out, place.WholeFile(file, a.text())...)
	return append(out, place.Permissions{Mode: a.Mode}.Claims(file)...)
}

// Claims returns that there is no such job, and no such file.
func (a *CronAbsent) Claims() []claim.Claim {
	return []claim.Claim{
		claim.Of("cron job", a.Name).Is("state", "absent"), claim.Path(cronDir + "/" + a.Name).Are(claim.Absent),
	}
}

// Claims returns the names of the address. With unique the names have no other address of its kind.
func (a *HostPresent) Claims() []claim.Claim {
	ip, err := netip.ParseAddr(a.IP)
	if err != nil {
		return nil // Bind refuses it, or it is not known yet
	}
	address := claim.Of("address", ip.String())
	out := place.PartOf(hostsPath, hostEntry)
	if a.Exact {
		out = append(out, address.Only("names", folded(a.Names)...), address.Is("exact names", strings.Join(a.Names, " ")))
	}
	for _, name := range folded(a.Names) {
		host := claim.Of("host", name)
		out = append(out, address.Has("names", name), host.Has(addresses(ip), ip.String()))
		if a.Unique {
			out = append(out, host.Only(addresses(ip), ip.String()))
		}
	}
	return out
}

// addresses returns what a host has of the kind of an address.
func addresses(ip netip.Addr) string {
	if ip.Is4() {
		return "IPv4 addresses"
	}
	return "IPv6 addresses"
}

// folded returns names as they are compared.
func folded(names []string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = strings.ToLower(name)
	}
	return out
}

// Claims returns that the names are not there, or the address, or the names at the address.
func (a *HostAbsent) Claims() []claim.Claim {
	out := []claim.Claim{claim.Path(hostsPath).Part("absence of a host")}
	ip, err := netip.ParseAddr(a.IP)
	if a.IP != "" && err != nil {
		return out // Bind refuses it, or it is not known yet
	}
	if len(a.Names) == 0 {
		return append(out, claim.Of("address", ip.String()).Only("names"))
	}
	for _, name := range folded(a.Names) {
		if a.IP != "" {
			out = append(out, claim.Of("address", ip.String()).Lacks("names", name))
			continue
		}
		host := claim.Of("host", name)
		out = append(out, host.Only("IPv4 addresses"), host.Only("IPv6 addresses"))
	}
	return out
}

// Claims returns the name, its file as a whole, and with hosts its entry in /etc/hosts.
func (a *Hostname) Claims() []claim.Claim {
	out := []claim.Claim{claim.Of("system", "hostname").Is("value", a.Name)}
	out = append(out, place.WholeFile(hostnamePath, a.Name+"\n")...)
	if !a.Hosts {
		return out
	}
	names := []string{a.Name}
	if short, _, qualified := strings.Cut(a.Name, "."); qualified {
		names = append(names, short)
	}
	out = append(out, place.PartOf(hostsPath, hostEntry)...)
	return append(out, claim.Of("address", "127.0.1.1").Only("names", folded(names)...))
}

// Claims returns the zone, the link that names it, and the content of /etc/timezone, where that is there.
func (a *Timezone) Claims() []claim.Claim {
	link := claim.Path(localtimePath)
	return []claim.Claim{
		claim.Of("system", "timezone").Is("value", a.Name), link.Are(claim.Link), link.Is("resolved target", zones+a.Name),
		claim.Path(timezonePath).Whole(claim.Digest([]byte(a.Name + "\n"))),
	}
}

// Claims returns the value, which is compared without regard to blanks, and its line in the file for the boot.
func (a *SysctlPresent) Claims() []claim.Claim {
	key, file := sysctlKey(a.Name), a.File
	if key == "" {
		return nil // Bind refuses it
	}
	if file == "" {
		file = ownSysctlFile(key)
	}
	value := strings.Join(strings.Fields(strings.Join(a.Value, " ")), " ")
	return append(
		[]claim.Claim{claim.Of("sysctl", sysctlName(key)).Is("value", value)},
		place.PartOf(file, "kernel parameter")...,
	)
}

// Claims returns that the module is loaded, and its files for the boot.
func (a *KmodPresent) Claims() []claim.Claim {
	if a.module == "" {
		return nil // it waits for other steps
	}
	of := claim.Of("kernel module", string(a.module))
	out := []claim.Claim{of.Is("state", "loaded")}
	if !a.Persist {
		return out
	}
	load, options := a.files()
	out = append(out, of.Is("options", strings.Join(a.Options, " ")))
	out = append(out, place.WholeFile(a.module.loadFile(), load)...)
	return append(out, fileOrNone(a.module.optionsFile(), options)...)
}

// Claims returns that the module is not loaded, and the file that keeps it from being loaded.
func (a *KmodAbsent) Claims() []claim.Claim {
	if a.module == "" {
		return nil // it waits for other steps
	}
	of := claim.Of("kernel module", string(a.module))
	out := []claim.Claim{of.Is("state", "absent"), of.Is("blacklist", strconv.FormatBool(a.Blacklist))}
	out = append(out, claim.Path(a.module.loadFile()).Are(claim.Absent))
	return append(out, fileOrNone(a.module.optionsFile(), a.blacklist())...)
}

// fileOrNone returns the claims of a file that is written as a whole, or is not there where its text is empty.
func fileOrNone(name, text string) []claim.Claim {
	if text == "" {
		return []claim.Claim{claim.Path(name).Are(claim.Absent)}
	}
	return place.WholeFile(name, text)
}
