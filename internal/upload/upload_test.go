package upload

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestSetHeaders: a file of headers says which are sent; what is wrong with it is named by its line, and never quoted.
func TestSetHeaders(t *testing.T) {
	file := filepath.Join(t.TempDir(), "headers")
	for text, want := range map[string]string{
		"":                                   "",
		"# a comment\n\nX-Token:  s3cret \n": "",
		"X-Token: a\nX-Token: s3cret":        "",
		"X-Token: s3cret\ns3cret":            file + ":2 is no header: write it as Name: value",
		"X Token: s3cret":                    file + ":1 is no header: write it as Name: value",
		": s3cret":                           file + ":1 is no header: write it as Name: value",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		header, got := http.Header{}, ""
		if err := SetHeaders(header, file); err != nil {
			got = err.Error()
		}
		if got != want || want == "" && text != "" && header.Get("X-Token") != "s3cret" {
			t.Errorf("%q: %q, want %q; %v", text, got, want, header)
		}
	}
	if err := os.Chmod(file, 0o640); err != nil {
		t.Fatal(err)
	}
	want := "credentials in " + file + " are open to others (mode 0640): chmod 600 " + file
	if err := SetHeaders(http.Header{}, file); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestWithoutURL: what a client says of a request quotes the whole URL; what is shown does not.
func TestWithoutURL(t *testing.T) {
	_, err := http.Get("http://127.0.0.1:1/?key=s3cret")
	if err == nil || !strings.Contains(err.Error(), "s3cret") {
		t.Fatal(err)
	}
	for _, one := range []error{err, fmt.Errorf("a request: %w", err)} {
		if got := WithoutURL(one); got == nil || strings.Contains(got.Error(), "s3cret") || !errors.Is(got, syscall.ECONNREFUSED) {
			t.Errorf("%v", got)
		}
	}
	if other := errors.New("other"); WithoutURL(other) != other || WithoutURL(nil) != nil {
		t.Error("another error is changed")
	}
}

// TestClient: a file without certificates, or none, is an error.
func TestClient(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ca")
	if _, err := Client(file); !os.IsNotExist(err) {
		t.Error(err)
	}
	if err := os.WriteFile(file, []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Client(file); err == nil || err.Error() != file+" holds no certificate" {
		t.Error(err)
	}
}
