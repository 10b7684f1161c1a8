package agent

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pullet/pullet/internal/durable"
	"github.com/pullet/pullet/internal/ownfile"
)

// endpointsFile has the members of the datastore as this host knew them last, beside the authority that it believes.
const endpointsFile = "endpoints"

// reached are where the fleet's record is reached: at the members that the configuration names, and at those that this
// host knew last. Losing those that it knew first is not losing the record.
func (e Etcd) reached() []string {
	out := slices.Clone([]string(e.Endpoints))
	if !e.Renew || len(out) == 0 {
		return out
	}
	text, err := ownfile.Read(e.known())
	if err != nil { // there is none yet, or it is made anew
		return out
	}
	for _, at := range strings.Fields(string(text)) {
		if u, err := url.Parse(at); err == nil && u.Scheme == "https" && !slices.Contains(out, at) {
			out = append(out, at)
		}
	}
	return out
}

func (e Etcd) known() string { return filepath.Join(filepath.Dir(e.TLS.CA), endpointsFile) }

// remember keeps where the members are.
func (e Etcd) remember(now []string) error {
	text := strings.Join(now, "\n") + "\n"
	have, err := os.ReadFile(e.known())
	if len(now) == 0 || err == nil && string(have) == text {
		return nil
	}
	return durable.Replace(e.known(), []byte(text))
}
