package main

import (
	"context"

	"github.com/pullet/pullet/internal/datastore"
	"github.com/pullet/pullet/state"
)

// members looks how the members of the fleet's own datastore are.
func members(ctx context.Context, store *state.Store) (found []finding) {
	all, err := datastore.Members(ctx, store.Client)
	if err != nil {
		return []finding{{"datastore", bad, store.Explain(err).Error(), ""}}
	}
	for _, m := range all {
		switch how := memberState(m); how {
		case "ok", "comes":
		case "away":
			found = append(found, finding{"datastore", warn, m.Node + " does not answer",
				"look at pullet-etcd there; pullet datastore status says when another host takes its place"})
		default:
			found = append(found, finding{"datastore", bad, m.Node + ": " + how, "docs/datastore.md"})
		}
	}
	d, err := store.Datastores.All(ctx)
	if err != nil {
		return append(found, finding{"datastore", bad, store.Explain(err).Error(), ""})
	}
	if differ := datastore.Unlike(d); differ != "" {
		found = append(found, finding{"datastore", bad, differ, "start the members that are away: docs/datastore.md"})
	}
	if how := datastore.Exchanging(d, all); how != "" {
		found = append(found, finding{"datastore", warn, "the authority is exchanged: " + how,
			"bring back who is away; pullet fleet rotate, on a member, says who is waited for"})
	}
	if len(found) == 0 {
		found = append(found, finding{Check: "datastore", State: fine, What: datastore.Bears(all)})
	}
	return found
}
