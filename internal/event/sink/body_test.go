package sink

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/state"
)

// noTemplate is the Body of a sink without one.
func noTemplate(map[string]any) ([]byte, bool, error) { return nil, false, nil }

// failedStep is an event as the log has it.
func failedStep(id string) state.Happened {
	at := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	return state.Happened{
		Event: state.Event{
			ID: id, Name: "pullet/step/failed", By: "web1", Time: at, Hosts: []string{"web1", "web2"},
			Data: map[string]any{"step": "motd", "n": 3.0}, Chain: []state.Cause{{Run: "run1", Reaction: "a"}, {Run: "run2", Reaction: "b"}},
		},
		Count: 2, Last: at.Add(time.Minute),
	}
}

// TestCloudEvents: what is sent is CloudEvents 1.0 in JSON, one by one or as a batch: required attributes are there,
// names of extensions are lowercase letters and digits, and nothing is empty.
func TestCloudEvents(t *testing.T) {
	one := Sink{Type: CloudEvents}
	kind, body, err := one.body("fleet a", []state.Happened{failedStep("e1")})
	want := `{"specversion":"1.0","id":"e1","source":"/pullet/fleet%20a/web1","type":"dev.pullet.pullet.step.failed",` +
		`"subject":"web1,web2","time":"2026-11-26T12:00:00Z","datacontenttype":"application/json","name":"pullet/step/failed",` +
		`"count":2,"cause":"run2","data":{"n":3,"step":"motd"}}`
	if kind != "application/cloudevents+json" || string(body) != want || err != nil {
		t.Errorf("%s\n%s\n%v", kind, body, err)
	}
	bare := state.Happened{Event: state.Event{ID: "e2", Name: "a/b c:d", By: "web1", Time: time.Unix(0, 0).UTC()}}
	some := Sink{Type: CloudEvents, Batch: 10}
	kind, body, err = some.body("f", []state.Happened{failedStep("e1"), bare})
	var list []map[string]any
	if err := json.Unmarshal(body, &list); err != nil || len(list) != 2 || kind != "application/cloudevents-batch+json" {
		t.Fatalf("%s %s %v", kind, body, err)
	}
	if list[1]["type"] != "dev.pullet.a.b_c_d" || list[1]["name"] != "a/b c:d" || list[1]["count"] != 1.0 {
		t.Errorf("%v", list[1])
	}
	for _, event := range list {
		for name, value := range event {
			if !regexp.MustCompile(`^[a-z0-9]{1,20}$`).MatchString(name) || value == "" || value == nil {
				t.Errorf("attribute %q: %v", name, value)
			}
		}
	}
	if names := slices.Sorted(maps.Keys(list[1])); !slices.Equal(names, []string{"count", "id", "name", "source", "specversion", "time", "type"}) {
		t.Errorf("%v %v", names, err)
	}
}

// TestSlackText: an event is one line for people. What stands in its data mentions nobody, hides no address and is no
// second line, and the line has an end.
func TestSlackText(t *testing.T) {
	e := failedStep("e1")
	s := Sink{Type: Slack}
	kind, body, err := s.body("f", []state.Happened{e})
	if want := `{"text":"pullet/step/failed on web1, web2, 2 times: n=3 step=motd"}`; kind != "application/json" || string(body) != want || err != nil {
		t.Errorf("%s %s %v", kind, body, err)
	}
	for _, hostile := range []string{
		"<!channel>", "<!here|x>", "<@U123>", "<https://evil.example|pay here>", "@channel @all", "[pay](https://evil.example)", "a&lt;b",
		"x\",\"channel\":\"#general", "two\nlines\r\n\x00\x1b[31m\u202e", strings.Repeat("<!channel>", 1600),
	} {
		e.Data = map[string]any{"why": hostile, "deep": map[string]any{"list": []any{hostile}}, hostile[:min(40, len(hostile))]: 1}
		_, body, err := s.body("f", []state.Happened{e})
		var got map[string]string
		if err := json.Unmarshal(body, &got); err != nil || len(got) != 1 {
			t.Fatalf("%s %v", body, err)
		}
		text := got["text"]
		bad := regexp.MustCompile(`[<>\n\r\x00\x1b\x{202e}]|@[a-zA-Z]|\]\(|&(?:$|[^agl])`).FindString(text)
		if bad != "" || len(text) > 20_000 || err != nil {
			t.Errorf("%q is in %q %v", bad, text, err)
		}
	}
}

// TestPlainJSON: an event as type json has it, where nothing is missing; and what a template makes of it.
func TestPlainJSON(t *testing.T) {
	s := Sink{Type: JSON, Body: noTemplate}
	kind, body, err := s.body("f", []state.Happened{{Event: state.Event{ID: "e", Name: "a/b", By: "web1", Time: time.Unix(0, 0).UTC()}, Last: time.Unix(1, 0).UTC()}})
	want := `{"fleet":"f","id":"e","name":"a/b","node":"web1","hosts":[],"time":"1970-01-01T00:00:00Z","last":"1970-01-01T00:00:01Z",` +
		`"count":1,"data":{},"chain":[],"text":"a/b"}`
	if kind != "application/json" || string(body) != want || err != nil {
		t.Errorf("%s\n%s\n%v", kind, body, err)
	}
	var seen map[string]any
	s.Body = func(e map[string]any) ([]byte, bool, error) { seen = e; return []byte(`{"a":1}`), true, nil }
	if _, body, err := s.body("f", []state.Happened{failedStep("e1")}); string(body) != `{"a":1}` || err != nil {
		t.Errorf("%s %v", body, err)
	}
	if names := strings.Join(slices.Sorted(maps.Keys(seen)), " "); names != "chain count data fleet hosts id last name node text time" {
		t.Error(names)
	}
}
