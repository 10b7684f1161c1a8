package state

import (
	"context"
	"slices"
	"strings"

	"github.com/pullet/pullet/internal/safetext"
)

// What the record is made of where no key of a family says whose it is.
const (
	dnsFamily   = "skydns"
	otherFamily = "other keys"
)

// Whose says of a key to which family of records it belongs, and who alone may write it; "": several may. Keys that
// pullet cannot read are told by their place, since whoever may write a record may write below it.
func (s *Store) Whose(key string) (family, name string) {
	if strings.HasPrefix(key, dnsPath+"/") {
		return dnsFamily, ""
	}
	rest, ours := strings.CutPrefix(key, s.prefix)
	parts := strings.Split(rest, "/")
	of := shapes()[parts[0]]
	if !ours || len(of) == 0 {
		return otherFamily, ""
	}
	at := slices.Index(of[0].words, "NODE")
	if by := of[0].by; by != itsNode && by != holder || at < 0 || at >= len(parts) {
		return parts[0], ""
	}
	if !safetext.Name(parts[at]) {
		return otherFamily, ""
	}
	return parts[0], parts[at]
}

// Retire forgets what belongs to versions that the fleet left long ago and that no node runs any more.
func (s *Versions) Retire(ctx context.Context) error {
	history, err := s.History(ctx)
	if err != nil {
		return err
	}
	return s.retire(ctx, history)
}
