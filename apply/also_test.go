package apply

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/pullet/pullet/render"
)

// TestAlso: an error behind a failure goes to the log and leaves the failure as it is, with a log or without; behind a
// success it is the failure.
func TestAlso(t *testing.T) {
	var text bytes.Buffer
	log := logrus.New()
	log.SetOutput(&text)
	with := logrus.NewEntry(log)
	for _, c := range []struct {
		log      *logrus.Entry
		outcome  Outcome
		reason   string
		want     string
		isLogged bool
	}{
		{with, Failed, "broken", "broken", true}, {nil, Failed, "broken", "broken", false}, {with, Changed, "", "etcd is away", false},
	} {
		text.Reset()
		s := &running{
			x: &execution{options: Options{Log: c.log}}, step: &boundStep{Step: &render.Step{Job: "a", Name: "b"}, id: "a/b"},
			r: &StepReport{Outcome: c.outcome, Reason: c.reason},
		}
		s.also(errors.New("etcd is away"))
		if logged := strings.Contains(text.String(), "etcd is away") && strings.Contains(text.String(), "step a/b failed"); s.r.Outcome != Failed || s.r.Reason != c.want || logged != c.isLogged {
			t.Errorf("%s %s, logged %q", s.r.Outcome, s.r.Reason, text.String())
		}
	}
}
