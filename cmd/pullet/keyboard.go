package main

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// keyboard is the terminal at which a person types while a picture is on it: a key comes at once, and is not shown.
// Ctrl-C stays a signal.
type keyboard struct {
	pressed chan byte
	fd      int
	was     *unix.Termios
}

// openKeyboard is the keyboard behind an input. Without a terminal no key ever comes.
func openKeyboard(in io.Reader) *keyboard {
	k := &keyboard{pressed: make(chan byte)}
	f, ok := in.(*os.File)
	if !ok {
		return k
	}
	k.fd = int(f.Fd())
	was, err := unix.IoctlGetTermios(k.fd, unix.TCGETS)
	if err != nil { // no terminal
		return k
	}
	if group, err := unix.IoctlGetInt(k.fd, unix.TIOCGPGRP); err == nil && group != unix.Getpgrp() {
		return k // another program has the keyboard; who takes it is stopped
	}
	now := *was
	now.Lflag &^= unix.ICANON | unix.ECHO
	now.Cc[unix.VMIN], now.Cc[unix.VTIME] = 1, 0
	now.Cc[unix.VSUSP] = 0 // stopped, it would leave the terminal as it is
	if unix.IoctlSetTermios(k.fd, unix.TCSETS, &now) != nil {
		return k
	}
	k.was = was
	go k.read(f)
	return k
}

// read hands on keys until the process ends.
func (k *keyboard) read(f *os.File) {
	var key [1]byte
	for {
		if n, err := f.Read(key[:]); err != nil || n == 0 {
			return
		}
		k.pressed <- key[0]
	}
}

// close makes the terminal what it was.
func (k *keyboard) close() error {
	if k.was == nil {
		return nil
	}
	return unix.IoctlSetTermios(k.fd, unix.TCSETS, k.was)
}
