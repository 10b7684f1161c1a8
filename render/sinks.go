package render

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"reflect"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/pullet/pullet/internal/safetext"
)

// Sink is a receiver outside of the fleet that events are sent to.
type Sink struct {
	Name string `yaml:"name,required"` // one word
	// where events are sent to: https, or http to a loopback address; without a user and a password
	URL string `yaml:"url"`
	// a file of the host that holds the url, where that is a secret itself
	URLFile string `yaml:"urlFile"`
	// what is sent: cloudevents is CloudEvents 1.0 in JSON, slack a line of text, json a plain object; default cloudevents
	Type string `yaml:"type" words:"cloudevents slack json"`
	// which events: names, or globs over names as reactions have them
	Events        Strings `yaml:"events,required"`
	Except        Strings `yaml:"except"`        // which of them not, in the same way
	TokenFile     string  `yaml:"tokenFile"`     // a file of the host with a bearer token
	SignatureFile string  `yaml:"signatureFile"` // a file of the host with a key: X-Signature is the body's HMAC-SHA256
	Batch         int     `yaml:"batch"`         // of cloudevents: so many at once, as a list; default one, and no list
	Template      string  `yaml:"template"`      // of json: the body, as JSON with {{ }} for values

	node         *yaml.Node
	takes, leave []EventGlob
	body         *sinkTemplate
}

const (
	maxSinks     = 20
	maxSinkBatch = 500
	maxSinkName  = 63
)

// Takes reports that events of a name are sent to it.
func (s *Sink) Takes(event string) bool {
	has := func(globs []EventGlob) bool {
		return slices.ContainsFunc(globs, func(g EventGlob) bool { return g.Matches(event) })
	}
	return has(s.takes) && !has(s.leave)
}

// Kind is what is sent.
func (s *Sink) Kind() string { return cmp.Or(s.Type, "cloudevents") }

func (s *Sink) decode(d *decoder, n *yaml.Node) {
	before := len(d.errs)
	s.node = n
	d.object(n, reflect.ValueOf(s).Elem(), "sinks")
	if len(d.errs) == before {
		s.check(d)
	}
}

// check finds what is wrong with a sink.
func (s *Sink) check(d *decoder) {
	wrong := func(field, format string, args ...any) { d.failf(fieldOf(s.node, field), field+": "+format, args...) }
	if !safetext.Name(s.Name) || len(s.Name) > maxSinkName {
		wrong("name", "%q: use %d letters, digits, dots, dashes and underscores at most", shortened(s.Name), maxSinkName)
	}
	if (s.URL == "") == (s.URLFile == "") {
		wrong("url", "give url, or urlFile where the url is a secret, and not both")
	} else if s.URL != "" {
		if err := CheckSinkURL(s.URL); err != nil {
			wrong("url", "%v", err)
		}
	}
	for _, f := range []struct{ field, file string }{
		{"urlFile", s.URLFile}, {"tokenFile", s.TokenFile}, {"signatureFile", s.SignatureFile},
	} {
		if f.file != "" && (!path.IsAbs(f.file) || safetext.Obeyed(f.file)) {
			wrong(f.field, "%q: write the whole path of a file on the hosts: /etc/pullet/chat.token", shortened(f.file))
		}
	}
	if s.Batch < 0 || s.Batch > maxSinkBatch {
		wrong("batch", "%d: write a number from 1 to %d", s.Batch, maxSinkBatch)
	} else if s.Batch > 0 && s.Kind() != "cloudevents" {
		wrong("batch", "events are sent one by one as %s: batch is for cloudevents", s.Kind())
	}
	s.takes, s.leave = s.globs(d, "events", s.Events), s.globs(d, "except", s.Except)
	if len(s.Events) == 0 {
		wrong("events", "nothing is sent: name events, or globs over names such as pullet/run/*")
	}
	s.checkTemplate(wrong)
}

func (s *Sink) checkTemplate(wrong func(field, format string, args ...any)) {
	if s.Template == "" {
		return
	}
	if s.Kind() != "json" {
		wrong("template", "it is the body of type: json, and the type is %s", s.Kind())
		return
	}
	var err error
	if s.body, err = parseSinkTemplate(s.Template); err != nil {
		wrong("template", "%v", err)
	}
}

func (s *Sink) globs(d *decoder, field string, list Strings) (out []EventGlob) {
	for _, text := range list {
		g, err := ParseEventGlob(text)
		if err != nil {
			d.failf(fieldOf(s.node, field), "%s: %q %v", field, shortened(text), err)
		}
		out = append(out, g)
	}
	return out
}

// CheckSinkURL says what is wrong with the url of a sink; nil: nothing. It quotes nothing of it: it may be a secret.
func CheckSinkURL(text string) error {
	u, err := url.Parse(text)
	if err != nil { // the cause quotes it
		return errors.New("it is no URL: write one such as https://hooks.example.org/events")
	}
	ip, noAddress := netip.ParseAddr(u.Hostname())
	switch {
	case u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || len(text) > 2000:
		return errors.New("it is no https URL: write one such as https://hooks.example.org/events")
	case u.User != nil:
		return errors.New("it holds a user or a password: put a token into a file of the hosts, and name that in tokenFile")
	case u.Scheme == "http" && (noAddress != nil || !ip.IsLoopback()):
		return errors.New("http sends what happens, and the token, in clear text: write https. http is for receivers on " +
			"the host itself, by address: http://127.0.0.1:8080/")
	case u.Fragment != "":
		return errors.New("what follows # is not sent: leave it out")
	}
	return nil
}

// checkSinks finds what is wrong with sinks beside each other.
func (c *compiler) checkSinks(doc *document) {
	seen := map[string]bool{}
	for _, s := range c.fleet.Sinks {
		if seen[s.Name] && s.Name != "" {
			c.fail(doc.errorAt(fieldOf(s.node, "name"), "sinks: the name %q is used twice", shortened(s.Name)))
		}
		seen[s.Name] = true
	}
	if n := len(c.fleet.Sinks); n > maxSinks {
		c.fail(doc.errorAt(doc.find("sinks"), "sinks: there are %d, of %d at most", n, maxSinks))
	}
}

// Body is the body for an event, by the template of the sink. It is false where it has none.
func (s *Sink) Body(event map[string]any) (body []byte, has bool, err error) {
	if s.body == nil {
		return nil, false, nil
	}
	body, err = s.body.fill(event)
	if err != nil {
		err = fmt.Errorf("template: %w", err)
	}
	return body, true, err
}
