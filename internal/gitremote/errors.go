package gitremote

import (
	"fmt"
	"strings"
	"unicode"
)

// AuthError says that a server refuses the credentials.
type AuthError struct {
	Denied bool // it knows them, and they may not read this repository
	SSH    bool
}

func (e *AuthError) Error() string {
	switch {
	case e.SSH:
		return "the server does not accept auth.sshKey: add its public half as a deploy key"
	case e.Denied:
		return "authorization failed: the server knows the credentials and denies access: check what the token or user " +
			"may read"
	}
	return "authentication required: the server refused the credentials: check auth.username, auth.passwordFile or " +
		"auth.tokenFile"
}

// NotFoundError says that there is no repository at a URL, or none that the
// credentials may see.
type NotFoundError struct{}

func (e *NotFoundError) Error() string {
	return "repository not found: check the url; many servers also say so when the credentials may not see it"
}

// EmptyError says that a repository has no references.
type EmptyError struct{}

func (e *EmptyError) Error() string { return "remote repository is empty: push a commit first" }

// StatusError is an answer of a web server that is neither success nor one
// that another error stands for.
type StatusError struct{ Code int }

func (e *StatusError) Error() string { return fmt.Sprintf("the server answers with status %d", e.Code) }

// RedirectError says that a web server points to another server. Credentials
// are for the configured one only, so nothing was sent there.
type RedirectError struct{ To string }

func (e *RedirectError) Error() string {
	return fmt.Sprintf(
		"the server redirects to another one, %s, which pullet does not follow: if that is right, configure it as url",
		e.To,
	)
}

// ProtocolError says that an answer is not what git's protocol prescribes.
type ProtocolError struct{ What string }

func (e *ProtocolError) Error() string { return "the server breaks git's protocol: " + e.What }

// ServerError is what a server says about a request that it refuses. It has no
// control characters.
type ServerError struct{ Text string }

func (e *ServerError) Error() string { return "the server says: " + e.Text }

// LimitError says that a repository needs more than a limit allows.
type LimitError struct {
	What string // needs more, such as "the pack"
	// Setting is the key under agent.git with the limit; empty for one that
	// cannot be configured.
	Setting string
	Limit   string
}

func (e *LimitError) Error() string {
	text := fmt.Sprintf("%s: more than the limit of %s", e.What, e.Limit)
	if e.Setting == "" {
		return text
	}
	return text + fmt.Sprintf("; if the repository really needs it, raise agent.git.%s", e.Setting)
}

// PackError says that what was fetched is not sound. Nothing of it was kept.
type PackError struct{ What string }

func (e *PackError) Error() string { return "the server sent a bad pack: " + e.What }

// LocalError says that a repository on this machine cannot be read.
type LocalError struct{ What string }

func (e *LocalError) Error() string { return e.What }

// ChildError says that the process that reads packs could not be run or ended
// without an answer.
type ChildError struct{ What string }

func (e *ChildError) Error() string { return "the process that reads git objects " + e.What }

const maxText = 300

// clean makes one printable line of a text that others chose.
func clean(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > maxText {
		text = string(runes[:maxText]) + "..."
	}
	return text
}
