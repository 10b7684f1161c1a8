package gitremote

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
)

// Check returns all mistakes of a remote's settings.
func (r Remote) Check() []error {
	if r.URL == "" {
		return []error{errors.New("url is missing")}
	}
	ep, err := r.Endpoint()
	if err != nil {
		return []error{err}
	}
	return append(r.Auth.check(ep.Protocol), r.checkWeb(ep.Protocol)...)
}

// checkWeb checks what is for the web alone.
func (r Remote) checkWeb(protocol string) (errs []error) {
	web := protocol == "http" || protocol == "https"
	if r.TLS.CA != "" && protocol != "https" {
		errs = append(errs, errors.New("tls.ca is for https urls"))
	} else if _, err := r.TLS.roots(); err != nil {
		errs = append(errs, err)
	}
	if r.Proxy == "" {
		return errs
	}
	if u, err := url.Parse(r.Proxy); err != nil || u.Host == "" || u.User != nil {
		errs = append(errs, errors.New("proxy must be a URL such as http://proxy.example.org:3128, without a user"))
	}
	if !web {
		errs = append(errs, errors.New("proxy is for http and https urls"))
	}
	return errs
}

// roots are the authorities to believe; nil is those of the host.
func (t TLS) roots() (*x509.CertPool, error) {
	if t.CA == "" {
		return nil, nil
	}
	text, _, err := readRegular(t.CA)
	if err != nil {
		return nil, fmt.Errorf("cannot read tls.ca: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("tls.ca: %s has no certificate in PEM form", t.CA)
	}
	return pool, nil
}

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
	data, info, err := readRegular(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read credentials: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf(
			"credentials in %s are open to others (mode %04o): chmod 600 %s",
			file,
			info.Mode().Perm(),
			file,
		)
	}
	return data, nil
}

// webLogin is the URL without user and password, so that no error can quote
// them, and both as they are to be sent.
func (r Remote) webLogin() (u *url.URL, user *url.Userinfo, err error) {
	if u, err = url.Parse(r.URL); err != nil {
		return nil, nil, fmt.Errorf("url %s cannot be parsed", r.Redacted())
	}
	user, u.User = u.User, nil
	file := r.Auth.TokenFile + r.Auth.PasswordFile // check allows one of them
	if file == "" {
		return u, user, nil
	}
	secret, err := ReadSecret(file)
	if err != nil {
		return nil, nil, err
	}
	name := r.Auth.Username
	if name == "" {
		name = "git"
	}
	return u, url.UserPassword(name, strings.TrimSpace(string(secret))), nil
}
