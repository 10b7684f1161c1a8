package main

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pullet/pullet/internal/secrets"
	"github.com/pullet/pullet/internal/trust"
	"github.com/pullet/pullet/puller"
	"github.com/pullet/pullet/render"
)

// secretReader is a reader of an encrypted file.
type secretReader struct {
	File string `json:"file"`
	Name string `json:"name"`
	Kind string `json:"kind"` // host, person, or unnamed: a key that secrets.yaml does not name for the file
	Can  string `json:"can"`  // yes; no: it is not encrypted for a key; unknown: a header does not name age keys
}

func (s *secretsCmd) whoCommand() *cobra.Command {
	return &cobra.Command{
		Use: "who [PATH]", Args: upToOne,
		Short: "Who may read encrypted files, and for whom they are encrypted",
		Long: "Who lists the hosts and people that secrets.yaml names as readers of a file, or of all files, and whether\n" +
			"the file is encrypted for them. It needs no key. The header of a file names SSH keys; of age keys it says\n" +
			"only how many there are.",
		RunE: func(cmd *cobra.Command, args []string) error {
			rules, err := s.rules(cmd.Context())
			if err != nil {
				return err
			}
			files, err := filesOf(rules, args)
			if err != nil {
				return err
			}
			list := []secretReader{}
			for _, name := range files {
				of, err := s.readersOf(rules, name)
				if err != nil {
					return err
				}
				list = append(list, of...)
			}
			return s.printReaders(list)
		},
	}
}

// filesOf are the files that a command names, or all encrypted ones.
func filesOf(rules *secrets.Rules, args []string) ([]string, error) {
	if len(args) > 0 {
		return args, nil
	}
	return rules.Files()
}

func (s *secretsCmd) readersOf(rules *secrets.Rules, name string) ([]secretReader, error) {
	if err := secrets.CheckPath(name); err != nil {
		return nil, usage(err)
	}
	header, err := s.header(name)
	if err != nil {
		return nil, err
	}
	readers, err := rules.Readers(name)
	var none *secrets.NoRuleError
	if err != nil && !errors.As(err, &none) {
		return nil, err
	}
	var out []secretReader
	for _, r := range readers {
		one := secretReader{name, r.Name, "person", canRead(header, r)}
		if r.Host {
			one.Kind = "host"
		}
		out = append(out, one)
	}
	if others := header.Others(secrets.Keys(readers)); others > 0 {
		out = append(out, secretReader{name, count(others, "other key"), "unnamed", "yes"})
	}
	return out, nil
}

// header is that of an encrypted file.
func (s *secretsCmd) header(name string) (trust.Readers, error) {
	sealed, err := s.read(name)
	if err != nil {
		return nil, err
	}
	header, err := trust.ReadersOf(sealed)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return header, nil
}

// canRead says whether a file is encrypted for a reader.
func canRead(header trust.Readers, r secrets.Reader) string {
	out := "no"
	for _, key := range r.Keys {
		switch has, sure := header.Has(key); {
		case has && key.IsSSH():
			return "yes"
		case has || !sure:
			out = "unknown"
		}
	}
	return out
}

func (s *secretsCmd) printReaders(list []secretReader) error {
	if done, err := s.structured(list); done || err != nil {
		return err
	}
	w := columns(s.out)
	fmt.Fprintln(w, "FILE\tREADER\tKIND\tENCRYPTED FOR IT")
	for _, r := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r.File, r.Name, r.Kind, r.Can)
	}
	return w.Flush()
}

func (s *secretsCmd) rekeyCommand() *cobra.Command {
	return &cobra.Command{
		Use: "rekey [PATH...]", Args: cobra.ArbitraryArgs,
		Short: "Encrypt files again, for the readers that secrets.yaml names now",
		Long: "Rekey decrypts files and encrypts them for their readers of now; without a path, those whose readers\n" +
			"changed. Use it when a host or a person came or went, and to replace keys. What somebody could read\n" +
			"before stays readable in the history of the repository: rekey names them, and the values have to be\n" +
			"changed.",
		RunE: func(cmd *cobra.Command, args []string) error {
			rules, err := s.rules(cmd.Context())
			if err != nil {
				return err
			}
			files, err := filesOf(rules, args)
			if err != nil {
				return err
			}
			for _, name := range files {
				if err := s.rekey(rules, name, len(args) > 0); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// rekey encrypts one file again; unless always is set, only if its readers changed.
func (s *secretsCmd) rekey(rules *secrets.Rules, name string, always bool) error {
	if err := secrets.CheckPath(name); err != nil {
		return usage(err)
	}
	keys, err := s.keys(rules, name)
	if err != nil {
		return err
	}
	header, err := s.header(name)
	if err != nil {
		return err
	}
	former, err := s.former(name, header, keys)
	if err != nil {
		return err
	}
	if !always && header.Fits(keys) && len(former) == 0 {
		fmt.Fprintf(s.out, "%s: unchanged\n", name)
		return nil
	}
	text, err := s.open(name)
	if err != nil {
		return err
	}
	if err := s.put(name, text, keys); err != nil {
		return err
	}
	fmt.Fprintf(s.out, "%s: encrypted for %s\n", name, count(len(keys), "key"))
	if mine, _, err := s.ownKeys(); err == nil && !anyOf(mine, keys) {
		s.warn("%s is encrypted for none of your keys: you cannot read it any more", name)
	}
	if len(former) == 0 && header.Others(keys) > 0 {
		former = []string{"whoever has the " + count(header.Others(keys), "other key")}
	}
	if len(former) > 0 {
		s.warn("%s could be read by %s, and still can from the history of the repository: change its values, "+
			"pullet secrets edit %[1]s", name, strings.Join(former, ", "))
	}
	return nil
}

// anyOf reports that one of the private keys opens what is encrypted for these.
func anyOf(ids []trust.Identity, keys []trust.Recipient) bool {
	return slices.ContainsFunc(ids, func(id trust.Identity) bool {
		return slices.ContainsFunc(keys, func(key trust.Recipient) bool { return key.Text == id.Recipient.Text })
	})
}

// former are those that the last commit let read a file, and who may not any more.
func (s *secretsCmd) former(name string, header trust.Readers, keys []trust.Recipient) ([]string, error) {
	was, err := puller.Committed(s.dir, render.SecretsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return secrets.Former(was, name, header, keys)
}
