package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/pullet/pullet/internal/authority"
)

const (
	commandPurpose = "command"       // keeps signatures of commands apart from those for something else
	maxSigned      = 64 << 10        // bytes of a signature
	clocksDiffer   = 5 * time.Minute // how far the clocks of a host and of an operator may be apart
)

// Sign signs a command for one fleet, with the credentials of the operator who gives it. Nothing of it may change
// behind that.
func (c *Command) Sign(fleet string, credentials []byte) error {
	written, err := json.Marshal(c)
	if err != nil {
		return err
	}
	var read Command // as hosts have it: some texts are recorded as others
	if err = unpack(written, &read); err == nil {
		err = read.check(Key{Word: c.ID})
	}
	if err != nil {
		return fmt.Errorf("sign the command: %w", err)
	}
	signed, err := authority.Sign(credentials, commandPurpose, read.signedText(fleet))
	c.Signature = string(signed)
	return err
}

// Signer is the operator of a fleet who signed a command, for a host that believes this bundle. An error says why the
// signature does not count now, by the clock of the host; where the time alone is wrong the operator is known.
func (c Command) Signer(fleet string, bundle []byte, now time.Time) (string, error) {
	if c.Signature == "" {
		return "", errors.New("it has no signature: give it with the certificate of an operator (etcd.operator), " +
			"which pullet fleet invite NAME --operator makes")
	}
	s, err := authority.Verify(bundle, commandPurpose, c.signedText(fleet), []byte(c.Signature), now)
	switch {
	case err != nil:
		return "", fmt.Errorf("%w; to give it again: pullet run", err)
	case s.Kind != authority.Operator:
		return "", fmt.Errorf("the %s %s signed it, and commands are for operators to give: "+
			"pullet fleet invite NAME --operator makes one", s.Kind, s.Name)
	case s.Fleet != fleet:
		return "", fmt.Errorf("the operator %s of the fleet %s signed it, and this host is of %s", s.Name, s.Fleet, fleet)
	}
	return s.Name, c.counts(now)
}

// counts says why no host begins with a signed command at a time. Etcd ends a command by its own clock, which counts as
// long as nobody brings the command back.
func (c Command) counts(now time.Time) error {
	const clock = "%s, and the clock of this host says %s: %s"
	at := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	switch {
	case now.Before(c.At.Add(-clocksDiffer)):
		return fmt.Errorf("it was given at "+clock, at(c.At), at(now),
			"set the clock that is wrong; pullet doctor looks at it")
	case now.After(c.Until.Add(clocksDiffer)):
		return fmt.Errorf("it ended at "+clock, at(c.Until), at(now), "give it again: pullet run; "+
			"where the clock is wrong, pullet doctor says so")
	}
	return nil
}

// signedText is what is signed of a command: the fleet, and all of the record but the signature. Each text stands
// behind its length and each list behind its own, so no two commands have the same text.
func (c Command) signedText(fleet string) []byte {
	var t commandText
	t.texts("fleet", fleet)
	t.texts("id", c.ID)
	t.texts("args", c.Args...)
	t.texts("target", c.Target)
	t.numbers("stages", len(c.Stages))
	for _, nodes := range c.Stages {
		t.texts("stage", nodes...)
	}
	t.texts("leftOut", c.LeftOut...)
	t.numbers("max", c.Max)
	t.numbers("limits", c.Limits...)
	t.numbers("maxFailures", c.MaxFailures)
	t.texts("timeout", strconv.FormatInt(int64(c.Timeout), 10))
	t.texts("reason", c.Reason)
	t.texts("by", c.By)
	t.texts("at", c.At.UTC().Format(time.RFC3339Nano))
	t.texts("until", c.Until.UTC().Format(time.RFC3339Nano))
	return t.Bytes()
}

// commandText is the text of a command while it is made.
type commandText struct{ bytes.Buffer }

func (t *commandText) texts(name string, all ...string) {
	fmt.Fprintf(t, "%s %d\n", name, len(all))
	for _, one := range all {
		fmt.Fprintf(t, "%d:%s\n", len(one), one)
	}
}

func (t *commandText) numbers(name string, all ...int) {
	texts := make([]string, len(all))
	for i, n := range all {
		texts[i] = strconv.Itoa(n)
	}
	t.texts(name, texts...)
}
