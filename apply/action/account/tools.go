package account

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/passwd"
)

// checkAccountRefs is the check of names or numbers of accounts.
func checkAccountRefs(param string, refs ...string) error {
	for _, ref := range refs {
		if id, err := strconv.Atoi(ref); err == nil && id >= 0 {
			continue
		}
		if err := passwd.CheckName(param, ref); err != nil {
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

// accountTool runs one of the host's tools for accounts, such as useradd. Where the host's root is a directory, it
// works on the files there. While another program holds their lock, it is tried again.
func accountTool(ctx context.Context, h *apply.Host, stdin, tool string, args ...string) error {
	if !h.IsMachine() {
		args = append([]string{"--root", h.Root}, args...)
	}
	patience, cancel := context.WithTimeout(ctx, accountLockWait)
	defer cancel()
	var locked error // what the tool said of the lock
	for {
		out, err := h.Run(ctx, apply.Command{Args: append([]string{tool}, args...), Stdin: stdin})
		var missing *apply.NoProgramError
		switch {
		case err != nil && locked != nil && ctx.Err() != nil: // the time ended while the tool was tried again
			return locked
		case errors.As(err, &missing) || errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf(
				"%w; the tools for accounts are missing: install the package passwd (Debian) or shadow-utils (Fedora)",
				err,
			)
		case err != nil:
			return fmt.Errorf("%s: %w", tool, err)
		case out.ExitCode == 0:
			return nil
		}
		failed := fmt.Errorf("%s: %s", tool, out.Failure())
		if !isLocked(out) {
			return failed
		}
		locked = fmt.Errorf(
			"%w; another program holds the account files: see /etc/.pwd.lock, /etc/passwd.lock and /etc/group.lock",
			failed,
		)
		select {
		case <-patience.Done():
			return locked
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
