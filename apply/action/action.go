// Package action holds the built-in actions, a file each.
//
// An action is a struct whose fields are its parameters. Check compares the host with them and never writes; Apply makes the
// next Check empty; Bind finds what is wrong with the parameters before anything is touched. Check of one action never relies on
// what an earlier step would have made, so that a plan works on a host where nothing is there yet.
//
// To add one: a file with the type, a line in All, and the contract test runs it.
package action

import "github.com/pullet/pullet/apply"

// All lists the built-in actions in the order of the documentation.
func All() []apply.Spec {
	return []apply.Spec{
		{Name: "cmd.run", Summary: "run a command", New: func() apply.Action { return &CmdRun{} }},
		{Name: "file.managed", Summary: "a regular file with this content, owner and mode", New: func() apply.Action { return &FileManaged{Replace: true} }},
		{Name: "file.line", Summary: "a line in a text file", New: func() apply.Action { return &FileLine{State: present} }},
		{Name: "file.block", Summary: "a text between two marker lines of a file", New: func() apply.Action { return &FileBlock{State: present} }},
		{Name: "file.directory", Summary: "a directory with this owner and mode", New: func() apply.Action { return &FileDirectory{} }},
		{Name: "file.content", Summary: "a file of this host, read for later steps", Passive: true, New: func() apply.Action { return &FileContent{} }},
		{Name: "file.symlink", Summary: "a symbolic link to this target", New: func() apply.Action { return &FileSymlink{} }},
		{Name: "file.absent", Summary: "nothing at this path", New: func() apply.Action { return &FileAbsent{} }},
		{Name: "archive.extracted", Summary: "a directory with what an archive holds", New: func() apply.Action { return &ArchiveExtracted{} }},
		{Name: "time.sleep", Summary: "wait for a time", Passive: true, New: func() apply.Action { return &TimeSleep{} }},
		{Name: "time.sleep_rand", Summary: "wait for a random time", Passive: true, New: func() apply.Action { return &TimeSleepRand{} }},
		{Name: "template.expression", Summary: "compute a text for later steps", Passive: true, New: func() apply.Action { return &TemplateExpression{} }},
		{Name: "test.succeed", Summary: "do nothing and succeed, for trying things out", New: func() apply.Action { return &TestSucceed{} }},
		{Name: "test.change", Summary: "do nothing and say that something changed", New: func() apply.Action { return &TestChange{} }},
		{Name: "test.fail", Summary: "fail", New: func() apply.Action { return &TestFail{} }},
		{Name: "test.echo", Summary: "say a message", Passive: true, New: func() apply.Action { return &TestEcho{} }},
	}
}
