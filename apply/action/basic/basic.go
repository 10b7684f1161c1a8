// Package basic has actions that touch nothing on the host: waits, expressions, and what is for trying things out.
package basic

import "github.com/pullet/pullet/apply"

// Actions lists the actions of this package in the order of the documentation.
func Actions() []apply.Spec {
	return []apply.Spec{
		{
			Name:    "time.sleep",
			Summary: "wait for a time",
			Passive: true,
			New:     func() apply.Action { return &TimeSleep{} },
		},
		{
			Name:    "time.sleep_rand",
			Summary: "wait for a random time",
			Passive: true,
			New:     func() apply.Action { return &TimeSleepRand{} },
		},
		{
			Name:    "template.expression",
			Summary: "compute a text for later steps",
			Passive: true,
			Macro:   true,
			New:     func() apply.Action { return &TemplateExpression{} },
		},
		{
			Name:    "test.succeed",
			Summary: "do nothing and succeed, for trying things out",
			NoFiles: true, KeepsHost: true,
			New: func() apply.Action { return &TestSucceed{} },
		},
		{
			Name:    "test.change",
			Summary: "do nothing and say that something changed",
			NoFiles: true, KeepsHost: true,
			New: func() apply.Action { return &TestChange{} },
		},
		{Name: "test.fail", Summary: "fail", NoFiles: true, KeepsHost: true, New: func() apply.Action { return &TestFail{} }},
		{Name: "test.echo", Summary: "say a message", Passive: true, New: func() apply.Action { return &TestEcho{} }},
	}
}
