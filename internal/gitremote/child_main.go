package gitremote

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A binary that can fetch can be the child: every one that has this package.
// It is the package's business alone, and cannot be forgotten by a program or a
// test that fetches; one that did would start itself again and again. It also
// comes before most packages of a large program set themselves up.
func init() {
	if len(os.Args) == 2 && os.Args[1] == childCommand {
		os.Exit(childMain())
	}
}

// overhead is the address space for data that the Go runtime takes for itself
// and does not use: arenas and their maps.
const overhead = 256 << 20

// childMain runs a child's task. Descriptors are as child.go says.
func childMain() int {
	var t task
	if err := json.NewDecoder(os.Stdin).Decode(&t); err != nil {
		return 1
	}
	if err := limitSelf(t.Limits); err != nil {
		return 1
	}
	given, makes := os.NewFile(3, "given"), os.NewFile(4, "makes")
	r, err := t.do(given, makes)
	if err = errors.Join(err, makes.Close()); err != nil {
		r = failure(err)
	}
	if json.NewEncoder(os.Stdout).Encode(r) != nil {
		return 1
	}
	return 0
}

// limitSelf gives up what the task does not need, for good.
func limitSelf(l Limits) error {
	seconds := uint64(l.Time/time.Second) + 1
	errs := []error{
		unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0), // others of the same user cannot look in
	}
	for what, limit := range map[int]uint64{
		unix.RLIMIT_DATA:   uint64(l.Memory) + overhead, // the heap is all of it: nothing is mapped
		unix.RLIMIT_FSIZE:  0,                           // pipes are no files
		unix.RLIMIT_CPU:    seconds,
		unix.RLIMIT_NOFILE: 256,
		unix.RLIMIT_CORE:   0,
	} {
		errs = append(errs, unix.Setrlimit(what, &unix.Rlimit{Cur: limit, Max: limit}))
	}
	return errors.Join(errs...)
}

func failure(err error) reply {
	pack, isPack := errors.AsType[*PackError](err)
	local, isLocal := errors.AsType[*LocalError](err)
	limit, isLimit := errors.AsType[*LimitError](err)
	switch {
	case isPack:
		return reply{Kind: failedPack, Text: pack.What}
	case isLocal:
		return reply{Kind: failedLocal, Text: local.What}
	case isLimit:
		return reply{Kind: failedLimit, Limit: limit}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return reply{Kind: failedPack, Text: "it is cut short"}
	case errors.Is(err, syscall.EPIPE):
		return reply{Kind: unread}
	}
	return reply{Kind: failedLocal, Text: err.Error()}
}

func (t task) do(given, makes *os.File) (reply, error) {
	switch t.Do {
	case taskIndex:
		return reply{}, indexPack(given, makes, t.Limits)
	case taskPack:
		return reply{}, t.packRepository(given, makes)
	case taskPeel:
		peeled, err := t.peelTags(given)
		return reply{Peeled: peeled}, err
	case taskNothing:
		return reply{}, nil
	}
	return reply{}, errors.New("there is no task " + t.Do)
}
