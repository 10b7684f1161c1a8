package state

import "strings"

// kind is one kind of record: the shape of its key, in which words in capitals stand for names, what reads its value,
// and what a record counts as that cannot be read.
type kind struct {
	shape   string
	examine func(k Key, value []byte) error // nil: nothing depends on the value
	counts  string                          // "": it is left out
	clear   string                          // beside removing it
}

// kinds are all kinds of records. What is not among them is no record of pullet's.
var kinds = []kind{
	{"current_version", examines[Version], "no node takes a new version", "pullet rollout start REV"},
	{"skipped", examines[Skipped], "", ""},
	{"running_version/VERSION/NODE", nil, "", ""},
	{"node/NODE", examines[Node], "the node is left out until its next pull", ""},
	{"alive/NODE", examines[Alive], "the node counts as alive", ""},
	{"rival/NODE/HASH", examines[Alive], "", ""},
	{"claimed/NODE", nil, "", ""},
	{"decommissioned/NODE", examines[gone], "the node counts as decommissioned", ""},
	{"status/CATEGORY/STATE/NODE", examines[Status], "", ""},
	{"config_state/enable/global", examines[Switch], offCounts, "pullet enable --global"},
	{"config_state/enable/host/NODE", examines[Switch], offCounts, "pullet enable --host NODE"},
	{"config_state/enable/role/GROUP", examines[Switch], offCounts, "pullet enable --role ROLE"},
	{"config_state/pause", examines[Switch], "the rollout is paused", "pullet rollout resume"},
	{"config_state/store", examines[Switch], "nobody is admitted", "pullet rollout resume --store"},
	{"service/SERVICE/NODE", examines[Service], "", ""},
	{"facts/NODE", examines[Facts], "the node has no facts until its next pull", ""},
	{"inventory/VERSION", examines[Listed], "nodes that never came are not counted", ""},
	{"history/SEQ", examines[Version], "", ""},
	{"hold/WORD", nil, "", ""},
	{"doubting/NODE", examines[Doubt], "", ""},
	{"store_accepted", examines[Word], "nothing is accepted", "pullet rollout resume --store"},
	{"store_incarnation", examines[Incarnation], "nobody is admitted until a node writes it anew", "no action needed"},
	{"store_grace", examines[Moment], "nobody is admitted until its lease ends", "no action needed"},
	{"bell", nil, "", ""},
	{"wake", nil, "", ""},
	{"wake_service/SERVICE", nil, "", ""},
	{"seen/GROUP/NODE", nil, "", ""},
	{"live/GROUP/NODE", nil, "", ""},
	{"slot/GROUP/PLACE", examines[Claim], heldCounts, ""},
	{"total/PLACE", examines[Claim], heldCounts, ""},
	{"mark/GROUP/PLACE", nil, "", ""},
	{"semaphore/HASH/PLACE", examines[Claim], heldCounts, ""},
	{"command/WORD/given", examines[Command], "no node runs it", ""},
	{"command/WORD/open", nil, "", ""},
	{"command/WORD/result/NODE", examines[CommandResult], "its result is unknown", ""},
	{"command_output/WORD/NODE", examines[Output], "", ""},
	{"command_claim/WORD/PLACE", examines[Claim], heldCounts, ""},
	{"command_mark/WORD/PLACE", nil, "", ""},
	{"command_queue/WORD/TICKET", nil, queueCounts, ""},
	{"command_ended/WORD/PLACE", nil, "", ""},
	{"command_pending/WORD", nil, "", ""},
	{"command_failed/WORD", nil, "", ""},
	{"rollout/ROLLOUT/gate/GROUP", examines[Gate], "the group is halted", "pullet rollout resume"},
	{"rollout/ROLLOUT/roster/GROUP", examines[Roster], rosterCounts, ""},
	{"rollout/ROLLOUT/part/roster/GROUP/maker", nil, "", ""},
	{"rollout/ROLLOUT/part/roster/GROUP/PLACE", examines[Roster], rosterCounts, ""},
	{"rollout/ROLLOUT/queue/GROUP/TICKET", nil, queueCounts, ""},
	{"rollout/ROLLOUT/done/GROUP/NODE", nil, "", ""},
	{"rollout/ROLLOUT/through/GROUP", nil, "", ""},
	{"rollout/ROLLOUT/away/GROUP", examines[Count], "it is counted again", ""},
	{"rollout/ROLLOUT/begun/GROUP", nil, "", ""},
	{"rollout/ROLLOUT/closed/GROUP", nil, "", ""},
	{"rollout/ROLLOUT/soak/GROUP", examines[Moment], "the group is still watched", ""},
	{"rollout/ROLLOUT/clock/GROUP", nil, "", ""},
	{"rollout/ROLLOUT/lost/NODE", nil, "", ""},
	{"run/ROLLOUT/part/HASH/roster/maker", nil, "", ""},
	{"run/ROLLOUT/part/HASH/roster/PLACE", examines[Roster], rosterCounts, ""},
	{"run/ROLLOUT/HASH/roster", examines[Roster], rosterCounts, ""},
	{"run/ROLLOUT/HASH/in/NODE", examines[Word], "the node came there and failed", ""},
	{"run/ROLLOUT/HASH/count", examines[Title], "", ""},
	{"run/ROLLOUT/HASH/bad/NODE", nil, "", ""},
	{"run/ROLLOUT/HASH/open", nil, "", ""},
	{"run/ROLLOUT/HASH/name", examines[Title], "", ""},
	{"run/ROLLOUT/HASH/place/PLACE", examines[NodeName], "the place is taken", ""},
	{"run/ROLLOUT/HASH/took/NODE/WORD", nil, "", ""},
	{
		"run/ROLLOUT/HASH/started/NODE",
		examines[StepStart],
		"the step was started, and its result is unknown",
		settleClear,
	},
	{"run/ROLLOUT/HASH/result/NODE", examines[StepResult], "the result is unknown", settleClear},
	{"run/ROLLOUT/HASH/fresh/NODE", nil, "", ""},
	{"settled/ROLLOUT/HASH", examines[Settlement], "nobody said what became of the step", settleClear},
	{"blob/DIGEST/CHUNK", nil, "", ""}, // its content is held against the digest
	{"extension/DIGEST", examines[Extension], "hosts without a copy cannot fetch it", "pullet extension publish FILE"},
	{"extension/DIGEST/CHUNK", nil, "", ""}, // its content is held against the digest
}

// shape is the shape of a kind's keys, in its parts.
type shape struct {
	words []string
	*kind
}

// shapes are those of all kinds by the first part of the key.
var shapes = func() map[string][]shape {
	out := map[string][]shape{}
	for i := range kinds {
		words := strings.Split(kinds[i].shape, "/")
		out[words[0]] = append(out[words[0]], shape{words, &kinds[i]})
	}
	return out
}()

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
