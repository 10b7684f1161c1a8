package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v4"

	"github.com/pullet/pullet/internal/agent"
	"github.com/pullet/pullet/internal/event"
	"github.com/pullet/pullet/state"
)

func eventCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "event", GroupID: "fleet", Args: noArgs,
		Short: "Tell the fleet that something happened",
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(eventEmitCommand(a))
	return c
}

// emitting is an event that is to be told, as the command line says it.
type emitting struct {
	data, hosts []string
	file        string
	dedupe      string
	noop        bool
}

// emitted is an event that was told, or is kept until the fleet's record can be reached.
type emitted struct {
	state.Event
	Kept string `json:"kept,omitempty"` // why the fleet does not have it yet
}

// emitCmd is pullet event emit.
type emitCmd struct{ *app }

func eventEmitCommand(a *app) *cobra.Command {
	var e emitting
	c := &cobra.Command{
		Use: "emit NAME", Args: arguments(cobra.ExactArgs(1)),
		Short: "Tell the fleet of one event",
		Long: "Emit tells the fleet that something happened: reactions that answer NAME, a path such as backup/failed,\n" +
			"count it. On a host it is about that host; it is kept on its disk until etcd has it. With the\n" +
			"certificate of an operator it is about no host unless --host names one. Of events with one NAME and\n" +
			"one --dedupe one counts within a day.",
		RunE: func(cmd *cobra.Command, args []string) error {
			config, err := a.readConfig()
			if err != nil {
				return err
			}
			told, err := e.event(config, args[0])
			if err != nil {
				return usage(err)
			}
			if e.noop {
				return emitCmd{a}.try(cmd, told)
			}
			return emitCmd{a}.emit(cmd, config, told)
		},
	}
	f := c.Flags()
	f.StringArrayVar(
		&e.data, "data", nil, "what is known of it: KEY=TEXT, or KEY:=JSON for numbers, lists and maps; may be repeated",
	)
	f.StringVar(&e.file, "data-file", "", "a JSON or YAML file with a map of such data; - is the standard input")
	f.StringArrayVar(&e.hosts, "host", nil, "a host that it is about; may be repeated (default: this one)")
	f.BoolVar(&e.noop, "noop", false,
		"tell nothing: say which reactions would start on which hosts, and why others would not")
	f.StringVar(&e.dedupe, "dedupe", "", "names what happened: it counts once within a day")
	return c
}

// event is what is to be told, by this host or by the operator who types.
func (o *emitting) event(config agent.Config, name string) (state.Event, error) {
	e := state.Event{
		ID: event.NewID(), Name: name, By: config.Node.Name, Time: time.Now().UTC(), Hosts: o.hosts, Dedupe: o.dedupe,
	}
	if operator := config.Operator(); operator != "" {
		e.By = operator
	} else if len(o.hosts) == 0 {
		e.Hosts = []string{e.By}
	}
	var err error
	if e.Data, err = o.known(); err != nil {
		return e, err
	}
	return e, e.Check()
}

// known is the data of the file and of the flags, which count before it.
func (o *emitting) known() (map[string]any, error) {
	data := map[string]any{}
	if o.file != "" {
		if err := readDataFile(o.file, &data); err != nil {
			return nil, err
		}
	}
	for _, text := range o.data {
		key, value, ok := strings.Cut(text, "=")
		if !ok || strings.TrimSuffix(key, ":") == "" {
			return nil, fmt.Errorf("--data %q: write KEY=TEXT, or KEY:=JSON", text)
		}
		name, typed := strings.CutSuffix(key, ":")
		if !typed {
			data[key] = value
			continue
		}
		var v any
		if err := yaml.Load([]byte(value), &v); err != nil { // JSON is YAML
			return nil, fmt.Errorf("--data %s: %q is no JSON: write KEY=TEXT for a text", key, value)
		}
		data[name] = v
	}
	if len(data) == 0 {
		return nil, nil
	}
	if _, err := json.Marshal(data); err != nil { // such as a map whose keys are no texts
		return nil, fmt.Errorf("the data is not what JSON can say: %w", err)
	}
	return data, nil
}

func readDataFile(file string, into *map[string]any) error {
	var text []byte
	var err error
	if file == "-" {
		text, err = io.ReadAll(io.LimitReader(os.Stdin, state.MaxEventData+1))
	} else {
		text, err = os.ReadFile(file)
	}
	if err != nil {
		return err
	}
	if len(text) > state.MaxEventData {
		return fmt.Errorf("--data-file %s has more than %d bytes", file, state.MaxEventData)
	}
	var data map[string]any
	if err := yaml.Load(text, &data); err != nil {
		return fmt.Errorf("--data-file %s: write a map of what is known, in JSON or YAML: %w", file, err)
	}
	maps.Copy(*into, data)
	return nil
}

// emit tells the fleet of an event: a host keeps it until the fleet has it.
func (a emitCmd) emit(cmd *cobra.Command, config agent.Config, e state.Event) error {
	if config.Operator() != "" {
		return a.steers(cmd, func(ctx context.Context, store *state.Store) error {
			told, err := store.Events.Tell(ctx, e.By, []state.Event{e}, 0)
			if err == nil && told == 0 {
				err = fmt.Errorf("%d events of %s wait for the reactor already: see pullet events", state.MaxOutbox, e.By)
			}
			if err != nil {
				return err
			}
			return a.said(emitted{Event: e})
		})
	}
	spool := event.Spool{Dir: config.Paths.State, By: e.By}
	err := spool.Add(cmd.Context(), e)
	if errors.Is(err, syscall.ENOSPC) { // it cannot be kept here
		if err := a.tell(cmd.Context(), config, spool, e); err != nil {
			return err
		}
		return a.said(emitted{Event: e})
	}
	if err != nil {
		return err
	}
	out := emitted{Event: e}
	if err := a.tell(cmd.Context(), config, spool); err != nil {
		out.Kept = err.Error()
	}
	return a.said(out)
}

// errNoRecord: a pull makes the record of a fleet that has no etcd of its own.
var errNoRecord = errors.New("the fleet has no record yet: a pull makes it")

// tell tells the fleet what this host keeps, and more for which it has no room. An error says why it is kept still.
func (a emitCmd) tell(ctx context.Context, config agent.Config, spool event.Spool, more ...state.Event) (err error) {
	if config.NoStore() {
		return errNoRecord
	}
	store, err := config.OpenStore(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if len(more) > 0 {
		return spool.Raise(ctx, store, more...)
	}
	left, err := spool.Tell(ctx, store)
	if err == nil && left > 0 {
		err = fmt.Errorf("%d events of this host wait for the reactor: see pullet events", state.MaxOutbox)
	}
	return store.Explain(err)
}

// said says the id of an event and what happens next.
func (a emitCmd) said(e emitted) error {
	if done, err := a.structured(e); done || err != nil {
		return err
	}
	if e.Kept != "" {
		_, err := fmt.Fprintf(a.out, "%s: %s is kept here until etcd has it: %s\n", e.ID, e.Name, e.Kept)
		return err
	}
	_, err := fmt.Fprintf(
		a.out, "%s: the fleet knows of %s; what comes of it: pullet events show %s\n", e.ID, e.Name, e.ID,
	)
	return err
}
