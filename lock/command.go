package lock

import "github.com/pullet/pullet/state"

// NewCommandTurn is a node's turn to run a command of which a number of nodes run at a time. It takes no slot; pauses
// and switches hold.
func NewCommandTurn(store *state.Store, req Request, c state.PendingCommand) *Turn {
	return newTurn(store, &req, &pool{
		kind: state.WaitSlot, name: "command " + c.ID, scope: "command " + c.ID, group: "command-" + c.ID,
		limit: func(int) int { return c.Command.Limit(c.Stage) }, switched: true,
		queue: store.Commands.Prefix(c.ID, "queue"), claims: store.Commands.Prefix(c.ID, "claim"),
		marks: store.Commands.Prefix(c.ID, "mark"),
	})
}
