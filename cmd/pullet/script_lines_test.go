package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// A script runs one command line after another, and most of the time of a command is the start of its process. So the
// command lines of a script share a process: it gets each of them with its directory and environment, and calls run,
// as main does. It is not the process of the tests, because directory and environment belong to a process and scripts
// run at the same time. A line that ends the process, as a step that kills its parent does, has that end; the next line
// starts another one.

// commandLines is the name of the program that runs the command lines of a script.
const commandLines = "pullet-lines"

// commandLine is one command line.
type commandLine struct {
	Args, Env []string
	Dir       string
	Out, Errs string // the files for its output
}

// runCommandLines is the program of a script: it reads command lines from its standard input and writes their exit
// codes to its standard output, each as a line of JSON.
func runCommandLines() {
	in, out, err := ownStreams()
	if err == nil {
		syscall.Umask(0o022)
		hideMemory()
		err = serveLines(json.NewDecoder(in), json.NewEncoder(out))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, commandLines+":", err)
		os.Exit(1)
	}
}

// ownStreams takes the standard input and output for requests: command lines have others.
func ownStreams() (in, out *os.File, err error) {
	for fd, to := range map[int]**os.File{0: &in, 1: &out} {
		other, err := syscall.Dup(fd)
		if err != nil {
			return nil, nil, err
		}
		syscall.CloseOnExec(other)
		*to = os.NewFile(uintptr(other), "requests")
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, nil, err
	}
	defer null.Close()
	return in, out, syscall.Dup2(int(null.Fd()), 0)
}

func serveLines(in *json.Decoder, out *json.Encoder) error {
	for {
		var line commandLine
		if err := in.Decode(&line); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := line.prepare(); err != nil {
			return err
		}
		if err := out.Encode(run(context.Background(), line.Args, os.Stdout, os.Stderr, nil)); err != nil {
			return err
		}
	}
}

// prepare gives this process the directory, the environment and the output of a command line.
func (l *commandLine) prepare() error {
	os.Clearenv()
	for _, entry := range l.Env {
		name, value, _ := strings.Cut(entry, "=")
		if err := os.Setenv(name, value); err != nil {
			return fmt.Errorf("%s: %w", entry, err)
		}
	}
	for fd, path := range map[int]string{1: l.Out, 2: l.Errs} {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			return err
		}
		err = errors.Join(syscall.Dup2(int(f.Fd()), fd), f.Close())
		if err != nil {
			return err
		}
	}
	return os.Chdir(l.Dir)
}

// lineRunner is the process that runs a script's command lines.
type lineRunner struct {
	dir   string   // of the files for output
	names []string // of the variables that the script may set
	cmd   *exec.Cmd
	zone  string // TZ of the process: Go reads it once
	to    io.WriteCloser
	in    *json.Encoder
	out   *json.Decoder
}

// lineRunnerOf is the key of a script's *lineRunner.
type lineRunnerOf struct{}

// setsVariables matches a line of a script that sets variables.
var setsVariables = regexp.MustCompile(`(?m)^(?:\[[^]]*\] )*(?:env|address) (.*)$`)

// shareProcess lets the command lines of a script share a process. A script that gives them input does not.
func shareProcess(env *testscript.Env) error {
	name := strings.TrimPrefix(filepath.Base(env.WorkDir), "script-")
	text, err := os.ReadFile(filepath.Join("testdata/script", name+".txtar"))
	if err != nil || strings.Contains("\n"+string(text), "\nstdin ") {
		return err
	}
	dir, err := os.MkdirTemp("", "pullet-lines")
	if err != nil {
		return err
	}
	p := &lineRunner{dir: dir, names: []string{"COLLECTOR", "COMMIT", "ETCD", "GIT", "HEAD", "KEEPS", "RECEIVER", "RUN", "WEB"}}
	set := slices.Clone(env.Vars)
	for _, line := range setsVariables.FindAllSubmatch(text, -1) {
		set = append(set, strings.Fields(string(line[1]))...)
	}
	for _, entry := range set {
		name, _, _ := strings.Cut(entry, "=")
		p.names = append(p.names, name)
	}
	env.Values[lineRunnerOf{}] = p
	env.Defer(func() {
		_, err := p.end()
		if err := errors.Join(err, os.RemoveAll(dir)); err != nil {
			env.T().Log(err)
		}
	})
	return nil
}

// start starts the process.
func (p *lineRunner) start(zone string) error {
	path, err := exec.LookPath(commandLines)
	if err != nil {
		return err
	}
	cmd := exec.Command(path)
	cmd.Env = append(os.Environ(), "GOGC=400", "TZ="+zone)
	if zone == "" {
		cmd.Env = cmd.Env[:len(cmd.Env)-1]
	}
	cmd.Stderr = os.Stderr
	to, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	from, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	p.cmd, p.zone, p.to, p.in, p.out = cmd, zone, to, json.NewEncoder(to), json.NewDecoder(from)
	return cmd.Start()
}

// end ends the process, unless it has ended already, and returns its exit code: -1 if a signal ended it.
func (p *lineRunner) end() (code int, err error) {
	if p.cmd == nil {
		return 0, nil
	}
	cmd := p.cmd
	p.cmd = nil
	if err := p.to.Close(); err != nil {
		return 0, err
	}
	late := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
	defer late.Stop()
	if err := cmd.Wait(); err != nil && cmd.ProcessState == nil {
		return 0, err
	}
	return cmd.ProcessState.ExitCode(), nil
}

// run runs a command line and returns its exit code: -1 if a signal ended the process.
func (p *lineRunner) run(line commandLine, zone string) (code int, err error) {
	if p.cmd != nil && p.zone != zone {
		if _, err := p.end(); err != nil {
			return 0, err
		}
	}
	if p.cmd == nil {
		if err := p.start(zone); err != nil {
			return 0, err
		}
	}
	if err := p.in.Encode(line); err != nil {
		return 0, err
	}
	if p.out.Decode(&code) == nil {
		return code, nil
	}
	return p.end()
}

// execute runs a command and returns its exit code, or -1 if a signal ended it: pullet in the program of the script, if
// that has one, and everything else as a process.
func execute(ts *testscript.TestScript, command string, args []string) (code int) {
	if p, shared := ts.Value(lineRunnerOf{}).(*lineRunner); shared && command == "pullet" {
		return p.execute(ts, args)
	}
	err := ts.Exec(command, args...)
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return exit.ExitCode()
	}
	ts.Check(err)
	return 0
}

func (p *lineRunner) execute(ts *testscript.TestScript, args []string) (code int) {
	line := commandLine{Args: args, Dir: ts.MkAbs("."), Out: filepath.Join(p.dir, "stdout"), Errs: filepath.Join(p.dir, "stderr")}
	line.Env = []string{"PWD=" + line.Dir}
	for _, name := range p.names {
		if value := ts.Getenv(name); value != "" {
			line.Env = append(line.Env, name+"="+value)
		}
	}
	ts.Check(os.WriteFile(line.Out, nil, 0o600))
	ts.Check(os.WriteFile(line.Errs, nil, 0o600))
	code, err := p.run(line, ts.Getenv("TZ"))
	ts.Check(err)
	for path, to := range map[string]io.Writer{line.Out: ts.Stdout(), line.Errs: ts.Stderr()} {
		text, err := os.ReadFile(path)
		ts.Check(err)
		_, err = to.Write(text)
		ts.Check(err)
	}
	return code
}
