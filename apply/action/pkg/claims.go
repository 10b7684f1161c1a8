package pkg

import (
	"strconv"
	"strings"

	"github.com/pullet/pullet/apply/action/place"
	"github.com/pullet/pullet/apply/claim"
)

// Claims returns the packages with their versions, and whether they are held.
func (a *Installed) Claims() []claim.Claim {
	var out []claim.Claim
	wants, _ := pkgWants(a.Name, a.Version, a.Pkgs) // Bind refuses bad ones
	for _, w := range wants {
		of := claim.Of("package", w.name)
		out = append(out, of.Is("state", "installed"))
		if w.version != "" {
			out = append(out, of.Version(w.version))
		}
		if a.Hold != nil {
			out = append(out, of.Is("hold", strconv.FormatBool(*a.Hold)))
		}
	}
	return out
}

// Claims returns the packages in their newest version.
func (a *Latest) Claims() []claim.Claim {
	var out []claim.Claim
	wants, _ := pkgWants(a.Name, "", a.Pkgs) // Bind refuses bad ones
	for _, w := range wants {
		of := claim.Of("package", w.name)
		out = append(out, of.Is("state", "installed"), of.Version("the newest"))
	}
	return out
}

// Claims returns that the packages are not installed.
func (a *Removed) Claims() []claim.Claim {
	var out []claim.Claim
	wants, _ := pkgWants(a.Name, "", a.Pkgs) // Bind refuses bad ones
	for _, w := range wants {
		out = append(out, claim.Of("package", w.name).Is("state", "removed"))
	}
	return out
}

// Claims returns all that the file of the repository says, and that the files are gone that it replaces.
func (a *RepoManaged) Claims() []claim.Claim {
	of := repoThing(a.Name)
	list := func(words []string) string { return strings.Join(words, " ") }
	key := a.KeySource + " " + a.KeyDigest
	if a.key != nil {
		key = claim.Digest(a.key)
	}
	out := []claim.Claim{
		of.Is("state", "present"), of.Is("url", list(a.URL)), of.Is("enabled", strconv.FormatBool(a.Enabled)),
		of.Is("suites", list(a.Suites)), of.Is("components", list(a.Components)),
		of.Is("architectures", list(a.Architectures)), of.Is("types", list(a.Types)), of.Is("metalink", a.Metalink),
		of.Is("priority", strconv.Itoa(a.Priority)), of.Is("trusted", strconv.FormatBool(a.Trusted)),
		of.Secret("key", key),
	}
	file := apt{}.leftovers(a.Name)[0]
	if len(a.Suites) == 0 { // apt needs them, and dnf has none
		file = dnf{}.leftovers(a.Name)[0]
	}
	out = append(out, place.WholeFile(file, "the package repository "+a.Name)...)
	for _, gone := range a.Replaces {
		out = append(out, claim.Path(file+"/../"+gone).Are(claim.Absent))
	}
	return out
}

// Claims returns that the repository has no files.
func (a *RepoAbsent) Claims() []claim.Claim {
	out := []claim.Claim{repoThing(a.Name).Is("state", "absent")}
	for _, form := range []repoForm{apt{}, dnf{}} {
		for _, file := range form.leftovers(a.Name) {
			out = append(out, claim.Path(file).Are(claim.Absent))
		}
	}
	return out
}

// repoThing returns a package repository of the host.
func repoThing(name string) claim.Thing { return claim.Of("package repository", name) }
