package main

import (
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// web DIR serves the files of a directory until the script ends; $WEB is the address.
func runWeb(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: web DIR")
	}
	server := httptest.NewServer(http.FileServer(http.Dir(ts.MkAbs(args[0]))))
	ts.Defer(server.Close)
	ts.Setenv("WEB", server.URL)
}

// gitserver DIR serves the repositories in a directory with the real git until the script ends; $GIT is the address.
func runGitServer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: gitserver DIR")
	}
	path, err := exec.LookPath("git")
	ts.Check(err)
	server := httptest.NewServer(&cgi.Handler{
		Path: path, Args: []string{"http-backend"},
		Env: []string{"GIT_PROJECT_ROOT=" + ts.MkAbs(args[0]), "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1", "HOME=" + ts.Getenv("HOME")},
	})
	ts.Defer(server.Close)
	ts.Setenv("GIT", server.URL)
}

// keeps DIR CA serves https until the script ends, and keeps in a directory what is put there by who says that he is
// ada; $KEEPS is the address, and the file CA says whom to believe.
func runKeeps(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: keeps DIR CA")
	}
	dir := ts.MkAbs(args[0])
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPut || r.Header.Get("X-Who") != "ada" {
			http.Error(w, "it is for ada", http.StatusForbidden)
			return
		}
		if err := keepLog(filepath.Join(dir, filepath.FromSlash(r.URL.Path)), r); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}))
	ts.Defer(server.Close)
	ts.Setenv("KEEPS", server.URL)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), ca, 0o644))
}

// receives DIR serves http until the script ends, and appends what is posted to a path to the file of that name in a
// directory, with what signs it in front where it is signed. Where a file NAME.code is there, it answers with that.
// $RECEIVER is the address.
func runReceives(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: receives DIR")
	}
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o755))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		file := filepath.Join(dir, filepath.Base(r.URL.Path))
		if code, err := os.ReadFile(file + ".code"); err == nil {
			n, _ := strconv.Atoi(strings.TrimSpace(string(code)))
			w.WriteHeader(n)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = appendText(file, r.Header.Get("Authorization")+r.Header.Get("X-Signature")+string(body)+"\n")
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}))
	ts.Defer(server.Close)
	ts.Setenv("RECEIVER", server.URL)
}

// appendText adds a text to a file with one write: who reads the file meanwhile sees what was there before, or all of
// it.
func appendText(file, text string) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
