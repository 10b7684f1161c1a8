package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// logstore runs a web server until the script ends, and makes it the one to which the node sends its logs. It keeps
// what is put below logs/, and gives it; while there is a file logstore.status it answers with the code in it, and
// keeps nothing.
func runLogStore(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: logstore")
	}
	work := ts.MkAbs(".")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if text, err := os.ReadFile(filepath.Join(work, "logstore.status")); err == nil {
			code, err := strconv.Atoi(strings.TrimSpace(string(text)))
			if err != nil {
				code = http.StatusTeapot
			}
			w.WriteHeader(code)
			return
		}
		if r.Method == http.MethodGet {
			http.ServeFile(w, r, filepath.Join(work, "logs", filepath.FromSlash(r.URL.Path)))
			return
		}
		if err := keepLog(filepath.Join(work, "logs", filepath.FromSlash(r.URL.Path)), r); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}))
	ts.Defer(server.Close)
	conf := ts.MkAbs("conf.d")
	ts.Check(os.MkdirAll(conf, 0o755))
	text := "agent: {logs: {put: '" + server.URL + "/{fleet}/{node}/{run}.log'}}\n"
	ts.Check(os.WriteFile(filepath.Join(conf, "logs.yaml"), []byte(text), 0o644))
}

func keepLog(path string, r *http.Request) error {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}
