// Command machine is what the machine offers to the hosts of a lab: an etcd, and a git and web server for a directory.
package main

import (
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/cgi"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"go.etcd.io/etcd/server/v3/embed"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 4 {
		log.Fatal("usage: machine etcd|serve DIR ADDRESS")
	}
	run := map[string]func(dir, address string) error{"etcd": etcd, "serve": serve}[os.Args[1]]
	if run == nil {
		log.Fatalf("there is no %q", os.Args[1])
	}
	log.Fatal(run(os.Args[2], os.Args[3]))
}

// etcd runs one with its data in a directory.
func etcd(dir, address string) error {
	client, peer := url.URL{Scheme: "http", Host: address + ":2379"}, url.URL{Scheme: "http", Host: address + ":2380"}
	c := embed.NewConfig()
	c.Dir, c.LogLevel = dir, "error"
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{client}, []url.URL{{Scheme: "http", Host: "lab:2379"}}
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	c.InitialCluster = c.Name + "=" + peer.String()
	server, err := embed.StartEtcd(c)
	if err != nil {
		return err
	}
	select {
	case <-server.Server.ReadyNotify():
		fmt.Println("ready")
	case err := <-server.Err():
		return err
	}
	return errors.Join(<-server.Err(), errors.New("etcd ended"))
}

// serve serves the files of a directory, and the git repositories in it with the real git. One that is a repository
// itself is served by its name.
func serve(dir, address string) error {
	git, err := exec.LookPath("git")
	if err != nil {
		return err
	}
	root, only := dir, "/"
	if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil {
		root, only = filepath.Dir(dir), "/"+filepath.Base(dir)+"/"
	}
	repositories := &cgi.Handler{Path: git, Args: []string{"http-backend"}, Env: []string{
		"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "HOME=" + root,
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*", // they belong to who writes them
	}}
	files := http.FileServer(http.Dir(root))
	return http.ListenAndServe(address+":8081", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !strings.HasPrefix(r.URL.Path, only):
			http.NotFound(w, r)
		case strings.HasSuffix(r.URL.Path, "/info/refs"), strings.HasSuffix(r.URL.Path, "/git-upload-pack"):
			repositories.ServeHTTP(w, r)
		default:
			files.ServeHTTP(w, r)
		}
	}))
}
