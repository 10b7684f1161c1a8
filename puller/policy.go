package puller

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// Verify says who must have signed what a source offers. Nothing has to be signed where no keys are named.
type Verify struct {
	// Mode is what must be signed: range is every commit between the last verified one and what is offered, with all
	// that was merged; tip is the commit that is offered; tag is the annotated tag on it. Default: tag for a source that
	// follows tags, else range.
	Mode string `yaml:"mode"`
	// OpenPGP is a keyring of those who may sign, armored or not. After "repository:" it is a path in the repository,
	// at the last verified commit.
	OpenPGP string `yaml:"openpgp"`
	// AllowedSigners is a file of SSH keys in the format of ssh-keygen(1), ALLOWED SIGNERS, or such a path.
	AllowedSigners string `yaml:"allowedSigners"`
	// Since is a commit that is trusted with all its history, so that older commits need no signature. What is offered
	// has to have it in its history: so it also says which repository is meant, which a signature does not.
	Since string `yaml:"since"`
}

// The modes of Verify.
const (
	verifyRange = "range"
	verifyTip   = "tip"
	verifyTag   = "tag"
)

// InRepository begins the name of a key file that is in the repository.
const InRepository = "repository:"

// on reports that something has to be signed.
func (v Verify) on() bool { return v.OpenPGP != "" || v.AllowedSigners != "" }

func (s Source) verifyMode() string {
	switch {
	case s.Verify.Mode != "":
		return s.Verify.Mode
	case s.tagged():
		return verifyTag
	}
	return verifyRange
}

// keysInRepository reports keys that change with the repository's history.
func (v Verify) keysInRepository() bool {
	return strings.HasPrefix(v.OpenPGP, InRepository) || strings.HasPrefix(v.AllowedSigners, InRepository)
}

// checkVerify returns all mistakes of what has to be signed.
func (s Source) checkVerify() (errs []error) {
	v := s.Verify
	if v == (Verify{}) {
		return nil
	}
	if !v.on() {
		errs = append(errs, errors.New("verify names no keys: set verify.openpgp or verify.allowedSigners"))
	}
	if !slices.Contains([]string{verifyRange, verifyTip, verifyTag}, s.verifyMode()) {
		errs = append(errs, fmt.Errorf("verify.mode %q is none of range, tip and tag", v.Mode))
	}
	if s.verifyMode() == verifyTag && !s.tagged() {
		errs = append(errs, errors.New("verify.mode tag needs a source that follows tags: set tag or semver"))
	}
	if v.Since != "" && !plumbing.IsHash(v.Since) {
		errs = append(errs, fmt.Errorf("verify.since %q is not a full commit id: git rev-parse %s", v.Since, v.Since))
	}
	if v.Since != "" && s.verifyMode() == verifyTip {
		errs = append(errs, errors.New("verify.since is for the modes range and tag: the mode tip looks at no history"))
	}
	return append(errs, s.checkKeys()...)
}

// checkKeys returns the mistakes of keys that are in the repository.
func (s Source) checkKeys() (errs []error) {
	v := s.Verify
	if !v.keysInRepository() {
		return nil
	}
	for _, name := range []string{v.OpenPGP, v.AllowedSigners} {
		if file, ok := strings.CutPrefix(name, InRepository); ok && !fs.ValidPath(file) {
			errs = append(errs, fmt.Errorf("verify: %q is not a path in the repository", name))
		}
	}
	if s.verifyMode() != verifyRange || v.Since == "" {
		errs = append(errs, errors.New(
			"verify: keys in the repository need the mode range and verify.since: the first keys are those at that commit",
		))
	}
	return errs
}
