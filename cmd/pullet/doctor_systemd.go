package main

import (
	"context"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"
)

// bus checks that services can be managed.
func (a doctorCmd) bus(ctx context.Context) finding {
	if a.rootDir != "/" {
		return finding{Check: "systemd", State: fine, What: "not asked: everything is applied below " + a.rootDir}
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, err := dbus.NewWithContext(ctx)
	if err != nil {
		return finding{
			"systemd",
			warn,
			"its bus does not answer: " + err.Error(),
			"steps that manage services fail; is systemd the first process, and the user root?",
		}
	}
	defer conn.Close()
	if unit := enabledUnit(a.rootDir); unit == timerUnit || unit == agentUnit {
		if is := activeState(ctx, conn, unit); is == "inactive" || is == "failed" {
			return finding{"systemd", warn, unit + " is enabled but " + is + ": nothing pulls until the next boot",
				"systemctl start " + unit + "; journalctl -u " + unit}
		}
	}
	return finding{Check: "systemd", State: fine, What: "its bus answers"}
}

// activeState is how a unit is in systemd's words; "" where it does not say so.
func activeState(ctx context.Context, conn *dbus.Conn, unit string) string {
	is, err := conn.GetUnitPropertyContext(ctx, unit, "ActiveState")
	if err != nil {
		return ""
	}
	text, _ := is.Value.Value().(string)
	return text
}
