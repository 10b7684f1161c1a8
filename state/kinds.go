package state

import (
	"strings"
	"sync"
)

// kind is one kind of record: the shape of its key, in which words in capitals stand for names, what reads its value,
// who writes it, and what a record counts as that cannot be read.
type kind struct {
	shape   string
	by      writer
	examine func(k Key, value []byte) error // nil: nothing depends on the value
	counts  string                          // "": it is left out
	clear   string                          // beside removing it
}

// kinds are all kinds of records. What is not among them is no record of pullet's.
var kinds = []kind{
	{"current_version", nodes, examines[Version], "no node takes a new version", "pullet rollout start REV"},
	{"minimum", operators, examines[Minimum], "only what every pullet reads is written", "pullet fleet minimum --raise"},
	{"skipped", nodes, examines[Skipped], "", ""},
	{"running_version/VERSION/NODE", nodes, nil, "", ""},
	{"node/NODE", itsNode, examines[Node], "the node is left out until its next pull", ""},
	{"alive/NODE", itsNode, examines[Alive], "the node counts as alive", ""},
	{"rival/NODE/HASH", itsNode, examines[Alive], "", ""},
	{"claimed/NODE", itsNode, nil, "", ""},
	{"decommissioned/NODE", itsNode, examines[gone], "the node counts as decommissioned", ""},
	{"status/CATEGORY/STATE/NODE", itsNode, examines[Status], "", ""},
	{"lost/NODE", nodes, examines[Status], "", ""},
	{"config_state/enable/global", operators, examines[Switch], offCounts, "pullet enable --global"},
	{"config_state/enable/host/NODE", operators, examines[Switch], offCounts, "pullet enable --host NODE"},
	{"config_state/enable/role/GROUP", operators, examines[Switch], offCounts, "pullet enable --role ROLE"},
	{"config_state/pause", operators, examines[Switch], "the rollout is paused", "pullet rollout resume"},
	{"config_state/store", nodes, examines[Switch], "nobody is admitted", "pullet rollout resume --store"},
	{"service/NODE/SERVICE", itsNode, examines[Service], "", ""},
	{"facts/NODE", itsNode, examines[Facts], "the node has no facts until its next pull", ""},
	{"inventory/VERSION", nodes, examines[Listed], "nodes that never came are not counted", ""},
	{"history/SEQ", nodes, examines[Version], "", ""},
	{"hold/WORD", operators, nil, "", ""},
	{"doubting/NODE", itsNode, examines[Doubt], "", ""},
	{"store_accepted", operators, examines[Word], "nothing is accepted", "pullet rollout resume --store"},
	{
		"store_incarnation",
		nodes,
		examines[Incarnation],
		"nobody is admitted until a node writes it anew",
		"no action needed",
	},
	{"store_grace", nodes, examines[Moment], "nobody is admitted until its lease ends", "no action needed"},
	{"bell", nodes, nil, "", ""},
	{"wake", nodes, nil, "", ""},
	{"wake_service/SERVICE", nodes, nil, "", ""},
	{"announced/WORD", nodes, examines[Announced], "", ""},
	{"seen/GROUP/NODE", nodes, nil, "", ""},
	{"live/GROUP/NODE", nodes, nil, "", ""},
	{"slot/GROUP/PLACE", nodes, examines[Claim], heldCounts, ""},
	{"total/PLACE", nodes, examines[Claim], heldCounts, ""},
	{"mark/GROUP/PLACE", nodes, nil, "", ""},
	{"semaphore/HASH/PLACE", nodes, examines[Claim], heldCounts, ""},
	{"command_given/WORD", operators, examines[Command], "no node runs it", ""},
	{"command_open/WORD", operators, nil, "", ""},
	{"command_result/WORD/NODE", nodes, examines[CommandResult], "its result is unknown", ""},
	{"command_output/WORD/NODE", nodes, examines[Output], "", ""},
	{"command_claim/WORD/PLACE", nodes, examines[Claim], heldCounts, ""},
	{"command_mark/WORD/PLACE", nodes, nil, "", ""},
	{"command_queue/WORD/TICKET", nodes, nil, queueCounts, ""},
	{"command_ended/WORD/PLACE", nodes, nil, "", ""},
	{"command_pending/WORD", nodes, nil, "", ""},
	{"command_failed/WORD", nodes, nil, "", ""},
	{"outbox/NODE", itsNode, examines[Outbox], "its events are not heard", "no action needed"},
	{"reactor/leader", nodes, examines[NodeName], "", ""},
	{"reactor/cursor", nodes, examines[Cursor], "events are counted again", ""},
	{"reactor/told", nodes, examines[Told], "events may be counted again", ""},
	{"reactor/observed", nodes, examines[Observed], "the fleet is looked at anew", ""},
	{"reactor/group/HASH", nodes, examines[Group], "its events are counted anew", ""},
	{"happened/SEQ", nodes, examines[Page], "", ""},
	{"sink/WORD", nodes, examines[Sink], "what happens from now on is sent", "no action needed"},
	{"reaction_given/WORD", nodes, examines[ReactionRun], "no host runs it", ""},
	{"reaction_pending/WORD", nodes, examines[Word], "the run is not open", "no action needed"},
	{"reaction_result/WORD/NODE", nodes, examines[ReactionResult], "its result is unknown", ""},
	{"reaction_ended/WORD/NODE", nodes, nil, "", ""},
	{"reaction_paused/HASH", operators, examines[PausedReaction], "", ""},
	{"rollout/ROLLOUT/gate/GROUP", nodes, examines[Gate], "the group is halted", "pullet rollout resume"},
	{"rollout/ROLLOUT/roster/GROUP", nodes, examines[Roster], rosterCounts, ""},
	{"rollout/ROLLOUT/part/roster/GROUP/maker", nodes, nil, "", ""},
	{"rollout/ROLLOUT/part/roster/GROUP/PLACE", nodes, examines[Roster], rosterCounts, ""},
	{"rollout/ROLLOUT/queue/GROUP/TICKET", nodes, nil, queueCounts, ""},
	{"rollout/ROLLOUT/done/GROUP/NODE", nodes, nil, "", ""},
	{"rollout/ROLLOUT/through/GROUP", nodes, nil, "", ""},
	{"rollout/ROLLOUT/away/GROUP", nodes, examines[Count], "it is counted again", ""},
	{"rollout/ROLLOUT/begun/GROUP", nodes, nil, "", ""},
	{"rollout/ROLLOUT/closed/GROUP", nodes, nil, "", ""},
	{"rollout/ROLLOUT/soak/GROUP", nodes, examines[Moment], "the group is still watched", ""},
	{"rollout/ROLLOUT/clock/GROUP", nodes, nil, "", ""},
	{"rollout/ROLLOUT/lost/NODE", nodes, nil, "", ""},
	{"run/ROLLOUT/part/HASH/roster/maker", nodes, nil, "", ""},
	{"run/ROLLOUT/part/HASH/roster/PLACE", nodes, examines[Roster], rosterCounts, ""},
	{"run/ROLLOUT/HASH/roster", nodes, examines[Roster], rosterCounts, ""},
	{"run/ROLLOUT/HASH/in/NODE", nodes, examines[Word], "the node came there and failed", ""},
	{"run/ROLLOUT/HASH/count", nodes, examines[Title], "", ""},
	{"run/ROLLOUT/HASH/bad/NODE", nodes, nil, "", ""},
	{"run/ROLLOUT/HASH/open", nodes, nil, "", ""},
	{"run/ROLLOUT/HASH/name", nodes, examines[Title], "", ""},
	{"run/ROLLOUT/HASH/place/PLACE", nodes, examines[NodeName], "the place is taken", ""},
	{"run/ROLLOUT/HASH/took/NODE/WORD", nodes, nil, "", ""},
	{
		"run/ROLLOUT/HASH/started/NODE",
		nodes,
		examines[StepStart],
		"the step was started, and its result is unknown",
		settleClear,
	},
	{"run/ROLLOUT/HASH/result/NODE", nodes, examines[StepResult], "the result is unknown", settleClear},
	{"run/ROLLOUT/HASH/fresh/NODE", nodes, nil, "", ""},
	{"settled/ROLLOUT/HASH", nodes, examines[Settlement], "nobody said what became of the step", settleClear},
	{"authority", keeper, examines[Authority], "hosts keep the authority that they believe", "no action needed"},
	{"identity/NODE", keeper, examines[Identity], "it gets no further certificate", "pullet fleet invite NAME"},
	{"request/NODE", holder, examines[Request], "", ""},
	{"invitation/WORD", operators, examines[Invitation], "nobody joins with it", "pullet fleet invite NAME"},
	{"revoking/NODE", operators, nil, "", ""},
	{"revoked/WORD", keeper, examines[Revoked], "", ""},
	{"datastore/wanted", keeper, examines[Wanted], "its members stay", "no action needed"},
	{"datastore/host/NODE", itsNode, examines[Carrier], "it does not become a member", ""},
	{"datastore/handed/NODE", keeper, examines[Handed], "it does not become a member", ""},
	{"datastore/reach/NODE", keeper, examines[Reach], "", ""},
	{"datastore/moving/NODE", operators, nil, "", ""},
	{"datastore/turn", keeper, examines[Word], "", ""},
	{"datastore/steps", keeper, examines[MemberSteps], "", ""},
	{
		"datastore/rotation",
		keeper,
		examines[Rotation],
		"members keep the authority that they have",
		"pullet fleet rotate",
	},
	{"datastore/recovered", keeper, examines[Recoveries], "", ""},
	{"blob/DIGEST/CHUNK", nodes, nil, "", ""}, // its content is held against the digest
	{
		"extension/DIGEST",
		operators,
		examines[Extension],
		"hosts without a copy cannot fetch it",
		"pullet extension publish FILE",
	},
	{"extension/DIGEST/CHUNK", operators, nil, "", ""}, // its content is held against the digest
}

// shape is the shape of a kind's keys, in its parts.
type shape struct {
	words []string
	*kind
}

// shapes are those of all kinds by the first part of the key.
var shapes = sync.OnceValue(func() map[string][]shape {
	out := map[string][]shape{}
	for i := range kinds {
		words := strings.Split(kinds[i].shape, "/")
		out[words[0]] = append(out[words[0]], shape{words, &kinds[i]})
	}
	return out
})

// What records that cannot be read count as.
const (
	offCounts    = "it counts as disabled"
	heldCounts   = "it counts as a claim that is held"
	settleClear  = "pullet rollout settle STEP"
	rosterCounts = "nobody is admitted"
	queueCounts  = "it keeps its place in the queue"
)

// examines is whether a value can be read as a type.
func examines[T any, P record[T]](k Key, value []byte) error {
	_, err := examine[T, P](k, value)
	return err
}
