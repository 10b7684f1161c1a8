package puller

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing/transport/client"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
)

// maxListing bounds what a server may say it has: half a million references.
const maxListing = 32 << 20

// installBounded makes go-git's web transports stop reading a list of
// references that does not end: it is kept in memory.
var installBounded = sync.OnceFunc(func() {
	for _, scheme := range []string{"http", "https"} {
		client.InstallProtocol(scheme, githttp.NewClient(&http.Client{Transport: boundedListing{http.DefaultTransport}}))
	}
})

type boundedListing struct{ http.RoundTripper }

func (b boundedListing) RoundTrip(req *http.Request) (*http.Response, error) {
	answer, err := b.RoundTripper.RoundTrip(req)
	if err == nil && strings.HasSuffix(req.URL.Path, "/info/refs") {
		answer.Body = &boundedBody{answer.Body, maxListing}
	}
	return answer, err
}

type boundedBody struct {
	io.ReadCloser
	left int
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("its list of references is longer than %d MiB", maxListing>>20)
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
