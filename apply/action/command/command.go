// Package command runs commands and scripts, and sends requests to web servers: actions of which only guards and
// expressions tell whether they are needed and what they changed.
package command

import "github.com/pullet/pullet/apply"

// Actions lists the actions of this package in the order of the documentation.
func Actions() []apply.Spec {
	return []apply.Spec{
		{Name: "cmd.run", Summary: "run a command", New: func() apply.Action { return &Run{} }},
		{Name: "cmd.script", Summary: "run a script", New: func() apply.Action { return &Script{} }},
		{Name: "http.request", Summary: "a request to a web server", NoFiles: true, New: newRequest},
	}
}
