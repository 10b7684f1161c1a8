// Command web is the lab's small web server: the service of the package pullet-web, and what serves the lab's package
// repositories.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
)

func main() {
	log.SetFlags(0)
	config := flag.String("config", "/etc/pullet-web/web.conf", "lines of port=NUMBER and content=TEXT")
	check := flag.Bool("check", false, "only say whether the configuration is right")
	dir := flag.String("dir", "", "serve the files of this directory instead")
	listen := flag.String("listen", "", "address and port for -dir")
	flag.Parse()
	if *dir != "" {
		log.Fatal(http.ListenAndServe(*listen, http.FileServer(http.Dir(*dir))))
	}
	settings, err := read(*config)
	if err != nil {
		log.Fatal(err)
	}
	if !*check {
		log.Fatal(serve(*config, settings))
	}
}

// read reads the configuration. What it does not know is an error, as with any decent server.
func read(file string) (map[string]string, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	settings := map[string]string{"port": "8000", "content": ""}
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, value, found := strings.Cut(line, "=")
		if _, known := settings[key]; !found || !known {
			return nil, fmt.Errorf("%s:%d: %q is neither port=NUMBER nor content=TEXT", file, n, line)
		}
		settings[key] = value
	}
	if _, err := net.LookupPort("tcp", settings["port"]); err != nil {
		return nil, fmt.Errorf("%s: port: %w", file, err)
	}
	return settings, lines.Err()
}

// serve answers with the configured content. SIGHUP reads the content again; a port needs a restart.
func serve(config string, settings map[string]string) error {
	var content atomic.Value
	content.Store(settings["content"])
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	go func() {
		for range hangup {
			again, err := read(config)
			if err != nil {
				log.Printf("kept the configuration: %v", err)
				continue
			}
			content.Store(again["content"])
			log.Print("read the configuration again")
		}
	}()
	listener, err := net.Listen("tcp", ":"+settings["port"])
	if err != nil {
		return err
	}
	ready()
	return http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s\n", content.Load())
	}))
}

// ready tells systemd that the port is open.
func ready() {
	socket := os.Getenv("NOTIFY_SOCKET")
	if socket == "" {
		return
	}
	conn, err := net.Dial("unixgram", socket)
	if err != nil {
		log.Printf("cannot say that it is ready: %v", err)
		return
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("READY=1")); err != nil {
		log.Printf("cannot say that it is ready: %v", err)
	}
}
