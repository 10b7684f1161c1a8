package account

import (
	"path"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/passwd"
)

// accountPaths are the files that the account tools change.
var accountPaths = []string{
	accountFiles, "/etc/shadow", "/etc/group", "/etc/gshadow", "/etc/subuid", "/etc/subgid",
}

// Paths returns the files with the host's groups.
func (a *GroupPresent) Paths(*apply.Host) []string { return accountPaths }

// Paths returns the files with the host's groups.
func (a *GroupAbsent) Paths(*apply.Host) []string { return accountPaths }

// Paths returns the files with the host's users, and the homes that the step makes or moves.
func (a *UserPresent) Paths(h *apply.Host) []string {
	homes := []string{a.home(), homeOf(h, a.Name)}
	if homes[0]+homes[1] == "" {
		homes[0] = path.Join("/home", a.Name)
	}
	if a.MoveHome {
		homes = append(homes, below(homes[0]), below(homes[1]))
	}
	return append(homes, accountPaths...)
}

// Paths returns the files with the host's users, and the home where it is removed.
func (a *UserAbsent) Paths(h *apply.Host) []string {
	if home := homeOf(h, a.Name); a.RemoveHome {
		return append([]string{home, below(home)}, accountPaths...)
	}
	return accountPaths
}

// Paths returns the file with the keys of the user.
func (a *AuthorizedKey) Paths(h *apply.Host) []string {
	return []string{sshPath(h, a.User, authorizedKeys)}
}

// Paths returns the file with the keys of hosts.
func (a *KnownHost) Paths(h *apply.Host) []string {
	if a.User == "" {
		return []string{sshKnownHosts}
	}
	return []string{sshPath(h, a.User, knownHosts)}
}

// sshPath returns the path of a file in the .ssh of a user, or "" where the user is unknown.
func sshPath(h *apply.Host, user, name string) string {
	home := homeOf(h, user)
	if home == "" {
		return ""
	}
	return path.Join(home, ".ssh", name)
}

// homeOf returns the home of a user, or "" where the user is unknown.
func homeOf(h *apply.Host, name string) string {
	all, err := passwd.Read(h, "passwd")
	if err != nil {
		return "" // the step itself fails for it
	}
	if user := all.Named(name); user != nil {
		return user.Field(passwd.Home)
	}
	return ""
}

// below stands for everything in a directory.
func below(dir string) string {
	if dir == "" {
		return ""
	}
	return dir + "/"
}
