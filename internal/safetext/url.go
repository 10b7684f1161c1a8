package safetext

import "net/url"

// URL is a URL as messages may show it, without user, query and fragment: what is behind the ? may be a secret.
func URL(u *url.URL) string {
	shown := *u
	shown.User, shown.RawQuery, shown.Fragment = nil, "", ""
	return shown.String()
}
