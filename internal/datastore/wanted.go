package datastore

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/pullet/pullet/state"
)

// wantedPath is where the agent of this host says what the repository wants.
const wantedPath = "/wanted"

// maxWanted bounds what it says, in bytes.
const maxWanted = 256 << 10

// Want tells the datastore of this host what the fleet's version wants of it. What the version of a host says counts
// only here, and not through etcd: who could write it there would have the authority's key handed to a host of his
// choice.
func Want(ctx context.Context, c Config, w state.Wanted) error {
	text, err := json.Marshal(w)
	if err != nil {
		return err
	}
	return askInside(ctx, c, wantedPath, text, &struct{}{})
}

// wantedHandler answers the agent of this host.
func wantedHandler(k *keeper) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var wanted state.Wanted
		err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxWanted)).Decode(&wanted)
		if err == nil {
			k.mu.Lock()
			defer k.mu.Unlock()
			err = k.store.Datastores.Want(r.Context(), wanted)
		}
		answer(w, struct{}{}, err)
	}
}
