package datastore

import (
	"net/url"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/embed"

	"github.com/pullet/pullet/internal/unixsocket"
)

// shorten has etcd listen at its sockets in dir through a path that is short enough. Call release when etcd has ended.
func shorten(c *embed.Config, dir string) (release func() error, err error) {
	short, release, err := unixsocket.Dir(dir)
	if err != nil {
		return nil, err
	}
	for _, urls := range [][]url.URL{c.ListenClientUrls, c.ListenClientHttpUrls, c.ListenPeerUrls} {
		for i, u := range urls {
			if u.Scheme == "unix" { // etcd reads the host and the path as one
				urls[i] = url.URL{Scheme: u.Scheme, Host: filepath.Join(short, filepath.Base(u.Host+u.Path))}
			}
		}
	}
	return release, nil
}
