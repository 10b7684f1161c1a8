// Package command runs commands and scripts, and sends requests to web servers: actions of which only guards and
// expressions tell whether they are needed and what they changed.
package command

import "github.com/pullet/pullet/apply"

// Actions lists the actions of this package in the order of the documentation.
func Actions() []apply.Spec {
	return []apply.Spec{
		{
			Name: "cmd.run", Summary: "run a command", New: func() apply.Action { return &Run{} },
			Shows: arguments("cmd", "unless", "onlyif", "cwd", "creates", "removes"),
		},
		{
			Name: "cmd.script", Summary: "run a script", New: func() apply.Action { return &Script{} },
			Shows: arguments("args", "interpreter", "unless", "onlyif", "cwd", "creates", "removes"),
		},
		{
			Name:    "http.request",
			Summary: "a request to a web server",
			NoFiles: true, KeepsHost: true,
			New:   newRequest,
			Shows: arguments("unless", "onlyif"),
		},
	}
}

// arguments are parameters that become the arguments of commands.
func arguments(params ...string) apply.Shown {
	return apply.Shown{
		Params: params, Where: "every user of the host can read the arguments of commands (ps)",
		Instead: "put it into env, and read it in the command as \"$NAME\"; or write a file with it",
	}
}
