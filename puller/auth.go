package puller

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/plumbing/transport/http"
)

// check returns what is wrong with the credentials for a protocol.
func (a Auth) check(protocol string) (errs []error) {
	isSSH := protocol == "ssh"
	if isSSH && a.SSHKey == "" {
		errs = append(errs, errors.New("an ssh url needs auth.sshKey, a private key file"))
	}
	if isSSH && a.KnownHosts == "" {
		errs = append(errs, errors.New("an ssh url needs auth.knownHosts, a file made with ssh-keyscan"))
	}
	if isSSH && (a.PasswordFile != "" || a.TokenFile != "") {
		errs = append(errs, errors.New("auth.passwordFile and auth.tokenFile are for http urls"))
	}
	if a.PasswordFile != "" && a.TokenFile != "" {
		errs = append(errs, errors.New("only one of auth.passwordFile and auth.tokenFile can be used"))
	}
	if a.PasswordFile != "" && a.Username == "" {
		errs = append(errs, errors.New("auth.passwordFile needs auth.username"))
	}
	for _, file := range []string{a.SSHKey, a.PasswordFile, a.TokenFile} {
		if file == "" {
			continue
		}
		if _, err := ReadSecret(file); err != nil {
			errs = append(errs, err)
		}
	}
	if _, err := os.Stat(a.KnownHosts); a.KnownHosts != "" && err != nil {
		errs = append(errs, fmt.Errorf("cannot read auth.knownHosts: %w", err))
	}
	return errs
}

// ReadSecret reads a file that only its owner may read.
func ReadSecret(file string) ([]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read credentials: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("credentials in %s are open to others (mode %04o): chmod 600 %s", file, info.Mode().Perm(), file)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read credentials: %w", err)
	}
	return data, nil
}

// login is the URL without secrets and the way to log in, read from the
// files now.
func (s Source) login() (string, transport.AuthMethod, error) {
	ep, err := s.endpoint()
	if err != nil {
		return "", nil, err
	}
	switch ep.Protocol {
	case "ssh":
		auth, err := newSSHLogin(ep, s.Auth)
		return s.URL, auth, err
	case "http", "https":
		return s.httpLogin()
	}
	return s.URL, nil, nil
}

// httpLogin takes user and password out of the URL, so that no error of the
// layers below can quote them.
func (s Source) httpLogin() (string, transport.AuthMethod, error) {
	u, err := url.Parse(s.URL)
	if err != nil {
		return "", nil, fmt.Errorf("url %s cannot be parsed", s.shown())
	}
	user := u.User
	u.User = nil
	file := s.Auth.TokenFile + s.Auth.PasswordFile // check allows one of them
	switch {
	case file != "":
		secret, err := ReadSecret(file)
		if err != nil {
			return "", nil, err
		}
		name := s.Auth.Username
		if name == "" {
			name = "git"
		}
		return u.String(), &http.BasicAuth{Username: name, Password: strings.TrimSpace(string(secret))}, nil
	case user != nil:
		password, _ := user.Password()
		return u.String(), &http.BasicAuth{Username: user.Username(), Password: password}, nil
	}
	return u.String(), nil, nil
}
