package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// userEditor is the editor that a user wants, as the shell runs it.
type userEditor struct {
	command string
	options []string // beside those that the user gave
}

// usersEditor finds the user's editor, as git and others do.
func usersEditor() (userEditor, error) {
	command := cmp.Or(strings.TrimSpace(os.Getenv("VISUAL")), strings.TrimSpace(os.Getenv("EDITOR")))
	for _, name := range []string{"editor", "vi", "nano"} {
		if _, err := exec.LookPath(name); command == "" && err == nil {
			command = name
		}
	}
	if command == "" {
		return userEditor{}, errors.New("there is no editor: set EDITOR to one, such as EDITOR=nano")
	}
	return userEditor{command, vimOptions(command)}, nil
}

// on edits a file. The command may have arguments, and quotes in them, so a shell reads it, which an interrupt does not
// end before the editor.
func (e userEditor) on(path string) *exec.Cmd {
	args := append([]string{"-c", "trap : INT QUIT\n" + e.command + ` "$@"`, e.command}, e.options...)
	return exec.Command("/bin/sh", append(args, path)...)
}

// vimOptions keep a vim from what it would write elsewhere: its history, which has deleted and copied lines, and files
// for undo, swap and backup, which a user may have it keep in one directory. They come after the user's settings (-c),
// so that they win. Other editors write beside the file, unless a user told them otherwise, which is not undone here.
//
// A name does not tell a vim: vi may be one, or that of busybox or BSD, whose options mean something else, or a script.
// So what could be a vim is asked. What is not says no such thing, and gets no options.
func vimOptions(command string) []string {
	program := strings.Fields(command)[0]
	path, err := exec.LookPath(program)
	if err != nil || !namedAsVim(program) && !namedAsVim(resolved(path)) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	ask := exec.CommandContext(ctx, path, "--version")
	ask.WaitDelay = time.Second
	version, _ := ask.Output() // one that fails is no vim
	history := ""
	switch {
	case bytes.HasPrefix(version, []byte("VIM - Vi IMproved")):
		history = "viminfo="
	case bytes.HasPrefix(version, []byte("NVIM")):
		history = "shada="
	default:
		return nil
	}
	return []string{"-n", "-i", "NONE", "-c", "set noswapfile nobackup nowritebackup noundofile " + history}
}

// resolved is where links lead, such as /etc/alternatives/editor.
func resolved(path string) string {
	if to, err := filepath.EvalSymlinks(path); err == nil {
		return to
	}
	return path
}

// namedAsVim reports that a program may be a vim: vim.basic is one, of Debian.
func namedAsVim(path string) bool {
	name, _, _ := strings.Cut(filepath.Base(path), ".")
	return slices.Contains([]string{"vim", "vi", "nvim", "view", "rvim", "rview", "vimx"}, name)
}
