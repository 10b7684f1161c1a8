package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/pullet/pullet/internal/agent"
	"github.com/pullet/pullet/internal/ownfile"
	"github.com/pullet/pullet/state"
)

// readInstructions reads the rules of a rollout: from a file, from the input for "-", or from the text itself where it
// is JSON. Without a name it takes the file beside the configuration, where there is one; "none" is none at all.
func (a *app) readInstructions(from string, in io.Reader) (agent.Instructions, error) {
	if from == "none" {
		return agent.Instructions{None: true}, nil
	}
	name, text, err := a.instructionsText(from, in)
	if from == "" && errors.Is(err, fs.ErrNotExist) {
		return agent.Instructions{}, nil
	}
	if err != nil {
		return agent.Instructions{}, fmt.Errorf("instructions: %w", err)
	}
	return agent.Instructions{From: name, Text: text}, nil
}

// instructionsText is what readInstructions reads, and how messages name it.
func (a *app) instructionsText(from string, in io.Reader) (name string, text []byte, err error) {
	switch {
	case from == "-":
		text, err = io.ReadAll(io.LimitReader(in, 16*state.MaxInstructions))
		return "the input", text, err
	case strings.HasPrefix(strings.TrimSpace(from), "{"):
		return "the text", []byte(from), nil
	case from == "":
		config, err := configFile(a)
		if err != nil {
			return "", nil, err
		}
		from = filepath.Join(filepath.Dir(config), "upgrade.json")
	}
	text, err = ownfile.Read(from)
	return from, text, err
}
