package system

import (
	"context"
	"net/netip"
	"regexp"
	"strings"
	"sync"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/place"
)

// HostPresent is an address with its names in /etc/hosts. All other lines, and comments, stay as they are. The address
// has one line: names that it lacks come behind those that it has, or in a new line at the end of the file. The first
// name of a new line is the one that the address is translated back to.
//
// A name may stand at other addresses, too, and programs then take the first, unless unique moves it.
//
// Example:
//
//	steps:
//	  - name: database
//	    action: host.present
//	    parameters:
//	      ip: 10.0.0.5
//	      names: [db.example.org, db]
//	      unique: true
type HostPresent struct {
	IP    string   `yaml:"ip,required"`    // IPv4 or IPv6 address
	Names []string `yaml:"names,required"` // what it is called
	Exact bool     `yaml:"exact"`          // these names in this order and no others
	// take the names away from other addresses of the same kind: IPv4 does not touch IPv6
	Unique bool `yaml:"unique"`

	ip netip.Addr
}

// hostsPath is the file of both actions.
const hostsPath = "/etc/hosts"

// hostName is what the resolver takes as a name. It is large, and made when a step first needs it.
var hostName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_.-]{0,252}[A-Za-z0-9_])?$`)
})

func checkHostNames(names []string) error {
	for _, name := range names {
		if !hostName().MatchString(name) {
			return apply.BadParam("names", "%q is no name of a host", name)
		}
	}
	return nil
}

func parseIP(text string) (netip.Addr, error) {
	ip, err := netip.ParseAddr(text)
	if err != nil {
		return ip, apply.BadParam("ip", "%q is no address: write 10.0.0.5 or fd00::5", text)
	}
	return ip, nil
}

// Bind checks address and names.
func (a *HostPresent) Bind(apply.Binding) error {
	var err error
	if a.ip, err = parseIP(a.IP); err != nil {
		return err
	}
	if len(a.Names) == 0 {
		return apply.BadParam("names", "is empty: host.absent removes an address")
	}
	return checkHostNames(a.Names)
}

func (a *HostPresent) edit(text string) string {
	f := parseHosts(text)
	if a.Unique {
		f = f.without(func(l hostsLine) bool { return l.ip != a.ip && l.ip.Is4() == a.ip.Is4() }, a.Names)
	}
	return f.with(a.ip, a.Names, a.Exact).String()
}

// Manages is the names, one by one.
func (a *HostPresent) Manages() []apply.Resource {
	var out []apply.Resource
	for _, name := range a.Names {
		out = append(out, apply.Resource{
			ID: "host " + name + " at " + a.IP, Path: hostsPath, Part: true, Absent: "host.absent",
			Params: map[string]any{"ip": a.IP, "names": []string{name}},
		})
	}
	return out
}

// Check compares the lines.
func (a *HostPresent) Check(_ context.Context, h *apply.Host) (apply.Change, error) {
	return compareText(h, hostsPath, a.ip.String()+" "+strings.Join(a.Names, " "), a.edit)
}

// Apply writes the file.
func (a *HostPresent) Apply(ctx context.Context, h *apply.Host, _ apply.Change) (apply.Output, error) {
	return apply.Output{State: "present"}, place.EditText(ctx, h, hostsPath, a.edit)
}

// HostAbsent takes names out of /etc/hosts, or an address with all of its names. A line that has no names left is
// removed; all other lines, and comments, stay as they are.
//
// Example:
//
//	steps:
//	  - name: old database
//	    action: host.absent
//	    parameters: {names: [olddb.example.org, olddb]}
type HostAbsent struct {
	IP    string   `yaml:"ip"`    // the address; without names all of its lines go
	Names []string `yaml:"names"` // the names; without ip at every address

	ip netip.Addr
}

// Bind checks address and names.
func (a *HostAbsent) Bind(apply.Binding) error {
	if a.IP == "" && len(a.Names) == 0 {
		return apply.BadParam("names", "is missing: give names, an ip, or both")
	}
	if a.IP != "" {
		var err error
		if a.ip, err = parseIP(a.IP); err != nil {
			return err
		}
	}
	return checkHostNames(a.Names)
}

func (a *HostAbsent) edit(text string) string {
	at := func(l hostsLine) bool { return !a.ip.IsValid() || l.ip == a.ip }
	f := parseHosts(text)
	if len(a.Names) > 0 {
		return f.without(at, a.Names).String()
	}
	var out hostsFile
	for _, line := range f {
		if !line.ip.IsValid() || !at(line) {
			out = append(out, line)
		}
	}
	return out.String()
}

// Check looks for them.
func (a *HostAbsent) Check(_ context.Context, h *apply.Host) (apply.Change, error) {
	return compareText(h, hostsPath, "remove "+strings.Join(a.Names, " ")+" "+a.IP, a.edit)
}

// Apply writes the file.
func (a *HostAbsent) Apply(ctx context.Context, h *apply.Host, _ apply.Change) (apply.Output, error) {
	return apply.Output{State: "absent"}, place.EditText(ctx, h, hostsPath, a.edit)
}

// compareText compares a text file with what an edit makes of it.
func compareText(h *apply.Host, name, summary string, edit func(string) string) (apply.Change, error) {
	file, err := place.ReadText(h, name)
	if err != nil {
		return apply.Change{}, err
	}
	if want := edit(file.Text); want != file.Text {
		return apply.Change{Summary: strings.Join(strings.Fields(summary), " "), Diff: file.Diff(want)}, nil
	}
	return apply.Change{}, nil
}
