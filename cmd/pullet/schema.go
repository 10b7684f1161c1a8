package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pullet/pullet/cmd/pullet/fleetnames"
	"github.com/pullet/pullet/internal/reference"
)

func schemaCommand(a *app) *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use: "schema [KIND]", GroupID: "repo", Args: upToOne,
		Short: "Print the JSON Schema of a kind of file, for editors",
		Long: "Schema prints the JSON Schema of a kind of file; without KIND it lists the kinds and the files that\n" +
			"they are for. Editors check and complete a file that names its schema in its first line:\n" +
			"\n" +
			"  # yaml-language-server: $schema=../.pullet/schema/jobs.schema.json\n" +
			"\n" +
			"In a state repository the names of its extensions are known, too: write the schemas again when there\n" +
			"is a new one.",
		Example: "  pullet schema jobs\n  pullet schema --write .pullet/schema",
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case dir != "" && len(args) > 0:
				return &exit{exitUsage, fmt.Errorf("--write writes all kinds: leave %s out", args[0])}
			case dir != "":
				return writeSchemas(cmd.Context(), dir)
			case len(args) == 0:
				return listKinds(a)
			}
			schemas, err := reference.Schemas(extensionNames(cmd.Context())...)
			if err != nil {
				return err
			}
			schema, ok := schemas[args[0]]
			if !ok {
				kinds := slices.Sorted(maps.Keys(schemas))
				return fmt.Errorf(
					"there is no kind of file %q%s; use %s",
					args[0],
					fleetnames.Suggestion(args[0], kinds),
					strings.Join(kinds, ", "),
				)
			}
			if a.output == "yaml" {
				return printYAML(a.out, schema)
			}
			text, err := schemaText(schema)
			if err != nil {
				return err
			}
			_, err = a.out.Write(text)
			return err
		},
	}
	c.Flags().StringVar(&dir, "write", "", "write all schemas into this directory, as KIND.schema.json")
	return c
}

// kindNames are the kinds of files, for completion.
func kindNames(context.Context, []string, string) ([]string, error) {
	var out []string
	for _, k := range reference.Kinds() {
		out = append(out, k.Name)
	}
	return out, nil
}

// extensionNames are the actions that the repository in the current directory brings itself.
func extensionNames(ctx context.Context) []string {
	var out []string
	for _, e := range extensionsHere(ctx) {
		out = append(out, e.Name)
	}
	return out
}

// fileKind is a kind of file for programs.
type fileKind struct {
	Kind     string `json:"kind"`
	Files    string `json:"files"`
	Template bool   `json:"template"`
}

func listKinds(a *app) error {
	var list []fileKind
	for _, k := range reference.Kinds() {
		list = append(list, fileKind{k.Name, k.Files, k.Template})
	}
	if done, err := a.structured(list); done || err != nil {
		return err
	}
	t := columns(a.out)
	fmt.Fprintln(t, "KIND\tFILES")
	for _, k := range list {
		fmt.Fprintf(t, "%s\t%s\n", k.Kind, k.Files)
	}
	return t.Flush()
}

// schemaText is a schema as it is written.
func schemaText(schema map[string]any) ([]byte, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	err := enc.Encode(schema)
	return []byte(b.String()), err
}

// writeSchemas writes the schemas of all kinds into a directory, over those of another version of pullet.
func writeSchemas(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	schemas, err := reference.Schemas(extensionNames(ctx)...)
	if err != nil {
		return err
	}
	for kind, schema := range schemas {
		text, err := schemaText(schema)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, kind+".schema.json"), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
