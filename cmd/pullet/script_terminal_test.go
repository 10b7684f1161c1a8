package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// runTerminal is the program of scripts that runs a command on a terminal: tty COLUMNS COMMAND... prints what the
// terminal was sent.
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
	screen, line, err := openTerminal(columns)
	if err != nil {
		return 0, err
	}
	defer screen.Close()
	cmd := exec.Command(args[1], args[2:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = line, line, line
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	if err := line.Close(); err != nil { // the command has its own: the last one that is closed ends the reading
		return 0, err
	}
	if _, err := io.Copy(out, screen); err != nil && !errors.Is(err, unix.EIO) { // nobody writes any longer
		return 0, err
	}
	var ended *exec.ExitError
	if err := cmd.Wait(); errors.As(err, &ended) {
		return ended.ExitCode(), nil
	} else if err != nil {
		return 0, err
	}
	return 0, nil
}

// openTerminal is a terminal with so many columns, which changes nothing of what it is sent: the side of the screen,
// and that of programs.
func openTerminal(columns int) (screen, line *os.File, err error) {
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
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: uint16(columns)}); err != nil {
		return nil, nil, err
	}
	if line, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		return nil, nil, err
	}
	_, err = term.MakeRaw(int(line.Fd()))
	return screen, line, err
}
