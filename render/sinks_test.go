package render

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// sinksOf compiles pullet.yaml with sinks, which are written as flow YAML.
func sinksOf(t *testing.T, sinks string) ([]Sink, error) {
	t.Helper()
	cat, err := datastoreOf(t, "sinks: "+sinks, "", "{a1: {}}")
	if err != nil {
		return nil, err
	}
	return cat.Fleet.Sinks, nil
}

// TestSinks: which events a sink takes.
func TestSinks(t *testing.T) {
	sinks, err := sinksOf(t, `[
  {name: all, url: 'https://example.org/x?key=1', events: '**', batch: 50},
  {name: chat, type: slack, urlFile: /etc/pullet/chat.url, events: ['pullet/rollout/*', pullet/node/lost], except: pullet/rollout/finished},
  {name: old, type: json, url: 'http://127.0.0.1:80', events: edenconfmgmt/failure/step, tokenFile: /t, signatureFile: /s},
  {name: six, url: 'http://[::1]:80/', events: backup/**}]`)
	if err != nil {
		t.Fatal(err)
	}
	for event, want := range map[string]string{
		"pullet/rollout/halted": "all chat", "pullet/rollout/finished": "all", "pullet/node/lost": "all chat", "pullet/node/back": "all",
		"pullet/step/failed": "all old", "backup/a/b": "all six",
	} {
		var takes []string
		for i := range sinks {
			if sinks[i].Takes(event) {
				takes = append(takes, sinks[i].Name)
			}
		}
		if got := strings.Join(takes, " "); got != want {
			t.Errorf("%s: %s, want %s", event, got, want)
		}
	}
	if sinks[0].Kind() != "cloudevents" || sinks[1].Kind() != "slack" {
		t.Error(sinks[0].Kind(), sinks[1].Kind())
	}
}

// TestSinkMistakes: what cannot be is said with its place and what helps. Nothing of a url is quoted: it may be a
// secret.
func TestSinkMistakes(t *testing.T) {
	many := strings.Repeat("{name: NAME, url: 'https://a', events: a}, ", 21)
	for i := range 21 {
		many = strings.Replace(many, "NAME", fmt.Sprintf("s%d", i), 1)
	}
	for sinks, want := range map[string]string{
		"[{name: a, url: 'https://a'}]":                                                    `pullet.yaml:1:9: sinks: "events" is missing`,
		"[{name: a, url: 'https://a', events: []}]":                                        "pullet.yaml:1:45: events: nothing is sent: name events, or globs over names such as pullet/run/*",
		"[{name: a, url: 'https://a', events: 'a**'}]":                                     `events: "a**" is no glob over names of events`,
		"[{name: a, url: 'https://a', events: a, except: 'b c/'}]":                         `except: "b c/" is no name of an event`,
		"[{name: a/b, url: 'https://a', events: a}]":                                       `pullet.yaml:1:16: name: "a/b": use 63 letters, digits, dots, dashes and underscores at most`,
		"[{name: a, events: a}]":                                                           "url: give url, or urlFile where the url is a secret, and not both",
		"[{name: a, url: 'https://a', urlFile: /a, events: a}]":                            "url: give url, or urlFile",
		"[{name: a, url: 'https://ada:hidden@a', events: a}]":                              "url: it holds a user or a password: put a token into a file of the hosts, and name that in tokenFile",
		"[{name: a, url: 'http://hidden.example.org/hidden', events: a}]":                  "url: http sends what happens, and the token, in clear text: write https",
		"[{name: a, url: 'http://localhost/hidden', events: a}]":                           "http is for receivers on the host itself, by address: http://127.0.0.1:8080/",
		"[{name: a, url: 'http://127.0.0.1.hidden.example.org', events: a}]":               "url: http sends",
		"[{name: a, url: 'ftp://hidden/', events: a}]":                                     "url: it is no https URL",
		"[{name: a, url: 'https:///hidden', events: a}]":                                   "url: it is no https URL",
		"[{name: a, url: 'https://a/%zz?hidden', events: a}]":                              "url: it is no URL",
		"[{name: a, url: 'https://a/#hidden', events: a}]":                                 "url: what follows # is not sent",
		"[{name: a, url: 'https://a', events: a, type: teams}]":                            `type: expected cloudevents or slack or json, found "teams"`,
		"[{name: a, url: 'https://a', events: a, tokenFile: chat.token}]":                  `tokenFile: "chat.token": write the whole path of a file on the hosts: /etc/pullet/chat.token`,
		"[{name: a, url: 'https://a', events: a, batch: 501}]":                             "batch: 501: write a number from 1 to 500",
		"[{name: a, url: 'https://a', events: a, type: slack, batch: 2}]":                  "batch: events are sent one by one as slack: batch is for cloudevents",
		"[{name: a, url: 'https://a', events: a, token: x}]":                               `unknown field "token" (known: batch, events, except, name`,
		"[{name: a, url: 'https://a', events: a, template: x}]":                            "template: it is the body of type: json, and the type is cloudevents",
		"[{name: a, url: 'https://a', events: a}, {name: a, url: 'https://b', events: a}]": `pullet.yaml:1:56: sinks: the name "a" is used twice`,
		"[" + many + "]": "sinks: there are 21, of 20 at most",
		"{name: a}":      "sinks: expected a list, found a map",
	} {
		_, err := sinksOf(t, sinks)
		if err == nil {
			t.Errorf("%s: no mistake", sinks)
			continue
		}
		said, _, _ := strings.Cut(err.Error(), "\n") // then the line follows as it is written
		if !strings.Contains(said, want) || strings.Contains(said, "hidden") {
			t.Errorf("%s: %s\nwant %s", sinks, said, want)
		}
	}
}

// TestSinkTemplates: a template gives JSON, whatever is in the event: every value stands there as JSON.
func TestSinkTemplates(t *testing.T) {
	const text = `{"summary": {{ print .name " on " (join ", " .hosts) ": " .data.why }}, "more": {{ .data }}, "missing": {{ .data.nothing }},
"bad": {{ if eq .name "a/b" }}true{{ else }}false{{ end }}, "first": {{ index .hosts 0 }}{{ if and .data.why (not .data.nothing) }}, "why": {{ .data.why }}{{ end }}}`
	s := &Sink{Type: "json", Template: text}
	var wrong []string
	s.checkTemplate(func(field, format string, args ...any) { wrong = append(wrong, field+fmt.Sprintf(format, args...)) })
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	for _, why := range []string{"disk", `","routing_key":"x`, "{{ .fleet }}", "\x00\n\u2028</script>", `\`, `\"`, strings.Repeat(`"`, 16<<10)} {
		body, has, err := s.Body(map[string]any{"name": "a/b", "hosts": []string{"web1", "web2"}, "data": map[string]any{"why": why, why: 1}})
		var got map[string]any
		if bad := json.Unmarshal(body, &got); bad != nil || !has || err != nil {
			t.Fatalf("%q: %v %v", why, bad, err)
		}
		if got["summary"] != "a/b on web1, web2: "+why || got["why"] != why || got["bad"] != true || len(got) != 6 || got["missing"] != nil || got["first"] != "web1" {
			t.Errorf("%q: %v", why, got)
		}
	}
	if _, _, err := s.Body(map[string]any{"name": "a", "hosts": []string{}, "data": map[string]any{}}); err == nil || !strings.Contains(err.Error(), "template: ") {
		t.Errorf("%v", err)
	}
	if _, has, err := (&Sink{}).Body(nil); has || err != nil {
		t.Error(has, err)
	}
}

// TestSinkTemplateMistakes: a template has an end, and calls nothing that could tell or take more than an event has.
func TestSinkTemplateMistakes(t *testing.T) {
	for text, want := range map[string]string{
		`{"a": "{{ .name }}"}`:                        "it gives no JSON: write {{ .name }} without quotes around it",
		`{"a": {{ .name }`:                            "template: template:1",
		`{{ range .hosts }}{{ . }}{{ end }}`:          "a body has values and if, and nothing else",
		`{{ range 1000000000 }}{{ end }}`:             "a body has values and if, and nothing else",
		`{{ with .data }}{{ . }}{{ end }}`:            "a body has values and if, and nothing else",
		`{{ define "x" }}{{ end }}{{ template "x" }}`: "a body has values and if, and nothing else",
		`{{ $x := print .name .name }}{{ $x }}`:       "a body has no variables",
		`{{ if $x := .name }}{{ $x }}{{ end }}`:       "a body has no variables",
		`{{ printf "%999999999d" 1 }}`:                `there is no function "printf" here: use join, print, index`,
		`{{ print (printf "%999999999d" 1) }}`:        `there is no function "printf" here`,
		`{{ (html .name).x }}`:                        `there is no function "html" here`,
		`{{ if js .name }}1{{ end }}`:                 `there is no function "js" here`,
		`{{ .name | call }}`:                          `there is no function "call" here`,
		`{{ env "HOME" }}`:                            `function "env" not defined`,
		`{{ define "x" }}1{{ end }}`:                  "it gives no JSON",
		strings.Repeat(" ", maxSinkTemplate+1):        "it has 8193 bytes, of 8192 at most",
	} {
		if _, err := parseSinkTemplate(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v\nwant %s", text[:min(80, len(text))], err, want)
		}
	}
	large, err := parseSinkTemplate("[" + strings.Repeat("{{ .text }},", 600) + "1]")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := large.fill(map[string]any{"text": strings.Repeat("x", 4000)}); err == nil || !strings.Contains(err.Error(), "the body has more than 1048576 bytes") {
		t.Error(err)
	}
}
