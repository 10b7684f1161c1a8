package apply

import (
	"net"
	"net/url"
)

// Cleartext reports that what is sent to a URL can be read on the way. What stays on this machine cannot.
func Cleartext(u *url.URL) bool {
	ip := net.ParseIP(u.Hostname()) // nil for a name, which is no loopback address
	return u.Scheme == "http" && u.Hostname() != "localhost" && !ip.IsLoopback()
}
