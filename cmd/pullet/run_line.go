package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/pullet/pullet/internal/safetext"
)

// misplaced is what is wrong with a command line of run that has arguments before its --, or no --.
func misplaced(target string, args []string, before int) error {
	if before < 0 && expanded(target) == "" {
		if target == "" {
			target = "TARGET"
		}
		words := make([]string, len(args))
		for i, arg := range args {
			words[i] = safetext.ShellWord(arg)
		}
		return usage(
			fmt.Errorf(
				"there is no -- before the command: write pullet run --target %s -- %s",
				safetext.ShellWord(target),
				strings.Join(words, " "),
			),
		)
	}
	if hint := expanded(append([]string{target}, args[:max(0, before)]...)...); hint != "" {
		return usage(fmt.Errorf("the command has to stand behind --%s", hint))
	}
	return usage(
		fmt.Errorf(
			"%q stands before --: put the whole command behind it; a list of targets is one word with commas, and --wait "+
				"takes no time",
			args[0],
		),
	)
}

// expanded says that the shell may have made a target: it replaces web* without quotes by the names of the files here
// that match.
func expanded(words ...string) string {
	for _, word := range words {
		if _, err := os.Lstat(word); word != "" && err == nil {
			return fmt.Sprintf(
				"; %q is the name of a file here: where you wrote a star, the shell replaced it, so put the target in quotes, "+
					"such as --target 'web*'",
				word,
			)
		}
	}
	return ""
}
