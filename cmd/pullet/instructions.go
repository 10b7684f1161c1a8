package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/pullet/pullet/ownfile"
)

// maxInstructions is how long the rules of a rollout may be: they stand in the record of the fleet's version.
const maxInstructions = 64 << 10

// readInstructions reads the rules of a rollout: from a file, from the input for "-", or from the text itself where it is
// JSON. Without a name it takes the file beside the configuration, where there is one.
func (a *app) readInstructions(from string, in io.Reader) (json.RawMessage, error) {
	name, text, err := a.instructionsText(from, in)
	if from == "" && errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("instructions: %w", err)
	}
	var out bytes.Buffer
	if err := json.Compact(&out, text); err != nil {
		return nil, fmt.Errorf("instructions: %s is not JSON: %w", name, err)
	}
	if out.Len() > maxInstructions {
		return nil, fmt.Errorf("instructions: %s has more than %d KiB", name, maxInstructions>>10)
	}
	return text, nil // as it is: messages have its lines and columns
}

// instructionsText is what readInstructions decodes, and how messages name it.
func (a *app) instructionsText(from string, in io.Reader) (name string, text []byte, err error) {
	switch {
	case from == "-":
		text, err = io.ReadAll(io.LimitReader(in, 16*maxInstructions))
		return "the input", text, err
	case strings.HasPrefix(strings.TrimSpace(from), "{"):
		return "the text", []byte(from), nil
	case from == "":
		from = filepath.Join(filepath.Dir(a.config), "upgrade.json")
	}
	text, err = ownfile.Read(from)
	return from, text, err
}
