package safetext

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"unicode"
)

// The longest names, in bytes: a host name in DNS has 253, a key of etcd has several names.
const (
	maxName  = 253
	maxValue = 1000
)

// Name reports what a node can be named: letters, digits, dots, dashes and underscores, with a letter or a digit at
// both ends.
func Name(name string) bool {
	for i, r := range name {
		alone := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !alone && (!strings.ContainsRune("._-", r) || i == 0 || i == len(name)-1) {
			return false
		}
	}
	return name != "" && len(name) <= maxName
}

// Word reports what can be a part of a key: one word of characters that can be seen, without a slash.
func Word(word string) bool {
	return word != "" && len(word) <= maxName && !Obeyed(word) && !strings.ContainsFunc(word, func(r rune) bool {
		return r == '/' || unicode.IsSpace(r) || unicode.Is(unicode.Cf, r)
	})
}

// Host reports an address of a host by name, as DNS and hosts(5) have them: letters, digits, dots, dashes and
// underscores.
func Host(name string) bool {
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-", r) {
			return false
		}
	}
	return name != "" && len(name) <= maxName && name[0] != '-'
}

// Address reports an IP address, with its zone, or the name of a host.
func Address(text string) bool {
	if ip, err := netip.ParseAddr(text); err == nil {
		return ip.Zone() == "" || Interface(ip.Zone())
	}
	return Host(text)
}

// Interface reports the name of a network interface.
func Interface(name string) bool { return Word(name) && len(name) <= 64 }

// Label says what is wrong with a label: its key is a word that a target can name, its value one line.
func Label(key, value string) error {
	switch {
	case !Word(strings.ReplaceAll(key, "/", "_")) || strings.ContainsAny(key, "=!,*"):
		return fmt.Errorf("label %q: a key is one word without = ! , *, of %d letters at most", Line(key, 50), maxName)
	case len(value) > maxValue || Obeyed(value):
		return fmt.Errorf(
			"label %s: its value is one line of %d letters at most, without control characters",
			key,
			maxValue,
		)
	case key == "role" && value != "" && !Word(value):
		return fmt.Errorf(
			"label role: %q: a role is one word without a slash, of %d letters at most",
			Line(value, 50),
			maxName,
		)
	}
	return nil
}

// Labels says what is wrong with the first of some labels, by their keys.
func Labels(labels map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if err := Label(key, labels[key]); err != nil {
			return err
		}
	}
	if len(labels) > 200 {
		return fmt.Errorf("there are %d labels: a node has 200 at most", len(labels))
	}
	return nil
}

// maxEventName is the longest name of an event, in bytes.
const maxEventName = 200

// EventName reports the name of an event: words between slashes, such as backup/failed. A word has letters, digits and
// underscores at both ends, and dots, colons, dashes and blanks as well inside.
func EventName(name string) bool {
	for word := range strings.SplitSeq(name, "/") {
		for i, r := range word {
			alone := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_'
			if !alone && (!strings.ContainsRune(".: -", r) || i == 0 || i == len(word)-1) {
				return false
			}
		}
		if word == "" {
			return false
		}
	}
	return len(name) <= maxEventName
}

// EventSpellings are the names of an event, the one on record first: a step that failed is pullet/step/failed, and the
// source documents call it edenconfmgmt/failure/step.
func EventSpellings(name string) []string {
	const failed, documented = "pullet/step/failed", "edenconfmgmt/failure/step"
	if name == failed || name == documented {
		return []string{failed, documented}
	}
	return []string{name}
}
