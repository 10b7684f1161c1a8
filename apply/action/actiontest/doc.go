// Package actiontest is what the tests of the actions share: only tests import it.
//
// A Scene is a host below a temporary directory. A test plants what is there before, runs steps on it as a pull does,
// and looks at what is there afterwards:
//
//	s := actiontest.New(t, "f etc/motd 644 old")
//	r := s.Run(s.MustBind("file.managed", "{name: /etc/motd, content: new}"))
//
// An Example is a step with the host that it meets and what comes of it, for the contract test of apply/action.
package actiontest
