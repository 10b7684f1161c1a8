package trust

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"

	"go.yaml.in/yaml/v4"
)

// sopsRule says which values of a file are encrypted.
type sopsRule struct {
	encrypts bool              // what matches is encrypted, and all else in clear; otherwise the other way around
	comments bool              // it is over the comments above a value; otherwise over the keys that lead to it
	match    func(string) bool // a key, or a line of a comment
}

// sopsRules are the rules that SOPS knows, by the end of their names.
var sopsRules = []string{"suffix", "regex", "comment_regex"}

// readSOPSRule reads the one rule of a file.
func readSOPSRule(meta *yaml.Node) (*sopsRule, error) {
	var found *sopsRule
	for _, kind := range sopsRules {
		for _, name := range []string{"unencrypted_" + kind, "encrypted_" + kind} {
			text := scalar(meta, name)
			if text == "" {
				continue
			}
			if found != nil {
				return nil, errors.New("it has more than one rule of SOPS for what is encrypted")
			}
			match, err := sopsMatch(kind, text)
			if err != nil {
				return nil, fmt.Errorf("%s of SOPS: %w", name, err)
			}
			encrypts := strings.HasPrefix(name, "encrypted_")
			found = &sopsRule{encrypts: encrypts, comments: kind == "comment_regex", match: match}
		}
	}
	if found == nil {
		match, err := sopsMatch("suffix", "_unencrypted")
		return &sopsRule{match: match}, err
	}
	return found, nil
}

// maxSOPSProgram is how many instructions a regular expression may have. What a match costs grows with them.
const maxSOPSProgram = 1000

// sopsMatch is how a rule of a kind matches.
func sopsMatch(kind, text string) (func(string) bool, error) {
	if kind == "suffix" {
		return func(key string) bool { return strings.HasSuffix(key, text) }, nil
	}
	if len(text) > maxSOPSPattern {
		return nil, fmt.Errorf("it is longer than %d bytes", maxSOPSPattern)
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, err
	}
	if len(program.Inst) > maxSOPSProgram {
		return nil, errors.New("the regular expression is too large")
	}
	compiled, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	return compiled.MatchString, nil
}

// key reports whether the rule matches a key.
func (r *sopsRule) key(key string) bool { return !r.comments && r.match(key) }

// comment reports whether the rule matches a line of comments, which are texts of lines that begin with #.
func (r *sopsRule) comment(comments ...string) bool {
	if !r.comments {
		return false
	}
	for _, comment := range comments {
		for line := range strings.SplitSeq(comment, "\n") {
			if line != "" && r.match(line[1:]) {
				return true
			}
		}
	}
	return false
}

// encrypted reports whether a value is, given whether one of its keys or comments matches.
func (r *sopsRule) encrypted(matches bool) bool { return matches == r.encrypts }
