package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/pullet/pullet/state"
)

// onScreen runs a command on a terminal of so many columns and returns what that was sent.
func onScreen(t *testing.T, columns int, args ...string) string {
	t.Helper()
	screen, program, err := openTerminal(columns, 50)
	if err != nil {
		t.Fatal(err)
	}
	defer screen.Close()
	text := make(chan []byte)
	go func() {
		all, _ := io.ReadAll(screen) // it ends with an error when nobody writes any longer
		text <- all
	}()
	var errs bytes.Buffer
	if code := run(t.Context(), args, program, &errs, nil); code == exitUsage {
		t.Errorf("pullet %s: %s", args, &errs)
	}
	if err := program.Close(); err != nil {
		t.Fatal(err)
	}
	return string(<-text)
}

// plantWide puts nodes with long names, wide characters and endless reasons into the fleet's record.
func plantWide(t *testing.T, store *state.Store, names []string) {
	t.Helper()
	o, err := store.Views.Fleet(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Now().Add(-time.Hour).UTC()
	reason := "设备上没有剩余空间" + strings.Repeat(" no space left on device 磁盘已满", 9) + " /srv/" + strings.Repeat("x", 150)
	put := func(key string, value any) {
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.Client.Put(t.Context(), "/pullet/default/"+key, string(text)); err != nil {
			t.Fatal(err)
		}
	}
	release := "v1.2.3-" + strings.Repeat("rc", 60)
	for i, name := range names {
		n := state.Node{Name: name, Role: strings.Repeat("farbe-größer-", 8), FirstSeen: at, LastSeen: at, Agent: "v0.1.0"}
		put("node/"+name, n)
		put("alive/"+name, map[string]any{})
		st := state.Status{
			Version: o.Current.ID, Release: release, Time: at, Run: "20260101T000000Z-123456", Reason: reason,
			Log: "https://logs.example.org/" + strings.Repeat("p/", 90),
		}
		say := []string{state.Failed, state.Pending, state.Running}[i%3]
		if say == state.Pending {
			st.Gate, st.Kind, st.Remedy = "slot "+n.Role+" (1 at a time)", state.WaitSlot, state.Act("pullet decommission "+names[0])
		}
		if err := store.Statuses.Set(t.Context(), name, state.Rollout, say, st); err != nil {
			t.Fatal(err)
		}
		put("service/"+name+"/db", state.Service{Address: "192.0.2.7", Port: 5432, Announced: at, Tags: []string{"primary", "磁盘"}})
	}
	put("slot/web/0", state.Claim{Node: names[0], Version: o.Current.ID, Step: reason[:60] + strings.Repeat("y", 60), Since: at})
	put("rollout/"+o.Current.Rollout()+"/gate/web", state.Gate{State: state.Halted, Node: names[0], Reason: reason, At: at})
}

// TestTablesFit: on a terminal no line that a command prints is wider than that, whatever names, releases and reasons
// the record has; with -o wide and elsewhere the names are whole.
func TestTablesFit(t *testing.T) {
	config, store := hostileNode(t)
	t.Setenv("TERM", "xterm")
	names := []string{
		"web-" + strings.Repeat("long.", 40) + "example.org", "db1", "web-" + strings.Repeat("x", 100), "web9",
		"a." + strings.Repeat("very.", 10) + "example.org",
	}
	site := filepath.Join(filepath.Dir(config), "repo/jobs/site.yaml")
	steps := "steps:\n  - {name: fails, action: cmd.run, parameters: {cmd: \"echo " + strings.Repeat("磁盘已满 ", 60) + " >&2; false\"}}\n"
	if err := os.WriteFile(site, []byte(steps), 0o644); err != nil {
		t.Fatal(err)
	}
	gitIn(t, filepath.Dir(filepath.Dir(site)), "-c", "user.name=Ada", "-c", "user.email=ada@example.org", "commit", "-qam",
		strings.Repeat("世界 subject ", 30))
	t.Setenv("PULLET_CONFIG", config)
	onScreen(t, 80, "pull")
	plantWide(t, store, names)
	data := "text=" + strings.Repeat("磁盘已满 ", 60)
	onScreen(t, 80, "event", "emit", "disk/full", "--data", data, "--host", names[0])
	onScreen(t, 80, "disable", "--global", "--reason", strings.Repeat("世界 because ", 30))
	onScreen(t, 80, "reactions", "pause", strings.Repeat("世界", 30), "--reason", data)
	for _, command := range []string{
		"status", "nodes", "failures", "locks", "services", "rollout status", "rollout watch --timeout 1ms", "rollout history",
		"events", "reactions", "history", "run", "fleet list", "fleet minimum", "datastore status", "explain", "explain cmd.run", "schema",
	} {
		args := strings.Fields(command)
		for _, columns := range []int{80, 60} {
			text := regexp.MustCompile(`\x1b\[[0-9;?]*[A-Za-z]`).ReplaceAllString(onScreen(t, columns, args...), "")
			if text == "" || !utf8.ValidString(text) {
				t.Errorf("pullet %s prints %q", command, text)
			}
			for line := range strings.Lines(text) {
				if n := columnsOf(strings.TrimRight(line, "\r\n")); n > columns {
					t.Errorf("pullet %s in %d columns: a line has %d: %s", command, columns, n, line)
				}
			}
		}
	}
	kept, err := store.Statuses.Get(t.Context(), names[0], state.Rollout, state.Failed) // the record has a limit of its own
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"nodes", "nodes -o wide", "status -o wide", "failures"} {
		var out bytes.Buffer
		run(t.Context(), strings.Fields(command), &out, io.Discard, nil)
		if text := out.String(); !strings.Contains(text, names[0]) || !strings.Contains(text, kept.Reason) {
			t.Errorf("pullet %s elsewhere cuts something:\n%s", command, text)
		}
	}
	if wide := onScreen(t, 80, "nodes", "-o", "wide"); !strings.Contains(wide, names[0]) {
		t.Errorf("pullet nodes -o wide has no %s:\n%s", names[0], wide)
	}
}

// TestColumns: a text is as wide as a terminal shows it.
func TestColumns(t *testing.T) {
	for text, want := range map[string]int{"": 0, "abc": 3, "äöü": 3, "a\u0308": 1, "世界": 4, "😀": 2, "Ａ": 2, "ｱ": 1, "a\u200bb": 2} {
		if got := columnsOf(text); got != want {
			t.Errorf("%q has %d columns, want %d", text, got, want)
		}
	}
	for most, want := range map[int]string{0: "世", 1: "世", 3: "世", 4: "世界"} {
		if got := beginning("世界", most); got != want {
			t.Errorf("in %d columns: %q, want %q", most, got, want)
		}
	}
	for most, want := range map[int]string{8: "世界...", 9: "世界世...", 10: "世界世...", 12: "世界世界世界"} {
		if got := shorten("世界世界世界", most); got != want {
			t.Errorf("in %d columns: %q, want %q", most, got, fmt.Sprint(want))
		}
	}
}
