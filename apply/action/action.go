// Package action lists the built-in actions. Those of a family are a package below this one, and share what is in
// place, fetch and passwd.
//
// An action is a struct whose fields are its parameters. Check compares the host with them and never writes; Apply
// makes the next Check empty; Bind finds what is wrong with the parameters before anything is touched. Check of one
// action never relies on what an earlier step would have made, so that a plan works on a host where nothing is there
// yet.
//
// To add one: a file in its family with the type, a line in the family's Actions, and examples for the contract test.
package action

import (
	"slices"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/account"
	"github.com/pullet/pullet/apply/action/archive"
	"github.com/pullet/pullet/apply/action/basic"
	"github.com/pullet/pullet/apply/action/command"
	emit "github.com/pullet/pullet/apply/action/event"
	"github.com/pullet/pullet/apply/action/file"
	"github.com/pullet/pullet/apply/action/git"
	"github.com/pullet/pullet/apply/action/mount"
	"github.com/pullet/pullet/apply/action/offer"
	"github.com/pullet/pullet/apply/action/pkg"
	"github.com/pullet/pullet/apply/action/system"
	"github.com/pullet/pullet/apply/action/systemd"
)

// All lists the built-in actions in the order of the documentation.
func All() []apply.Spec {
	return slices.Concat(
		command.Actions(),
		file.Actions(),
		archive.Actions(),
		git.Actions(),
		pkg.Actions(),
		systemd.Actions(),
		offer.Actions(),
		emit.Actions(),
		account.Actions(),
		system.Actions(),
		mount.Actions(),
		basic.Actions(),
	)
}
