package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	commandLine = "cmd/pullet"
	module      = "github.com/pullet/pullet/"
)

// touched says which scripts of the command line run a line.
type touched struct {
	mu     sync.Mutex
	blocks map[string][]block // by file
	limit  time.Duration
}

// block is a run of lines that a script ran.
type block struct {
	from, to int
	script   string
}

// by is the pattern of the scripts that run a mutant's line, "" where none does.
func (t *touched) by(m *mutant) string {
	var names []string
	for _, b := range t.blocks[m.file] {
		if b.from <= m.endLine && m.line <= b.to && !slices.Contains(names, b.script) {
			names = append(names, b.script)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "^TestScripts$/^(" + strings.Join(names, "|") + ")$"
}

// scripts runs each script alone, to see what it covers: the processes that it starts are covered as well.
func (b *bench) scripts(ctx context.Context) (*touched, error) {
	var packages []string
	for _, pkg := range core {
		packages = append(packages, module+pkg)
	}
	program, err := b.build(ctx, commandLine, nil, "-cover", "-coverpkg", strings.Join(packages, ","))
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(commandLine, "testdata/script/*.txtar"))
	if err != nil {
		return nil, err
	}
	t, began := &touched{blocks: map[string][]block{}}, time.Now()
	var running sync.WaitGroup
	errs, free := make([]error, len(files)), make(chan struct{}, 4) // scripts wait more than they compute
	for i, file := range files {
		free <- struct{}{}
		running.Go(func() {
			errs[i] = b.cover(ctx, program, strings.TrimSuffix(filepath.Base(file), ".txtar"), t)
			<-free
		})
	}
	running.Wait()
	t.limit = 3*time.Since(began) + 30*time.Second
	return t, errors.Join(errs...)
}

// cover adds what a script runs. One that fails cannot tell anything of mutants.
func (b *bench) cover(ctx context.Context, program, script string, t *touched) error {
	dir, err := os.MkdirTemp(b.dir, "cover")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	failed, err := b.test(ctx, program, commandLine, "^TestScripts$/^"+script+"$", 5*time.Minute, "GOCOVERDIR="+dir)
	if err != nil {
		return err
	}
	if failed != "" {
		fmt.Fprintf(os.Stderr, "the script %s is left out: it fails without a mutant\n", script)
		return nil
	}
	text := filepath.Join(dir, "profile")
	if out, err := exec.CommandContext(ctx, "go", "tool", "covdata", "textfmt", "-i", dir, "-o", text).CombinedOutput(); err != nil {
		return fmt.Errorf("go tool covdata: %w\n%s", err, out)
	}
	return t.read(text, script)
}

func (t *touched) add(file string, b block) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.blocks[file] = append(t.blocks[file], b)
}

var covered = regexp.MustCompile(`^(\S+):(\d+)\.\d+,(\d+)\.\d+ \d+ [1-9]`)

// read adds the blocks of a profile that ran.
func (t *touched) read(profile, script string) error {
	file, err := os.Open(profile)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if m := covered.FindStringSubmatch(lines.Text()); m != nil {
			one := block{script: script}
			if _, err := fmt.Sscan(m[2]+" "+m[3], &one.from, &one.to); err != nil {
				return err
			}
			t.add(strings.TrimPrefix(m[1], module), one)
		}
	}
	return lines.Err()
}
