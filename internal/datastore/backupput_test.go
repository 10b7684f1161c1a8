package datastore

import (
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestBackupToURL: a backup is put below a URL, with the headers of a file, and restored from what the server has.
func TestBackupToURL(t *testing.T) {
	t.Parallel()
	f := created(t)
	dir := t.TempDir()
	kept := filepath.Join(dir, "kept")
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPut || r.Header.Get("X-Token") != "s3cret" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		text, err := io.ReadAll(r.Body)
		if err != nil || int64(len(text)) != r.ContentLength || !strings.HasPrefix(r.URL.Path, "/fleets/prod-20") {
			t.Errorf("%d of %d bytes for %s, %v", len(text), r.ContentLength, r.URL, err)
		}
		if err := os.WriteFile(kept, text, 0o600); err != nil {
			t.Error(err)
		}
		w.WriteHeader(http.StatusCreated)
	}))
	t.Cleanup(server.Close)
	f.Backup.CA, f.Backup.HeadersFile = filepath.Join(dir, "ca"), filepath.Join(dir, "headers")
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	f.must(os.WriteFile(f.Backup.CA, ca, 0o600))
	f.must(os.WriteFile(f.Backup.HeadersFile, []byte("# for the store\nX-Token: s3cret\n"), 0o600))
	f.put("before")
	f.Backup.To = server.URL + "/fleets/?key=hidden"
	made, err := Backup(t.Context(), f.Config, fleetName, f.Backup.To, time.Now())
	f.must(err)
	if made.To != server.URL+"/fleets/" || made.Size == 0 {
		t.Errorf("%+v", made)
	}
	if past, err := PastBackups(f.Config); err != nil || past.Last.Name != made.Name {
		t.Errorf("%+v, %v", past, err)
	}
	f.put("after")
	f.end()
	f.must(os.RemoveAll(f.file(memberDir)))
	_, err = f.restoring(kept, noKeys).Restore(time.Now())
	f.must(err)
	f.serve()
	if got := f.value(); got != "before" {
		t.Errorf("%q", got)
	}
}

// TestBackupRefused: what a server says instead of taking a backup, and that credentials go to no other server and into
// no message.
func TestBackupRefused(t *testing.T) {
	t.Parallel()
	f := created(t)
	dir := t.TempDir()
	asked := 0
	other := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	t.Cleanup(other.Close)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/full") {
			w.WriteHeader(http.StatusInsufficientStorage)
			return
		}
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	}))
	t.Cleanup(server.Close)
	ca := filepath.Join(dir, "ca")
	f.must(os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	open, bad := filepath.Join(dir, "open"), filepath.Join(dir, "bad")
	f.must(os.WriteFile(open, []byte("A: hidden"), 0o600))
	f.must(os.Chmod(open, 0o644))
	f.must(os.WriteFile(bad, []byte("hidden"), 0o600))
	for _, c := range []struct{ to, ca, headers, want string }{
		{"/moved?key=hidden", ca, "", "the server refuses it: 307 Temporary Redirect"},
		{"/full?key=hidden", ca, "", "the server refuses it: 507 Insufficient Storage"},
		{"/?key=hidden", "", "", "certificate signed by unknown authority"},
		{"/?key=hidden", bad, "", "datastore.backup.ca: " + bad + " holds no certificate"},
		{"/?key=hidden", ca, open, "datastore.backup.headersFile: credentials in " + open + " are open to others (mode 0644): chmod 600 " + open},
		{"/?key=hidden", ca, bad, "datastore.backup.headersFile: " + bad + ":1 is no header: write it as Name: value"},
	} {
		config := f.Config
		config.Backup.CA, config.Backup.HeadersFile = c.ca, c.headers
		_, err := Backup(t.Context(), config, fleetName, server.URL+c.to, time.Now())
		wantError(t, c.to, err, c.want)
		if err != nil && strings.Contains(err.Error(), "hidden") {
			t.Errorf("a secret is told: %v", err)
		}
	}
	if asked > 0 {
		t.Error("another server was asked")
	}
	if left := files(t, f.Dir)[f.file(packedFile)]; left != "" {
		t.Error("a backup is left over")
	}
}
