package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v4"

	"github.com/pullet/pullet/internal/authority"
	"github.com/pullet/pullet/internal/durable"
	"github.com/pullet/pullet/internal/ownfile"
)

// Joining is how a host becomes one of a fleet: it has a key, asks for its certificate, and places the answer.
type Joining struct {
	File string // the configuration
	Root string // in which the machine's id is read

	key     []byte
	Request []byte // for a certificate, in PEM
}

// Join begins to join a fleet. A host that is in one is refused, unless it is to join again.
func Join(file, root string, again bool) (*Joining, error) {
	j := &Joining{File: file, Root: root}
	// Before a token is used: what others can write is refused when it is read.
	if err := ownfile.Check(filepath.Dir(file)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if _, err := os.Stat(j.path(JoinedFile)); err == nil && !again {
		return nil, fmt.Errorf("%s is there: this host is in a fleet already; --again has it join anew", j.path(JoinedFile))
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var err error
	j.key, j.Request, err = authority.Request()
	return j, err
}

func (j *Joining) path(name string) string { return filepath.Join(filepath.Dir(j.File), name) }

// Place writes what came: the files, and last the configuration that names them. Somebody who is no host has its
// certificate beside that of the host, where the host is in a fleet.
func (j *Joining) Place(a authority.Answer) error {
	c, err := authority.Inspect([]byte(a.Certificate))
	if err != nil {
		return err
	}
	if _, err := os.Stat(j.path(JoinedFile)); err == nil && c.Kind != authority.Node {
		return j.placeBeside(a)
	}
	for name, text := range a.Files {
		if err := j.write(filepath.Join(joinedDir, name), text); err != nil {
			return err
		}
	}
	text, err := j.configuration(a)
	if err != nil {
		return err
	}
	if err := j.write(Bundle, []byte(a.Bundle)); err != nil {
		return err
	}
	if err := j.credentials(Credentials, a); err != nil {
		return err
	}
	if err := j.begin(); err != nil {
		return err
	}
	return j.write(JoinedFile, text)
}

// placeBeside places the certificate of an operator on a host of the fleet.
func (j *Joining) placeBeside(a authority.Answer) error {
	text := "# Written by pullet join: commands that people type here have the rights of an operator.\n" +
		"etcd: {operator: {ca: " + Bundle + ", cert: " + OperatorCredentials + ", key: " + OperatorCredentials + "}}\n"
	if err := j.credentials(OperatorCredentials, a); err != nil {
		return err
	}
	return j.write(OperatorFile, []byte(text))
}

// credentials writes a key and its certificate. A key that waited for the certificate after the former one is
// forgotten: who joins again may do so because it was in the hands of others.
func (j *Joining) credentials(name string, a authority.Answer) error {
	if err := os.Remove(j.path(name + nextFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return j.write(name, append(j.key, a.Certificate...))
}

// begin makes a configuration where there is none.
func (j *Joining) begin() error {
	if _, err := os.Stat(j.File); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return durable.Replace(
		j.File,
		[]byte("# The configuration of this host: see docs/node.md. "+JoinedFile+" is over it.\n"),
	)
}

// configuration is that of the answer, for this machine alone. Who is not root keeps the state beside it.
func (j *Joining) configuration(a authority.Answer) ([]byte, error) {
	var c map[string]any
	if err := yaml.Unmarshal([]byte(a.Configuration), &c); err != nil {
		return nil, fmt.Errorf("the configuration in the answer: %w", err)
	}
	if c == nil {
		return nil, errors.New("the configuration in the answer is empty")
	}
	if node, ok := c["node"].(map[string]any); ok {
		if id := machineID(j.Root); id != "" {
			node["machineId"] = id
		}
	} else if os.Geteuid() != 0 {
		c["paths"] = map[string]any{"state": "state", "hostVars": "vars.d"}
	}
	text, err := yaml.Marshal(c)
	return append([]byte("# Written by pullet join.\n"), text...), err
}

// write writes a file beside the configuration, and nothing where a link of somebody else leads.
func (j *Joining) write(name string, text []byte) error {
	dir := filepath.Dir(j.path(name))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := ownfile.Check(dir); err != nil {
		return err
	}
	return durable.Replace(j.path(name), text)
}

// Believed are the fingerprints of the authorities that this host believes.
func (c Config) Believed() ([]string, error) {
	if c.Etcd.TLS.CA == "" {
		return nil, nil
	}
	text, err := os.ReadFile(c.Etcd.TLS.CA)
	if err != nil {
		return nil, err
	}
	return authority.Fingerprints(text)
}
