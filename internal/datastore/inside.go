package datastore

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/pullet/pullet/internal/authority"
)

// answer answers root of this host with what was done, or with the error.
func answer(w http.ResponseWriter, done any, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	_ = json.NewEncoder(w).Encode(done) // a client that left does not miss it
}

// mostSaid is how long an error from the keeper may be, in bytes.
const mostSaid = 4 << 10

// askInside asks the keeper of this host, and reads its answer.
func askInside(ctx context.Context, c Config, path string, body []byte, into any) error {
	response, err := authority.PostInside(ctx, c.DoorSocket(), path, body)
	if err != nil {
		return err
	}
	defer response.Body.Close() // it was read
	if response.StatusCode != http.StatusOK {
		var said strings.Builder
		_, err := io.Copy(&said, io.LimitReader(response.Body, mostSaid))
		return errors.Join(errors.New(strings.TrimSpace(said.String())), err)
	}
	return json.NewDecoder(response.Body).Decode(into)
}
