package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/pullet/pullet/internal/ownfile"
	"github.com/pullet/pullet/state"
)

// checkAllowRun refuses a list of operators where no authority is believed that could have certified them.
func (l Loop) checkAllowRun(node, ca string) error {
	if !l.AllowRun.Verifies() || ca != "" {
		return nil
	}
	return fmt.Errorf("agent.allowRun allows %s, and etcd.tls.ca is not set: this host believes no authority that could "+
		"have certified them; have it join the fleet: pullet fleet invite %s, or write allowRun: true for everybody "+
		"who may write the fleet's record", l.AllowRun, node)
}

// SignCommand signs a command with the certificate of the operator who gives it here. Where there is none it stays as
// it is: hosts with allowRun: true run it.
func (c Config) SignCommand(command *state.Command) error {
	if c.Operator() == "" {
		return nil
	}
	files := c.forPeople().TLS
	credentials, err := os.ReadFile(files.Cert)
	if err == nil && files.Key != files.Cert {
		var key []byte
		key, err = os.ReadFile(files.Key)
		credentials = append(credentials, key...)
	}
	if err != nil {
		return err
	}
	return command.Sign(c.Fleet, credentials)
}

// refuses records that this host does not run a command, where its configuration or the command itself says so. The
// result learns which operator signed a command that it runs.
func (o *orders) refuses(ctx context.Context, c state.PendingCommand, result *state.CommandResult) (bool, error) {
	now := time.Now().UTC()
	operator, why, err := o.judge(c.Command, now)
	if err != nil {
		return false, err
	}
	result.Signer = operator
	if why == "" {
		return false, nil
	}
	result.State, result.Started, result.Ended, result.Reason = state.Refused, now, now, why
	return true, o.store.Commands.End(ctx, c.ID, *result, c.Stage)
}

// judge says which operator signed a command, as far as that was asked, and why this host does not run it.
func (o *orders) judge(c state.Command, now time.Time) (operator, refusal string, err error) {
	allow := o.config.Agent.AllowRun
	if allow.Anybody {
		return "", "", nil
	}
	if !allow.Verifies() {
		return "", "agent.allowRun is not set in " + o.config.file, nil
	}
	bundle, err := ownfile.Read(o.config.Etcd.TLS.CA)
	if err != nil {
		return "", "", fmt.Errorf("etcd.tls.ca, which says whom agent.allowRun believes: %w", err)
	}
	operator, wrong := c.Signer(o.config.Fleet, bundle, now)
	who := fmt.Sprintf("the operator %s asked", operator)
	switch {
	case operator == "":
		who = fmt.Sprintf("asked for by %s, which is not verified", c.By)
	case !allow.Allows(operator):
		wrong = errors.New("have one of them give it, with pullet run, or add this operator there")
	}
	if wrong == nil {
		wrong = o.local.Commands.Again(c)
	}
	if wrong == nil {
		return operator, "", nil
	}
	return operator, fmt.Sprintf("%s; agent.allowRun in %s allows %s: %v", who, o.config.file, allow, wrong), nil
}

// remember keeps that this host began with a signed command, before it runs: the fleet's record alone could be made to
// forget it. A host that cannot remember does not run it.
func (o *orders) remember(c state.Command, result *state.CommandResult) error {
	if result.Signer == "" {
		return nil
	}
	o.local.Commands = o.local.Commands.With(c, time.Now())
	err := o.local.save()
	if err != nil {
		result.State, result.Ended = state.Failed, time.Now().UTC()
		result.Reason = fmt.Sprintf("it did not run, because this host could not note that it does: %v", err)
	}
	return err
}

// asker is who gave a command, for people: where a signature was verified, the name in the certificate.
func asker(c state.Command, result state.CommandResult) string {
	if result.Signer != "" {
		return "the operator " + result.Signer
	}
	return c.By
}
