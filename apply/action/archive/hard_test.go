package archive

import (
	"crypto/sha256"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/pullet/pullet/apply/action/fetch"
	"github.com/pullet/pullet/apply/hostfile"
)

// TestUnchanged: a file that becomes a copy must have the content of the archive: a user could have exchanged it.
func TestUnchanged(t *testing.T) {
	want := fetch.Digest(sha256.Sum256([]byte("same"))).String()
	for text, good := range map[string]bool{"same": true, "samf": false, "": false, "same more": false} {
		read, err := io.ReadAll(&unchanged{from: strings.NewReader(text), path: "/a", sum: sha256.New(), want: want})
		_, refused := errors.AsType[*hostfile.FileRefused](err)
		if good && (err != nil || string(read) != text) || !good && !refused {
			t.Errorf("%q: %q, %v", text, read, err)
		}
	}
}
