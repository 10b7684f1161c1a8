// Package account manages users, groups and their ssh keys.
package account

import "github.com/pullet/pullet/apply"

// Actions lists the actions of this package in the order of the documentation.
func Actions() []apply.Spec {
	return []apply.Spec{
		{
			Name: "user.present", Summary: "a user with these groups, home, shell and password",
			Provides: apply.Named("user", "name"), Needs: apply.Named("group", "group", "groups"),
			New: func() apply.Action { return &UserPresent{AppendGroups: true} },
		},
		{Name: "user.absent", Summary: "no user of this name", New: func() apply.Action { return &UserAbsent{} }},
		{
			Name: "group.present", Summary: "a group with this number and these members",
			Provides: apply.Named("group", "name"), Needs: apply.Named("user", "members"),
			New: func() apply.Action { return &GroupPresent{AppendMembers: true} },
		},
		{Name: "group.absent", Summary: "no group of this name", New: func() apply.Action { return &GroupAbsent{} }},
		{
			Name: "ssh.authorized_key", Summary: "public keys with which one can log in as a user",
			Needs: apply.Named("user", "user"), New: func() apply.Action { return &AuthorizedKey{State: "present"} },
		},
		{
			Name: "ssh.known_host", Summary: "the public key by which ssh knows a host",
			Needs: apply.Named("user", "user"), New: func() apply.Action { return &KnownHost{Port: 22, State: "present"} },
		},
	}
}
