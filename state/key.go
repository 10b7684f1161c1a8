package state

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pullet/pullet/internal/safetext"
)

// Key is what the key of a record says. Of what its kind does not have it is empty.
type Key struct {
	Node, Group, Version, Rollout string
	Service, Category, State      string
	Word                          string // the id of a command, of a hold; the digest of content
	Hash                          string // of a step or an election
	Place                         int

	kind *kind
	raw  string
}

// parseKey reads a key of a fleet. Its error is a *BadRecordError.
func parseKey(prefix, key string) (Key, error) {
	rest, ours := strings.CutPrefix(key, prefix)
	if !ours {
		return Key{}, &BadRecordError{
			Key:    shownKey(key),
			Why:    "it is no key of this fleet",
			Counts: "it is left out",
			raw:    key,
		}
	}
	parts := strings.Split(rest, "/")
	why, nearest := "pullet knows no such key", (*kind)(nil)
	for _, s := range shapes()[parts[0]] {
		if nearest == nil {
			nearest = s.kind
		}
		if len(s.words) != len(parts) {
			continue
		}
		out := Key{kind: s.kind, raw: key}
		wrong, other := out.fill(s.words, parts)
		switch {
		case other:
		case wrong == "":
			return out, nil
		default:
			why, nearest = wrong, s.kind
		}
	}
	return Key{}, Key{kind: nearest, raw: key}.bad(errors.New(why))
}

// fill takes the parts of a key: it says what is wrong with one, or that the key is of another kind.
func (k *Key) fill(words, parts []string) (wrong string, other bool) {
	for i, word := range words {
		if word[0] >= 'a' { // a literal word; the others are in capitals
			if word != parts[i] {
				return "", true
			}
			continue
		}
		if bad := k.set(word, parts[i]); bad != "" && wrong == "" {
			wrong = fmt.Sprintf("%s %s", strconv.QuoteToASCII(safetext.Cut(parts[i], 60)), bad)
		}
	}
	return wrong, false
}

// set checks and keeps one part of a key.
func (k *Key) set(word, part string) (wrong string) {
	ok := true
	switch word {
	case "NODE":
		ok, wrong, k.Node = safetext.Name(part), "is no name of a node", part
	case "GROUP":
		ok, wrong, k.Group = safetext.Word(part), "is no group", part
	case "VERSION":
		ok, wrong, k.Version = versionID(part), "is no version", part
	case "ROLLOUT":
		ok, wrong, k.Rollout = versionID(part), "is no rollout", part
	case "SERVICE":
		ok, wrong, k.Service = serviceName(part), "is no name of a service", part
	case "CATEGORY":
		ok, wrong, k.Category = slices.Contains(Categories(), part), "is no category", part
	case "STATE":
		ok, wrong, k.State = slices.Contains(states[:], part), "is no state", part
	case "WORD":
		ok, wrong, k.Word = safetext.Word(part), "is no id", part
	case "HASH":
		ok, wrong, k.Hash = hexOf(part, 20), "is no step", part
	case "DIGEST":
		ok, wrong, k.Word = hexOf(part, 64), "is no digest", part
	case "PLACE": // one way to write each: two keys for a place would be two holders
		n, err := strconv.Atoi(part)
		ok, wrong, k.Place = err == nil && n >= 0 && n < 1<<30 && strconv.Itoa(n) == part, "is no place", n
	case "SEQ":
		ok, wrong, k.Place = digits(part, 10), "is no number of a version", atoi(part)
	case "CHUNK":
		ok, wrong, k.Place = digits(part, 3), "is no chunk", atoi(part)
	case "TICKET":
		number, node, _ := strings.Cut(part, "-")
		ok, wrong, k.Node = digits(number, 19) && safetext.Name(node), "is no ticket", node
	}
	if ok {
		return ""
	}
	return wrong
}

// bad is an error about the record of the key.
func (k Key) bad(why error) *BadRecordError {
	rest := k.raw
	if parts := strings.SplitN(k.raw, "/", 4); len(parts) == 4 && strings.HasPrefix(k.raw, "/pullet/") {
		rest = parts[3] // behind the fleet
	}
	shown := shownKey(rest)
	e := &BadRecordError{
		Key:    shown,
		Why:    why.Error(),
		Counts: "it is left out",
		Clear:  "pullet doctor --remove " + shown,
		raw:    k.raw,
		of:     k.kind,
	}
	if k.kind != nil && k.kind.counts != "" {
		e.Counts = k.kind.counts
	}
	if k.kind != nil && k.kind.clear != "" {
		e.Clear = k.kind.clear + ", or " + e.Clear
	}
	return e
}

// versionID reports what identifies a version: a commit, or a digest; with an epoch it is a rollout.
func versionID(id string) bool { return safetext.Name(id) && len(id) <= 128 }

// serviceName reports the name of a service: letters, digits and dashes, 63 at most.
func serviceName(name string) bool {
	return safetext.Name(name) && len(name) <= 63 && !strings.ContainsAny(name, "._")
}

func hexOf(text string, digits int) bool {
	return len(text) == digits && strings.Trim(text, "0123456789abcdef") == ""
}

func digits(text string, n int) bool { return len(text) == n && strings.Trim(text, "0123456789") == "" }

// atoi is the number of digits that are checked beside.
func atoi(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}
