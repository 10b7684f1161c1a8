package action

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pullet/pullet/apply"
)

// accounts are the lines of the host's passwd, group or shadow file, in their order.
type accounts []account

// account is one line, split at its colons.
type account []string

// The places of what stands in a line of each file.
const (
	idField      = 2 // of passwd and group
	gidField     = 3 // of passwd
	membersField = 3 // of group
	commentField = 4
	homeField    = 5
	shellField   = 6
	expiresField = 7 // of shadow
)

// readAccounts reads one of the host's own files: passwd, group, shadow.
func readAccounts(h *apply.Host, file string) (accounts, error) {
	path, err := h.Resolve("/etc/" + file)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parseAccounts(string(data)), nil
}

func parseAccounts(text string) accounts {
	var out accounts
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if line != "" && line[0] != '#' {
			out = append(out, strings.Split(line, ":"))
		}
	}
	return out
}

// named is the first line of this name, or nil.
func (as accounts) named(name string) account {
	for _, a := range as {
		if a[0] == name {
			return a
		}
	}
	return nil
}

// numbered is the first line with this number, or nil.
func (as accounts) numbered(id int) account {
	for _, a := range as {
		if n, ok := a.number(idField); ok && n == id {
			return a
		}
	}
	return nil
}

// refers is the line that a name or a number in the place of one means, or nil.
func (as accounts) refers(text string) account {
	if found := as.named(text); found != nil {
		return found
	}
	if id, err := strconv.Atoi(text); err == nil {
		return as.numbered(id)
	}
	return nil
}

// field is the text at a place; short lines are empty at their end.
func (a account) field(i int) string {
	if i < len(a) {
		return a[i]
	}
	return ""
}

func (a account) number(i int) (int, bool) {
	n, err := strconv.Atoi(a.field(i))
	return n, err == nil && n >= 0
}

// members are the names in a line of the group file.
func (a account) members() []string {
	return strings.FieldsFunc(a.field(membersField), func(r rune) bool { return r == ',' })
}

// groupsOf are the names of the groups whose lines name a user.
func (as accounts) groupsOf(user string) []string {
	var out []string
	for _, g := range as {
		if slices.Contains(g.members(), user) {
			out = append(out, g[0])
		}
	}
	return out
}

// accountName is what every distribution takes as the name of a user or group.
var accountName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,30}[A-Za-z0-9_.$-]?$`)

// checkAccountName is the check of a name while an action is bound.
func checkAccountName(param, name string) error {
	if !accountName.MatchString(name) {
		return apply.BadParam(param, "%q is no name for an account: letters, digits, _ . and - after a letter or _, at most 32", name)
	}
	return nil
}

// checkAccountRefs is the check of names or numbers of accounts.
func checkAccountRefs(param string, refs ...string) error {
	for _, ref := range refs {
		if id, err := strconv.Atoi(ref); err == nil && id >= 0 {
			continue
		}
		if err := checkAccountName(param, ref); err != nil {
			return err
		}
	}
	return nil
}

// checkID is the check of a number of an account.
func checkID(param string, id *int) error {
	if id != nil && (*id < 0 || *id >= 1<<32-1) {
		return apply.BadParam(param, "%d is no number of an account", *id)
	}
	return nil
}

// accountFiles is what steps lock, so that none counts on what another is changing.
const accountFiles = "/etc/passwd"

// How long the tools are tried again while another program holds the account files, and how often.
const (
	accountLockWait  = 30 * time.Second
	accountLockPause = 200 * time.Millisecond
)

// accountTool runs one of the host's tools for accounts, such as useradd. Where the host's root is a directory, it works on the files
// there. While another program holds their lock, it is tried again.
func accountTool(ctx context.Context, h *apply.Host, stdin, tool string, args ...string) error {
	if h.Root != "/" {
		args = append([]string{"--root", h.Root}, args...)
	}
	patience, cancel := context.WithTimeout(ctx, accountLockWait)
	defer cancel()
	for {
		out, err := h.Run(ctx, apply.Command{Args: append([]string{tool}, args...), Stdin: stdin})
		var missing *apply.NoProgramError
		switch {
		case errors.As(err, &missing) || errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("%w; the tools for accounts are missing: install the package passwd (Debian) or shadow-utils (Fedora)", err)
		case err != nil:
			return fmt.Errorf("%s: %w", tool, err)
		case out.ExitCode == 0:
			return nil
		}
		failed := fmt.Errorf("%s: %s", tool, out.Failure())
		if !isLocked(out) {
			return failed
		}
		select {
		case <-patience.Done():
			return fmt.Errorf("%w; another program holds the account files: see /etc/.pwd.lock, /etc/passwd.lock and /etc/group.lock", failed)
		case <-time.After(accountLockPause):
		}
	}
}

// isLocked tells a lock that another program holds from one that this user may not take.
func isLocked(out apply.Output) bool {
	return strings.Contains(out.StdErr, "try again later") && !strings.Contains(out.StdErr, "ermission denied")
}

// needsRoot explains a file that the agent's user cannot read.
func needsRoot(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w: accounts can only be managed by root", err)
	}
	return err
}
