package main

import (
	"context"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/sirupsen/logrus"

	"github.com/pullet/pullet/internal/event"
	"github.com/pullet/pullet/state"
)

// onRecord does something with the fleet's record of a script.
func onRecord(ts *testscript.TestScript, do func(ctx context.Context, s *state.Store) error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s, err := state.Open(ctx, state.Config{Fleet: "default", Dir: ts.MkAbs("etcd")})
	ts.Check(err)
	defer func() { ts.Check(s.Close()) }()
	ts.Check(do(ctx, s))
}

// react REACTION=GLOB[,each][,false][,delay=TIME][,wait=TIME][,min=N]... works off the events that are told, as the
// reactor of a fleet does that has these reactions: they run on web1 and web2 or, with each, on the event's hosts.
func react(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: react REACTION=GLOB[,each][,false][,delay=TIME][,wait=TIME][,min=N]...")
	}
	var all []*event.Reaction
	for _, arg := range args {
		all = append(all, reactionOf(ts, arg))
	}
	log := logrus.New()
	log.SetOutput(io.Discard)
	onRecord(ts, func(ctx context.Context, s *state.Store) error {
		r := event.Reactor{
			Store: s, Node: "web1", Log: logrus.NewEntry(log), NewID: event.NewID,
			Rules: func(context.Context) (event.Rules, error) {
				find := func(host string) (string, bool) { return host, strings.HasPrefix(host, "web") }
				return event.Rules{Version: "v1", Reactions: all, Find: find}, nil
			},
		}
		return r.Once(ctx)
	})
}

func reactionOf(ts *testscript.TestScript, arg string) *event.Reaction {
	name, rest, _ := strings.Cut(arg, "=")
	words := strings.Split(rest, ",")
	r := &event.Reaction{
		Name: name, Limiter: event.Limiter{Window: time.Hour, Max: time.Hour}, PerHost: slices.Contains(words, "each"),
		Matches: func(event string) bool { ok, _ := path.Match(words[0], event); return ok },
		Hosts:   func([]string) []string { return []string{"web1", "web2"} },
		Holds: func(context.Context, state.Reacted) (bool, error) {
			return !slices.Contains(words, "false"), nil
		},
	}
	if r.PerHost {
		r.Hosts = func(about []string) []string { return about }
	}
	for _, word := range words[1:] {
		key, value, _ := strings.Cut(word, "=")
		d, err := time.ParseDuration(value)
		switch key {
		case "delay":
			r.Limiter.Delay = d
		case "wait":
			r.Limiter.Timeout = d
		case "min":
			r.Limiter.MinOccurrences, err = strconv.Atoi(value)
		default:
			err = nil
		}
		ts.Check(err)
	}
	return r
}

// reacted REACTION [NODE STATE [REASON [REMEDY]]] says what came of the last run of a reaction on a host. $RUN is its
// id.
func reacted(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 || len(args) == 2 || len(args) > 5 {
		ts.Fatalf("usage: reacted REACTION [NODE STATE [REASON [REMEDY]]]")
	}
	onRecord(ts, func(ctx context.Context, s *state.Store) error {
		runs, err := s.Reactions.List(ctx)
		runs = slices.DeleteFunc(runs, func(r state.ReactionStatus) bool { return r.Reaction != args[0] })
		if err != nil || len(runs) == 0 {
			ts.Fatalf("%s was not started: %v", args[0], err)
		}
		last := runs[len(runs)-1]
		ts.Setenv("RUN", last.ID)
		if len(args) == 1 {
			return nil
		}
		args = append(args, "", "")
		r := state.ReactionResult{
			Node: args[1], State: args[2], Reason: args[3], Remedy: args[4], Version: "v1", Started: time.Now().UTC(), Run: "run1",
		}
		if !r.Over() {
			return s.Reactions.Tell(ctx, last.ID, r)
		}
		r.Ended, r.Changed = r.Started.Add(3*time.Second), 2
		if _, err := s.Client.Txn(ctx).Then(s.Reactions.EndOps(last.ID, r)...).Commit(); err != nil {
			return err
		}
		return s.Reactions.Ended(ctx, last.ReactionRun)
	})
}
