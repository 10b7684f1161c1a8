package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// runTerminal is the program of scripts that runs a command on a terminal: tty COLUMNS COMMAND... prints what the
// terminal was sent. Its input is what is typed there, signals that end it go to the command, and SIGHUP makes the
// terminal 60 columns wide. It is an error when the command leaves the terminal otherwise than it was.
func runTerminal() {
	code, err := onTerminal(os.Args[1:], os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "tty:", err)
		os.Exit(125)
	}
	os.Exit(code)
}

func onTerminal(args []string, out io.Writer) (code int, err error) {
	if len(args) < 2 {
		return 0, errors.New("usage: tty COLUMNS COMMAND...")
	}
	columns, err := strconv.Atoi(args[0])
	if err != nil {
		return 0, err
	}
	screen, line, err := openTerminal(columns, 50)
	if err != nil {
		return 0, err
	}
	defer screen.Close()
	was, err := unix.IoctlGetTermios(int(line.Fd()), unix.TCGETS)
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(args[1], args[2:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = line, line, line
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, unix.SIGTERM, unix.SIGHUP)
	go passOn(signals, screen, cmd.Process)
	go func() { _, _ = io.Copy(screen, os.Stdin) }()
	if err := line.Close(); err != nil { // the command has its own: the last one that is closed ends the reading
		return 0, err
	}
	if _, err := io.Copy(out, screen); err != nil && !errors.Is(err, unix.EIO) { // nobody writes any longer
		return 0, err
	}
	if now, err := unix.IoctlGetTermios(int(screen.Fd()), unix.TCGETS); err != nil || *now != *was {
		return 0, fmt.Errorf("the command leaves the terminal as %+v, which was %+v (%v)", now, was, err)
	}
	var ended *exec.ExitError
	if err := cmd.Wait(); errors.As(err, &ended) {
		return ended.ExitCode(), nil
	} else if err != nil {
		return 0, err
	}
	return 0, nil
}

// passOn gives signals to the command on a terminal.
func passOn(signals <-chan os.Signal, screen *os.File, to *os.Process) {
	for got := range signals {
		if got == unix.SIGHUP {
			got = unix.SIGWINCH
			_ = unix.IoctlSetWinsize(int(screen.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 30, Col: 60}) // seen by the script
		}
		_ = to.Signal(got) // it may have ended
	}
}

// openTerminal is a terminal with so many columns and rows, which changes nothing of what it is sent: the side of the
// screen, and that of programs.
func openTerminal(columns, rows int) (screen, line *os.File, err error) {
	if screen, err = os.OpenFile("/dev/ptmx", os.O_RDWR, 0); err != nil {
		return nil, nil, err
	}
	fd := int(screen.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return nil, nil, err
	}
	number, err := unix.IoctlGetUint32(fd, unix.TIOCGPTN)
	if err != nil {
		return nil, nil, err
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(rows), Col: uint16(columns)}); err != nil {
		return nil, nil, err
	}
	if line, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		return nil, nil, err
	}
	_, err = term.MakeRaw(int(line.Fd()))
	return screen, line, err
}
