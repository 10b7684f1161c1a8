package account

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// crypts are the forms of crypt(3), with the whole length of each, so that a hash from which a shell ate its $ is
// found. They are large, and made when a step first has a password.
var crypts = sync.OnceValue(func() []*regexp.Regexp {
	return []*regexp.Regexp{
		regexp.MustCompile(`^\$6\$(rounds=[0-9]+\$)?[^$:!*\s]{0,16}\$[./0-9A-Za-z]{86}$`),
		regexp.MustCompile(`^\$5\$(rounds=[0-9]+\$)?[^$:!*\s]{0,16}\$[./0-9A-Za-z]{43}$`),
		regexp.MustCompile(`^\$1\$[^$:!*\s]{0,8}\$[./0-9A-Za-z]{22}$`),
		regexp.MustCompile(`^\$2[abxy]\$[0-9]{2}\$[./0-9A-Za-z]{53}$`),
		regexp.MustCompile(`^\$(y|gy)\$[./0-9A-Za-z]+\$[./0-9A-Za-z]+\$[./0-9A-Za-z]{43}$`),
		regexp.MustCompile(`^\$7\$[./0-9A-Za-z]{11,97}\$[./0-9A-Za-z]{43}$`),
	}
})

// checkPassword finds a password that is no hash. What it says never holds the text.
func checkPassword(text string) error {
	if text == "*" || strings.Trim(text, "!") == "" {
		return nil
	}
	hash := strings.TrimLeft(text, "!")
	for _, form := range crypts() {
		if form.MatchString(hash) {
			return nil
		}
	}
	return fmt.Errorf(
		"password: it looks like clear text, or like a hash that was cut: give what openssl passwd -6 or mkpasswd " +
			"prints, or '*' for none",
	)
}

// passwordField is the password of a user as the shadow file says it: what is left of its exclamation marks is locked
// by them.
func passwordField(have, want string, lock *bool) (string, error) {
	hash := strings.TrimLeft(have, "!")
	locked := hash != have
	newHash, newLocked := hash, locked
	if want != "" {
		newHash = strings.TrimLeft(want, "!")
		// Who is new has a mark and nothing behind it: nobody locked that.
		newLocked = newHash != want || locked && hash != ""
	}
	if lock != nil {
		newLocked = *lock
	}
	switch {
	case newHash == hash && newLocked == locked:
		return have, nil
	case newLocked:
		return "!" + newHash, nil
	case newHash == "":
		return "", fmt.Errorf("there is no password to unlock: give one in password, or '*' for none")
	}
	return newHash, nil
}
