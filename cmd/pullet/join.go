package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pullet/pullet/internal/agent"
	"github.com/pullet/pullet/internal/authority"
)

// joining are the flags of join.
type joining struct {
	authority, token string
	again, noPull    bool
	stdio            bool
}

func joinCommand(a *app) *cobra.Command {
	var o joining
	c := &cobra.Command{
		Use: "join [HOST:PORT]", GroupID: "node", Args: arguments(cobra.MaximumNArgs(1)),
		Short: "Join a fleet with the line that pullet fleet invite printed",
		Long: "Join makes a key on this host, gets its certificate from the fleet's authority, writes\n" +
			"conf.d/fleet.yaml and the files that it names beside the configuration, and pulls. The fingerprint of\n" +
			"the authority says whom to believe: a server that cannot prove that it is of that authority hears\n" +
			"nothing, not even the token. --token - reads the token from stdin, so that it is in no list of\n" +
			"processes.",
		RunE: func(cmd *cobra.Command, args []string) error { return joinCmd{a}.join(cmd, o, args) },
	}
	f := c.Flags()
	f.StringVar(&o.authority, "authority", "", "fingerprint of the fleet's authority, as fleet invite prints it")
	f.StringVar(&o.token, "token", "", "the token that fleet invite prints; - reads it from stdin")
	f.BoolVar(&o.again, "again", false, "although this host is in a fleet already")
	f.BoolVar(&o.noPull, "no-pull", false, "write the configuration and pull later")
	f.BoolVar(&o.stdio, "stdio", false, "ask on stdout and read the answer from stdin: pullet fleet add does the rest")
	return c
}

// joinCmd is pullet join.
type joinCmd struct{ *app }

func (o *joining) check(args []string) error {
	switch {
	case o.stdio && len(args) == 0 && o.token == "":
		return nil
	case o.stdio:
		return usage(errors.New("--stdio takes neither an address nor a token: pullet fleet add has them"))
	case len(args) == 0 || o.token == "" || o.authority == "":
		return usage(errors.New("an address, --authority and --token are needed: pullet fleet invite prints the whole line"))
	}
	return nil
}

func (a joinCmd) join(cmd *cobra.Command, o joining, args []string) error {
	if err := o.check(args); err != nil {
		return err
	}
	file, err := configFile(a.app)
	if err != nil {
		return err
	}
	j, err := agent.Join(file, a.rootDir, o.again)
	if err != nil {
		return err
	}
	answer, err := a.answerTo(cmd, o, args, string(j.Request))
	if err != nil {
		return err
	}
	if err := j.Place(answer); err != nil {
		return fmt.Errorf("the certificate came and cannot be placed: %w; invite this host again when that is fixed", err)
	}
	is, err := authority.Inspect([]byte(answer.Certificate))
	if err != nil {
		return err
	}
	fmt.Fprintf(a.err, "joined the fleet %s as %s %s\n", answer.Fleet, is.Kind, answer.Name)
	if o.noPull || is.Kind != authority.Node {
		return nil
	}
	return a.firstPull(cmd)
}

// answerTo asks for a certificate, at the door or over stdio.
func (a joinCmd) answerTo(cmd *cobra.Command, o joining, args []string, request string) (authority.Answer, error) {
	if o.stdio {
		if err := json.NewEncoder(a.out).Encode(authority.Asked{Request: request}); err != nil {
			return authority.Answer{}, err
		}
		return authority.Receive(cmd.InOrStdin(), request)
	}
	if o.token == "-" {
		var err error
		if o.token, err = readLine(cmd); err != nil {
			return authority.Answer{}, fmt.Errorf("--token -: %w", err)
		}
	}
	asked := authority.Asked{Token: strings.TrimSpace(o.token), Request: request}
	return authority.Join(cmd.Context(), args[0], o.authority, asked)
}

// maxToken is how long a line with a token may be.
const maxToken = 4 << 10

func readLine(cmd *cobra.Command) (string, error) {
	line := make([]byte, 0, maxToken)
	for len(line) < maxToken {
		var one [1]byte
		n, err := cmd.InOrStdin().Read(one[:])
		if n == 0 || one[0] == '\n' {
			if len(line) > 0 {
				return string(line), nil
			}
			return "", errors.Join(errors.New("there is no line"), err)
		}
		line = append(line, one[0])
	}
	return "", errors.New("the line is too long for a token")
}

// firstPull brings the host to the fleet's version, as pullet pull does.
func (a joinCmd) firstPull(cmd *cobra.Command) error {
	pull := pullCommand(a.app)
	pull.SetContext(cmd.Context())
	return pull.RunE(pull, nil)
}
