package offer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/render"
)

// Check asks whether a service that this host offers works. Its error says why not.
func Check(ctx context.Context, h *apply.Host, o render.Offer) error {
	c := o.Check
	if c == nil {
		return nil
	}
	limit := c.Timeout.Std()
	if limit == 0 {
		limit = checkTime
	}
	asking, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := ask(asking, h, o)
	if asking.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("%s: no answer within %s", what(o), limit)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what(o), err)
	}
	return nil
}

// checkTime is how long a check may take that does not say.
const checkTime = 5 * time.Second

func ask(ctx context.Context, h *apply.Host, o render.Offer) error {
	switch {
	case o.Check.TCP != 0:
		return connect(ctx, net.JoinHostPort(o.Instance().Address, strconv.Itoa(o.Check.TCP)))
	case o.Check.HTTP != "":
		return get(ctx, checkURL(o))
	}
	out, err := h.Run(ctx, apply.Command{Args: apply.Shell(o.Check.Cmd), Quiet: true, Theirs: "check"})
	if err == nil && out.ExitCode != 0 {
		err = errors.New(out.Failure())
	}
	return err
}

// what names the check for messages.
func what(o render.Offer) string {
	switch {
	case o.Check.TCP != 0:
		return "tcp " + strconv.Itoa(o.Check.TCP)
	case o.Check.HTTP != "":
		return "http " + o.Check.HTTP
	}
	return o.Check.Cmd
}

// checkURL is what http asks: a path is one at the announced address and port.
func checkURL(o render.Offer) string {
	if !strings.HasPrefix(o.Check.HTTP, "/") {
		return o.Check.HTTP
	}
	return "http://" + net.JoinHostPort(o.Instance().Address, strconv.Itoa(o.Port)) + o.Check.HTTP
}
