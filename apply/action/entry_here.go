package action

import (
	"errors"

	"github.com/pullet/pullet/apply/hostfile"
)

// entryHere is an entry below a directory; nil without an error where a link is on the way to it, because what lies behind the link is somewhere
// else.
func entryHere(dir *hostfile.Dir, name string) (*hostfile.Entry, error) {
	at, err := dir.Entry(name)
	if _, away := errors.AsType[*hostfile.LinkRefused](err); away {
		return nil, nil
	}
	return at, err
}
