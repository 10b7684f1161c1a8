package apply

import (
	"net/url"
	"testing"
)

func TestCleartext(t *testing.T) {
	for text, want := range map[string]bool{
		"http://example.org/x": true, "http://192.0.2.1:8080": true, "http://[2001:db8::1]/": true,
		"https://example.org": false, "http://localhost:80": false, "http://127.0.0.9": false, "http://[::1]:80": false, "file:///x": false,
	} {
		u, err := url.Parse(text)
		if err != nil || Cleartext(u) != want {
			t.Errorf("%s: %v, %v", text, Cleartext(u), err)
		}
	}
}
