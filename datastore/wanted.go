package datastore

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/pullet/pullet/authority"
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
	response, err := authority.PostInside(ctx, c.DoorSocket(), wantedPath, text)
	if err != nil {
		return err
	}
	return errors.Join(answered(response), response.Body.Close())
}

// answered is why the datastore of this host did not do what it was asked.
func answered(response *http.Response) error {
	if response.StatusCode == http.StatusOK {
		return nil
	}
	var said strings.Builder
	_, err := io.Copy(&said, io.LimitReader(response.Body, 4<<10))
	return errors.Join(errors.New(strings.TrimSpace(said.String())), err)
}

// serveWanted answers the agent of this host.
func (k *keeper) serveWanted(w http.ResponseWriter, r *http.Request) {
	var wanted state.Wanted
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxWanted)).Decode(&wanted)
	if err == nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		err = k.store.Datastores.Want(r.Context(), wanted)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
	}
}
