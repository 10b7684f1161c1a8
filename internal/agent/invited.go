package agent

import (
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/pullet/pullet/internal/authority"
	"github.com/pullet/pullet/internal/ownfile"
	"github.com/pullet/pullet/state"
)

// Where the files of a host that joined are, below the directory of its configuration.
const (
	JoinedFile          = "conf.d/fleet.yaml"    // what pullet join wrote
	Credentials         = "fleet/host.pem"       // its key and certificate
	Bundle              = "fleet/ca.pem"         // the fleet's authority
	OperatorFile        = "conf.d/operator.yaml" // the same for an operator on a host of the fleet
	OperatorCredentials = "fleet/operator.pem"
	joinedDir           = "fleet" // of files that the configuration names
)

// Invited completes the answer for somebody who joins the fleet of this host, with the same repositories. Hosts and
// operators get the files that their settings name, such as a deploy key; viewers do not.
func (c Config) Invited(i state.Invitation, a *authority.Answer) error {
	out := map[string]any{
		"fleet": c.Fleet,
		"etcd": map[string]any{
			"endpoints": a.Endpoints, "renew": true,
			"tls": map[string]any{"ca": Bundle, "cert": Credentials, "key": Credentials},
		},
	}
	a.Files = map[string][]byte{}
	repositories, err := c.sharedRepositories(a.Files)
	if err != nil {
		return err
	}
	out["repositories"] = repositories
	switch i.Kind {
	case authority.Viewer:
		clear(a.Files)
	case authority.Node:
		out["node"] = map[string]any{"name": i.Name, "labels": i.Labels}
	}
	text, err := yaml.Marshal(filled(out))
	a.Configuration = string(text)
	return err
}

// sharedRepositories are the repositories as another host may have them. It fills in the files that they name.
func (c Config) sharedRepositories(files map[string][]byte) (any, error) {
	c.Repositories = slices.Clone(c.Repositories)
	for _, f := range c.ownFiles() {
		key, ours := strings.CutPrefix(f.key, "repositories.")
		if !ours || *f.path == "" {
			continue
		}
		text, err := ownfile.Read(*f.path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.key, err)
		}
		files[key], *f.path = text, filepath.Join(joinedDir, key)
	}
	text, err := yaml.Marshal(c.Repositories)
	if err != nil {
		return nil, err
	}
	var out any
	err = yaml.Unmarshal(text, &out)
	return out, err
}

// filled is a value of YAML without what is empty in it.
func filled(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, one := range v {
			v[key] = filled(one)
		}
		maps.DeleteFunc(v, func(_ string, one any) bool { return empty(one) })
	case []any:
		for i := range v {
			v[i] = filled(v[i])
		}
	}
	return v
}

// empty reports a value that says nothing.
func empty(v any) bool {
	switch of := reflect.ValueOf(v); of.Kind() {
	case reflect.Map, reflect.Slice:
		return of.Len() == 0
	case reflect.Invalid:
		return true
	default:
		return of.IsZero()
	}
}
