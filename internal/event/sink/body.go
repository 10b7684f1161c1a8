package sink

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/pullet/pullet/internal/safetext"
	"github.com/pullet/pullet/state"
)

// The types of sinks.
const (
	CloudEvents = "cloudevents"
	Slack       = "slack"
	JSON        = "json"
)

// The content types of what is sent.
const (
	oneCloudEvent   = "application/cloudevents+json"
	someCloudEvents = "application/cloudevents-batch+json"
	plainJSON       = "application/json"
)

// cloudEvent is an event as CloudEvents 1.0 has it in JSON.
type cloudEvent struct {
	SpecVersion string         `json:"specversion"`
	ID          string         `json:"id"`
	Source      string         `json:"source"`
	Type        string         `json:"type"`
	Subject     string         `json:"subject,omitempty"`
	Time        time.Time      `json:"time"`
	ContentType string         `json:"datacontenttype,omitempty"`
	Name        string         `json:"name"`            // an extension, as the two below: as pullet has it
	Count       int            `json:"count"`           // how many occurrences it stands for
	Cause       string         `json:"cause,omitempty"` // the run of a reaction that caused it
	Data        map[string]any `json:"data,omitempty"`
}

// plainEvent is an event as type json has it.
type plainEvent struct {
	Fleet string         `json:"fleet"`
	ID    string         `json:"id"`
	Name  string         `json:"name"`
	Node  string         `json:"node"`
	Hosts []string       `json:"hosts"`
	Time  time.Time      `json:"time"`
	Last  time.Time      `json:"last"`
	Count int            `json:"count"`
	Data  map[string]any `json:"data"`
	Chain []state.Cause  `json:"chain"`
	Text  string         `json:"text"`
}

// body is what is sent of some events, and its content type. An error is about the events.
func (s *Sink) body(fleet string, events []state.Happened) (kind string, body []byte, err error) {
	e := events[0]
	switch {
	case s.Type == Slack:
		return plainJSON, encoded(map[string]string{"text": slackText(e)}), nil
	case s.Type == JSON:
		body, err = s.plainBody(plain(fleet, e))
		return plainJSON, body, err
	case s.Batch == 0:
		return oneCloudEvent, encoded(cloud(fleet, e)), nil
	}
	list := make([]cloudEvent, len(events))
	for i, e := range events {
		list[i] = cloud(fleet, e)
	}
	return someCloudEvents, encoded(list), nil
}

// encoded is JSON. Encoding cannot fail: what is in events came from JSON.
func encoded(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
	return bytes.TrimSpace(b.Bytes())
}

func cloud(fleet string, e state.Happened) cloudEvent {
	out := cloudEvent{
		SpecVersion: "1.0", ID: e.ID, Source: "/pullet/" + url.PathEscape(fleet) + "/" + url.PathEscape(e.By),
		Type: cloudType(e.Name), Subject: strings.Join(e.Hosts, ","), Time: e.Time, Name: e.Name,
		Count: max(1, e.Count), Data: e.Data,
	}
	if e.Data != nil {
		out.ContentType = plainJSON
	}
	if n := len(e.Chain); n > 0 {
		out.Cause = e.Chain[n-1].Run
	}
	return out
}

// cloudType is the type of a CloudEvent: each slash of the name is a dot, and what is no letter, digit, dot, dash or
// underscore is an underscore.
func cloudType(name string) string {
	return "dev.pullet." + strings.Map(func(r rune) rune {
		switch {
		case r == '/':
			return '.'
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-', r == '_':
			return r
		}
		return '_'
	}, name)
}

func plain(fleet string, e state.Happened) plainEvent {
	out := plainEvent{
		Fleet: fleet, ID: e.ID, Name: e.Name, Node: e.By, Hosts: e.Hosts, Time: e.Time, Last: e.Last, Count: max(1, e.Count),
		Data: e.Data, Chain: e.Chain, Text: text(e),
	}
	if out.Hosts == nil {
		out.Hosts = []string{}
	}
	if out.Data == nil {
		out.Data = map[string]any{}
	}
	if out.Chain == nil {
		out.Chain = []state.Cause{}
	}
	return out
}

// plainBody is the event as it is, or what the template of the sink makes of it.
func (s *Sink) plainBody(e plainEvent) ([]byte, error) {
	body, has, err := s.Body(map[string]any{
		"fleet": e.Fleet, "id": e.ID, "name": e.Name, "node": e.Node, "hosts": e.Hosts, "time": e.Time, "last": e.Last,
		"count": e.Count, "data": e.Data, "chain": e.Chain, "text": e.Text,
	})
	if !has {
		return encoded(e), nil
	}
	return body, err
}

const (
	maxTextHosts = 5
	maxTextData  = 1000 // bytes
)

// text is an event in one line for people.
func text(e state.Happened) string {
	out := e.Name
	if len(e.Hosts) > 0 {
		out += " on " + safetext.Some(e.Hosts, maxTextHosts)
	}
	if e.Count > 1 {
		out += fmt.Sprintf(", %d times", e.Count)
	}
	var data []string
	for _, key := range slices.Sorted(maps.Keys(e.Data)) {
		value, is := e.Data[key].(string)
		if !is {
			value = string(encoded(e.Data[key]))
		}
		data = append(data, key+"="+value)
	}
	if len(data) > 0 {
		out += ": " + safetext.Line(strings.Join(data, " "), maxTextData)
	}
	return safetext.Line(out, 2*maxTextData)
}

// apart keeps what stands behind it from being read with what stands before it, and cannot be seen.
const apart = "\u200b"

// harmless is a text as Slack and those that are like it show it: & < and > are escaped, as Slack asks for, so that no
// mention and no link can be written with them; a name behind @ mentions nobody, and [text](url) hides no address.
var harmless = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "@", "@"+apart, "](", "]"+apart+"(")

func slackText(e state.Happened) string { return harmless.Replace(text(e)) }
