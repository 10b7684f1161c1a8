package webhook

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/pullet/pullet/internal/safetext"
	"github.com/pullet/pullet/state"
)

// notification is what Alertmanager sends, in version 4. Grafana and others add fields, which are left out.
type notification struct {
	Version  string  `json:"version"`
	GroupKey string  `json:"groupKey"`
	Receiver string  `json:"receiver"`
	Alerts   []alert `json:"alerts"`
}

type alert struct {
	Status       string            `json:"status"`
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	StartsAt     string            `json:"startsAt"`
	EndsAt       string            `json:"endsAt"`
	GeneratorURL string            `json:"generatorURL"`
	Fingerprint  string            `json:"fingerprint"`
}

// maxAlerts is how many alerts one notification may have.
const maxAlerts = 1000

// readAlerts takes a group of alerts apart.
func readAlerts(e *endpoint, _ http.Header, body []byte) (*content, error) {
	var n notification
	if err := decode(body, maxDepth, &n); err != nil {
		return nil, err
	}
	switch {
	case n.Version != "4":
		version := safetext.Cut(n.Version, 20)
		return nil, fmt.Errorf("it is no notification of Alertmanager in version 4: its version is %+q", version)
	case len(n.Alerts) > maxAlerts:
		return nil, fmt.Errorf("it has %d alerts, of %d at most: set max_alerts", len(n.Alerts), maxAlerts)
	}
	out := &content{}
	for _, a := range n.Alerts {
		event, err := a.event(e, n)
		if err != nil {
			return nil, err
		}
		out.events = append(out.events, event)
	}
	return out, nil
}

// event is an alert as an event: repeats of it have the same Dedupe.
func (a alert) event(e *endpoint, n notification) (state.Event, error) {
	name := "prometheus/alert/" + state.EventWord(a.Labels["alertname"])
	switch a.Status {
	case "firing":
	case "resolved":
		name += "/resolved"
	default:
		return state.Event{}, fmt.Errorf("an alert has the status %+q, which is neither firing nor resolved",
			safetext.Cut(a.Status, 20))
	}
	labels := e.RouteLabels
	if len(labels) == 0 {
		labels = []string{"instance"}
	}
	data := map[string]any{
		"status": a.Status, "labels": plain(a.Labels, 0), "annotations": plain(a.Annotations, 0), "startsAt": a.StartsAt,
		"endsAt": a.EndsAt, "generatorURL": a.GeneratorURL, "fingerprint": a.Fingerprint, "receiver": n.Receiver,
		"groupKey": n.GroupKey,
	}
	a.fit(data)
	return state.Event{
		Name: name, Hosts: hostsOf(data["labels"].(map[string]any), labels), Data: data, Dedupe: a.dedupe(),
	}, nil
}

// fit cuts the texts for people where an alert is larger than an event may be: what it is about stays.
func (a alert) fit(data map[string]any) {
	for _, most := range []int{1000, 100, -1} {
		if text, err := json.Marshal(data); err != nil || len(text) <= state.MaxEventData {
			return
		}
		data["annotations"] = plain(a.Annotations, most)
	}
}

// plain are texts as data has them, each cut where it is longer; with most below 0 none is left, with 0 all are.
func plain(texts map[string]string, most int) map[string]any {
	out := map[string]any{}
	for key, text := range texts {
		if most > 0 {
			text = safetext.Cut(text, most)
		}
		if most >= 0 {
			out[key] = text
		}
	}
	return out
}

// dedupe names one state of one alert. What cannot be written as it came, or lacks the fingerprint, is digested.
func (a alert) dedupe() string {
	text := strings.Join([]string{a.Fingerprint, a.StartsAt, a.Status}, " ")
	if a.Fingerprint != "" && len(text) <= state.MaxEventName && !safetext.Obeyed(text) {
		return text
	}
	labels, _ := json.Marshal(a.Labels) // texts, in the order of their keys
	digest := sha256.Sum256([]byte(text + string(labels)))
	return hex.EncodeToString(digest[:])
}

// readData takes the body as the data of the hook's event.
func readData(e *endpoint, _ http.Header, body []byte) (*content, error) {
	var data map[string]any
	if err := decode(body, maxDataDepth, &data); err != nil {
		return nil, err
	}
	if data == nil {
		return nil, errors.New("the body is no object of JSON")
	}
	event := state.Event{Name: e.Event, Hosts: hostsOf(data, e.RouteLabels), Data: data}
	return &content{events: []state.Event{event}}, nil
}

// readSigned is a push or an event. The same signed body is the same event, also for who does not remember it.
func readSigned(e *endpoint, header http.Header, body []byte) (*content, error) {
	if e.Repository != "" {
		return readOwnPush(e, body)
	}
	out, err := readData(e, header, body)
	if err != nil {
		return nil, err
	}
	digest := sha256.Sum256(body)
	out.events[0].Dedupe = e.Name + " " + hex.EncodeToString(digest[:])
	return out, nil
}

// maxHosts is how many hosts an event of a webhook is about.
const maxHosts = 100

// hostsOf are the hosts that texts, or lists of them, name under some keys.
func hostsOf(data map[string]any, keys []string) (out []string) {
	for _, key := range keys {
		values, isList := data[key].([]any)
		if !isList {
			values = []any{data[key]}
		}
		for _, value := range values {
			text, _ := value.(string)
			host := hostOf(text)
			if host != "" && !slices.Contains(out, host) && len(out) < maxHosts {
				out = append(out, host)
			}
		}
	}
	return out
}

// hostOf is the host of an address with or without a port, or of a URL; "" is none.
func hostOf(text string) string {
	if u, err := url.Parse(text); err == nil && strings.Contains(text, "://") {
		text = u.Host
	}
	host, _, err := net.SplitHostPort(text)
	if err != nil {
		host = strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")
	}
	if !safetext.Address(host) {
		return ""
	}
	return host
}
