package account

import (
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/pullet/pullet/apply/action/place"
	"github.com/pullet/pullet/apply/claim"
)

const (
	furtherGroups = "groups"
	members       = "members"
	keysOf        = "authorized keys"
)

// Claims returns the properties of the user that the step names, and its membership in groups.
func (a *UserPresent) Claims() []claim.Claim {
	user := claim.Of("user", a.Name)
	out := []claim.Claim{user.Is("state", "present")}
	if a.UID != nil {
		uid := strconv.Itoa(*a.UID)
		out = append(out, user.Is("uid", uid), claim.Of("uid", uid).Is("user", a.Name))
	}
	if a.Password != "" {
		out = append(out, user.Secret("password", a.Password))
	}
	if a.Comment != nil {
		out = append(out, user.Is("comment", *a.Comment))
	}
	if a.Locked != nil {
		out = append(out, user.Is("locked", strconv.FormatBool(*a.Locked)))
	}
	for _, one := range []struct{ aspect, value string }{
		{"group", a.Group}, {"home", a.home()}, {"shell", a.Shell}, {"expires", a.Expires},
	} {
		if one.value != "" && !numeric(one.value) {
			out = append(out, user.Is(one.aspect, one.value))
		}
	}
	if a.Home != "" && a.CreateHome != nil && *a.CreateHome {
		out = append(out, claim.Path(a.home()).Are(claim.Tree))
	}
	return append(out, a.groupClaims()...)
}

// groupClaims returns the groups of the user. A group that is written as a number is not compared.
func (a *UserPresent) groupClaims() []claim.Claim {
	user := claim.Of("user", a.Name)
	var out []claim.Claim
	var named []string
	all := true
	for _, g := range a.Groups {
		if all = all && !numeric(g); numeric(g) {
			continue
		}
		named = append(named, g)
		group := claim.Of("group", g)
		out = append(out, user.Has(furtherGroups, g), group.Is("state", "present"))
		if g != a.Group && g != a.Name { // the primary group has no member for it
			out = append(out, group.Has(members, a.Name))
		}
	}
	if !a.AppendGroups && all {
		out = append(out, user.Only(furtherGroups, named...))
	}
	if a.Group != "" && !numeric(a.Group) {
		out = append(out, claim.Of("group", a.Group).Is("state", "present"))
	}
	return out
}

// numeric reports a reference to an account by its number.
func numeric(ref string) bool {
	_, err := strconv.Atoi(ref)
	return err == nil
}

// Claims returns that there is no such user.
func (a *UserAbsent) Claims() []claim.Claim {
	return []claim.Claim{claim.Of("user", a.Name).Is("state", "absent")}
}

// Claims returns the number and the members of the group.
func (a *GroupPresent) Claims() []claim.Claim {
	group := claim.Of("group", a.Name)
	out := []claim.Claim{group.Is("state", "present")}
	if a.GID != nil {
		gid := strconv.Itoa(*a.GID)
		out = append(out, group.Is("gid", gid), claim.Of("gid", gid).Is("group", a.Name))
	}
	for _, m := range a.Members {
		user := claim.Of("user", m)
		out = append(out, group.Has(members, m), user.Has(furtherGroups, a.Name), user.Is("state", "present"))
	}
	if !a.AppendMembers {
		out = append(out, group.Only(members, a.Members...))
	}
	return out
}

// Claims returns that there is no such group.
func (a *GroupAbsent) Claims() []claim.Claim {
	return []claim.Claim{claim.Of("group", a.Name).Is("state", "absent")}
}

// Claims returns the keys with their options and comments, and that they stand in the user's file.
func (a *AuthorizedKey) Claims() []claim.Claim {
	user, file := claim.Of("user", a.User), "~"+a.User+"/.ssh/"+authorizedKeys
	if a.State == "absent" {
		out := []claim.Claim{claim.Path(file).Part("absence of a key")}
		for _, l := range a.want {
			out = append(out, user.Lacks(keysOf, ssh.FingerprintSHA256(l.key)))
		}
		return out
	}
	out := append([]claim.Claim{user.Is("state", "present")}, place.PartOf(file, "key")...)
	var all []string
	for _, l := range a.want {
		print := ssh.FingerprintSHA256(l.key)
		key := claim.Of("authorized key", print+" of "+a.User)
		all = append(all, print)
		out = append(out, user.Has(keysOf, print))
		if l.options != nil {
			out = append(out, key.Is("options", strings.Join(l.options, ",")))
		}
		if l.comment != "" {
			out = append(out, key.Is("comment", l.comment))
		}
	}
	if a.Exclusive && (len(all) > 0 || len(a.Keys) == 0 && a.Key == "") {
		out = append(out, user.Only(keysOf, all...))
	}
	return out
}

// Claims returns the key of the host, and the file that it stands in.
func (a *KnownHost) Claims() []claim.Claim {
	host, file := claim.Of("known host", a.name()), sshKnownHosts
	if a.User != "" {
		host.Name, file = host.Name+" of "+a.User, "~"+a.User+"/.ssh/"+knownHosts
	}
	switch {
	case a.State == "absent" && a.Key == "":
		return []claim.Claim{host.Only("keys"), claim.Path(file).Part("absence of a host")}
	case a.want == nil: // it is not known yet
		return []claim.Claim{claim.Path(file).Part("key of a host")}
	}
	print := ssh.FingerprintSHA256(a.want)
	if a.State == "absent" {
		return []claim.Claim{host.Lacks("keys", print), claim.Path(file).Part("absence of a host")}
	}
	out := []claim.Claim{host.Is(a.want.Type()+" key", print), host.Has("keys", print)}
	if a.User != "" {
		out = append(out, claim.Of("user", a.User).Is("state", "present"))
	}
	return append(out, place.PartOf(file, "key of a host")...)
}
