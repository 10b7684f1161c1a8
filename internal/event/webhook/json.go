package webhook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/pullet/pullet/internal/safetext"
)

// How deep objects and lists may stand in each other: in what is read for a few of its fields, and in what becomes the
// data of an event, around which others of a record come.
const (
	maxDepth     = 32
	maxDataDepth = 10
)

// decode reads a body that is not too deep.
func decode(body []byte, deepest int, into any) error {
	if err := checkDepth(body, deepest); err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("the body is not as expected: %s", safetext.Line(err.Error(), 200))
	}
	return nil
}

// checkDepth reads a body token by token, which takes no more stack for what is deeper.
func checkDepth(body []byte, deepest int) error {
	depth := 0
	for d := json.NewDecoder(bytes.NewReader(body)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) && depth == 0 {
			return nil
		}
		if err != nil {
			return errors.New("the body is no JSON: have the sender use the content type application/json")
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			if depth++; depth > deepest {
				return fmt.Errorf("the body is deeper than %d levels", deepest)
			}
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
	}
}
