package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/pullet/pullet/internal/secrets"
	"github.com/pullet/pullet/internal/trust"
	"github.com/pullet/pullet/render"
)

func secretsCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "secrets", GroupID: "repo", Args: noArgs,
		Short: "Edit encrypted files, and see who can read them",
		Long: "Files vars/NAME.yaml.age hold variables, files/NAME.age files; both are encrypted with age for the hosts\n" +
			"and people that secrets.yaml names:\n" +
			"\n" +
			"  hosts:  {db1: ssh-ed25519 AAAA...}          # ssh-keyscan -t ed25519 db1\n" +
			"  people: {ada: age1...}                      # or an SSH key: ssh-ed25519 or ssh-rsa\n" +
			"  files:\n" +
			"    'vars/db.yaml.age': {targets: [role=db], people: [ada]}\n" +
			"\n" +
			"A host opens them with its SSH host key. You open them with ~/.ssh/id_ed25519 or ~/.ssh/id_rsa, or with the\n" +
			"keys of --identity: OpenSSH keys, or files of age-keygen.",
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	s := &secretsCmd{app: a}
	f := c.PersistentFlags()
	f.StringVar(&s.dir, "dir", ".", "the state repository")
	f.StringArrayVarP(&s.identities, "identity", "i", nil, "a file with a private key; several times for several")
	c.AddCommand(s.editCommand(), s.showCommand(), s.whoCommand(), s.rekeyCommand())
	return c
}

// secretsCmd is pullet secrets.
type secretsCmd struct {
	*app
	dir        string
	identities []string
}

// rules are those of the repository.
func (s *secretsCmd) rules(ctx context.Context) (*secrets.Rules, error) {
	repo, _, err := openDir(ctx, []string{s.dir})
	if err != nil {
		return nil, err
	}
	return secrets.Read(repo, repo.Layers()[0])
}

// keys are those that a file is encrypted for. Each of its readers needs one.
func (s *secretsCmd) keys(rules *secrets.Rules, name string) ([]trust.Recipient, error) {
	readers, err := rules.Readers(name)
	if err != nil {
		return nil, err
	}
	var lacking render.ErrorList
	for _, r := range readers {
		if len(r.Keys) == 0 {
			lacking = append(lacking, rules.NoKey(name, r))
		}
	}
	keys := secrets.Keys(readers)
	if len(keys) == 0 && len(lacking) == 0 {
		return nil, fmt.Errorf("nobody may read %s: its targets match no host below nodes/, and it names no people", name)
	}
	return keys, lacking.Err()
}

// open decrypts a file of the repository.
func (s *secretsCmd) open(name string) ([]byte, error) {
	sealed, err := s.read(name)
	if err != nil {
		return nil, err
	}
	ids, files, err := s.ownKeys()
	if err != nil {
		return nil, err
	}
	text, err := trust.Unseal(sealed, ids)
	if errors.Is(err, trust.ErrNotRecipient) {
		return nil, fmt.Errorf("%s: none of your keys opens it (%s): name another with --identity FILE, or ask a reader: "+
			"pullet secrets who %[1]s", name, strings.Join(files, ", "))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return text, nil
}

// ownKeys are the keys of whoever runs the command, and the files that they are in.
func (s *secretsCmd) ownKeys() (out []trust.Identity, files []string, err error) {
	files = s.identities
	if len(files) == 0 {
		if files, err = userKeys(); err != nil {
			return nil, nil, err
		}
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, nil, err
		}
		ids, err := trust.ParseIdentities(trust.File{Name: file, Content: text}, s.passphrase(file))
		if err != nil {
			return nil, nil, err
		}
		out = append(out, ids...)
	}
	return out, files, nil
}

// userKeys are the files of a user's keys that are there.
func userKeys() ([]string, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, err
	}
	var out []string
	for _, name := range []string{"id_ed25519", "id_rsa"} {
		file := filepath.Join(home, ".ssh", name)
		if _, err := os.Stat(file); err == nil {
			out = append(out, file)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf(
			"you have no key: there is no %s/.ssh/id_ed25519 or id_rsa; name one with --identity FILE, or make "+
				"one with ssh-keygen -t ed25519",
			home,
		)
	}
	return out, nil
}

// passphrase asks for that of a key, where somebody can type it.
func (s *secretsCmd) passphrase(file string) func() ([]byte, error) {
	return func() ([]byte, error) {
		tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
		if err != nil {
			return nil, fmt.Errorf("%s has a passphrase, and there is no terminal to type it", file)
		}
		defer tty.Close()
		fmt.Fprintf(s.err, "Passphrase of %s: ", file)
		text, err := term.ReadPassword(int(tty.Fd()))
		fmt.Fprintln(s.err)
		return text, err
	}
}

// read is an encrypted file as it stands there. A link that leads out of the repository is not followed.
func (s *secretsCmd) read(name string) ([]byte, error) {
	root, err := os.OpenRoot(s.dir + "/.")
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.ReadFile(name)
}

// put writes an encrypted file, whole. Under sudo it belongs to whom the repository belongs.
func (s *secretsCmd) put(name string, text []byte, keys []trust.Recipient) error {
	sealed, err := trust.Seal(text, keys)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(s.dir + "/.")
	if err != nil {
		return err
	}
	defer root.Close()
	if target, err := root.Readlink(name); err == nil {
		return fmt.Errorf("%s is a symbolic link to %s; hint: name the file that it leads to", name, target)
	}
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	beside := name + ".tmp"
	f, err := root.OpenFile(beside, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(sealed)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = ownedLikeTop(root, beside)
	}
	if err == nil {
		err = root.Rename(beside, name)
	}
	if err != nil {
		return errors.Join(err, root.Remove(beside))
	}
	return nil
}

func (s *secretsCmd) showCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show PATH", Args: arguments(cobra.ExactArgs(1)),
		Short: "Decrypt a file, to standard output",
		RunE: func(_ *cobra.Command, args []string) error {
			if err := secrets.CheckPath(args[0]); err != nil {
				return usage(err)
			}
			text, err := s.open(args[0])
			if err != nil {
				return err
			}
			if terminal(s.out) {
				_, err = s.out.Write(text)
				return err
			}
			_, err = ownWriter{s.out}.Write(text) // for a program, byte by byte
			return err
		},
	}
}
