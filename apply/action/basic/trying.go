package basic

import (
	"context"
	"errors"

	"github.com/pullet/pullet/apply"
)

// Trying are the parameters of the test actions, which do nothing: for trying out requisites and conditions.
type Trying struct {
	Name    string `yaml:"name"`    // what requisites call it; nothing else
	Message string `yaml:"message"` // what it says
}

func (a Trying) say() (apply.Output, error) { return apply.Output{StdOut: a.Message}, nil }

// TestSucceed is always as it should be. It reacts when something that it watches changed.
//
// Example:
//
//	steps:
//	  - name: reload
//	    action: test.succeed
//	    parameters: {message: would reload}
type TestSucceed struct {
	Trying `yaml:",inline"`
}

// Check finds nothing to do.
func (a *TestSucceed) Check(context.Context, *apply.Host) (apply.Change, error) {
	return apply.Change{}, nil
}

// Apply is never needed.
func (a *TestSucceed) Apply(context.Context, *apply.Host, apply.Change) (apply.Output, error) {
	return a.say()
}

// Reaction is what React does.
func (a *TestSucceed) Reaction() string { return "run again" }

// React says the message.
func (a *TestSucceed) React(context.Context, *apply.Host) (apply.Output, error) { return a.say() }

// TestChange says that something changed, once for each version.
//
// Example:
//
//	steps:
//	  - name: something new
//	    action: test.change
type TestChange struct {
	Trying `yaml:",inline"`
}

// Unchecked is true: there is nothing to compare.
func (a *TestChange) Unchecked() bool { return true }

// Check always finds a change.
func (a *TestChange) Check(context.Context, *apply.Host) (apply.Change, error) {
	return apply.Change{Summary: "change"}, nil
}

// Apply says the message.
func (a *TestChange) Apply(context.Context, *apply.Host, apply.Change) (apply.Output, error) {
	return a.say()
}

// TestFail fails with the message.
//
// Example:
//
//	steps:
//	  - name: not here
//	    action: test.fail
//	    parameters: {message: "{{ server.name }} has no disk for this"}
type TestFail struct {
	Trying `yaml:",inline"`
}

// Check always finds something to do.
func (a *TestFail) Check(context.Context, *apply.Host) (apply.Change, error) {
	return apply.Change{Summary: "fail"}, nil
}

// Apply fails.
func (a *TestFail) Apply(context.Context, *apply.Host, apply.Change) (apply.Output, error) {
	if a.Message == "" {
		return apply.Output{}, errors.New("test.fail always fails")
	}
	return apply.Output{}, errors.New(a.Message)
}

// TestEcho says a message, which later steps read as steps['name'].StdOut. It never counts as a change.
//
// Example:
//
//	steps:
//	  - name: who
//	    action: test.echo
//	    parameters: {message: "{{ server.name }}"}
type TestEcho struct {
	Trying `yaml:",inline"`
}

// Unchecked is true: there is nothing to compare.
func (a *TestEcho) Unchecked() bool { return true }

// Check always finds something to say.
func (a *TestEcho) Check(context.Context, *apply.Host) (apply.Change, error) {
	return apply.Change{Summary: "say"}, nil
}

// Apply says the message.
func (a *TestEcho) Apply(context.Context, *apply.Host, apply.Change) (apply.Output, error) {
	return a.say()
}
