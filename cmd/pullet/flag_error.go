package main

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/pflag"
)

// flagError says what is wrong with a flag, and how it is written.
func flagError(err error) error {
	var bad *pflag.InvalidValueError
	if !errors.As(err, &bad) || bad.GetFlag().Value.Type() != "duration" {
		return err
	}
	flag, value := bad.GetFlag().Name, bad.GetValue()
	if _, number := strconv.ParseFloat(value, 64); number == nil {
		return fmt.Errorf("--%s %s has no unit: write --%s %ss, or %sm, or %sh", flag, value, flag, value, value, value)
	}
	return fmt.Errorf("--%s %q is no time: write one such as 30s, 10m or 1h30m", flag, value)
}
