package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/pullet/pullet/apply/action/extension"
	"github.com/pullet/pullet/internal/ownfile"
	"github.com/pullet/pullet/internal/trust"
)

// extensionHost is this host for the actions that a repository brings itself.
func (c *compiler) extensionHost() extension.Host {
	return extension.Host{
		Dir:     filepath.Join(c.config.Paths.State, "extensions"),
		Signers: sync.OnceValues(c.config.ExtensionSigners),
		Record:  c.publishedExtension,
	}
}

// ExtensionSigners are the keys that may sign extensions for this host. Its own configuration alone says where they
// are: a repository cannot vouch for itself. It is an error where it names none.
func (c *Config) ExtensionSigners() (*trust.Keys, error) {
	file := c.Extensions.AllowedSigners
	if file == "" {
		return nil, fmt.Errorf(
			"its manifest has a signature, and %s does not say whose count on this host: "+
				"write extensions: {allowedSigners: FILE} into it",
			cmp.Or(c.file, string(DefaultConfig)),
		)
	}
	text, err := ownfile.Read(file)
	if err != nil {
		return nil, fmt.Errorf("extensions.allowedSigners: %w", err)
	}
	keys, err := trust.ReadKeys(trust.File{}, trust.File{Name: file, Content: text})
	if _, hasName := errors.AsType[*trust.LineError](err); err != nil && !hasName {
		err = fmt.Errorf("%s: %w", file, err)
	}
	if err != nil {
		return nil, fmt.Errorf("extensions.allowedSigners: %w", err)
	}
	return keys, nil
}

// publishedExtension is an executable that an operator put into the fleet's record.
func (c *compiler) publishedExtension(ctx context.Context, digest string) ([]byte, error) {
	if c.store == nil {
		return nil, errors.New("the fleet's record is away, and this host has no copy: the next pull tries again")
	}
	content, err := c.store.Extensions.Content(ctx, digest)
	return content, c.store.Explain(err)
}
