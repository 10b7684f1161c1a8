package systemd

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	systemd "github.com/coreos/go-systemd/v22/dbus"
	"github.com/godbus/dbus/v5"

	"github.com/pullet/pullet/apply/hostfile"
)

// systemBus is the way to units over systemd's own bus.
type systemBus struct {
	systemctl // for what the bus cannot do
	conn      *systemd.Conn
	raw       *dbus.Conn // one of the two below conn
}

// dialTime is how long a bus may take to answer at all.
const dialTime = 10 * time.Second

// connect opens the bus: for root the private one, as systemctl does, which is there without and before a bus daemon.
// It closes when ctx ends.
func (b *systemBus) connect(ctx context.Context) error {
	ways := []func(context.Context) (*dbus.Conn, error){dialSystem}
	if os.Geteuid() == 0 {
		ways = []func(context.Context) (*dbus.Conn, error){dialPrivate, dialSystem}
	}
	var errs []error
	for _, dial := range ways {
		b.raw = nil
		conn, err := systemd.NewConnection(func() (*dbus.Conn, error) {
			c, err := inTime(ctx, dial)
			if b.raw == nil {
				b.raw = c
			}
			return c, err
		})
		if err == nil {
			b.conn = conn
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// inTime dials, and gives up when nothing answers. The connection lives as long as ctx.
func inTime(ctx context.Context, dial func(context.Context) (*dbus.Conn, error)) (*dbus.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	give := time.AfterFunc(dialTime, cancel)
	conn, err := dial(ctx)
	if !give.Stop() || err != nil {
		cancel()
		return nil, errors.Join(err, ctx.Err())
	}
	context.AfterFunc(conn.Context(), cancel) // nothing is left of it when it is closed
	return conn, nil
}

func dialPrivate(ctx context.Context) (*dbus.Conn, error) {
	return authenticate(dbus.Dial("unix:path=/run/systemd/private", dbus.WithContext(ctx)))
}

func dialSystem(ctx context.Context) (*dbus.Conn, error) {
	conn, err := authenticate(dbus.SystemBusPrivate(dbus.WithContext(ctx)))
	if err != nil {
		return nil, err
	}
	if err := conn.Hello(); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

func authenticate(conn *dbus.Conn, err error) (*dbus.Conn, error) {
	if err != nil {
		return nil, err
	}
	if err := conn.Auth([]dbus.Auth{dbus.AuthExternal(strconv.Itoa(os.Geteuid()))}); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

func (b *systemBus) close() { b.conn.Close() }

// alive connects anew when the connection was lost: systemd was upgraded, or the bus restarted.
func (b *systemBus) alive(ctx context.Context) error {
	if b.conn.Connected() {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	b.conn.Close()
	return b.connect(ctx)
}

func (b *systemBus) show(ctx context.Context, name string) (map[string]string, error) {
	if err := b.alive(ctx); err != nil {
		return nil, err
	}
	all, err := b.conn.GetAllPropertiesContext(ctx, name)
	if err != nil {
		return nil, busError(err)
	}
	p := map[string]string{}
	for _, key := range unitProperties {
		if v, ok := all[key]; ok {
			p[key] = propertyText(v)
		}
	}
	return p, nil
}

// propertyText is a property as systemctl show writes it.
func propertyText(v any) string {
	switch v := v.(type) {
	case bool:
		return map[bool]string{true: "yes", false: "no"}[v]
	case []string:
		return strings.Join(v, " ")
	case []byte:
		return hex.EncodeToString(v)
	case []any: // a job: its number and its path
		if len(v) > 0 {
			return fmt.Sprint(v[0])
		}
		return ""
	}
	return fmt.Sprint(v)
}

// call is for what the library has no function for, or four of one form.
func (b *systemBus) call(ctx context.Context, method string, args ...any) *dbus.Call {
	manager := b.raw.Object("org.freedesktop.systemd1", "/org/freedesktop/systemd1")
	return manager.CallWithContext(ctx, "org.freedesktop.systemd1.Manager."+method, 0, args...)
}

// fileState asks for what is in the files now; the property of the unit is what systemd has read before. A unit that is
// made from a script of SysV has its state elsewhere, where only systemctl finds it.
func (b *systemBus) fileState(ctx context.Context, name string) (string, error) {
	state, err := b.ownState(ctx, name)
	if err == nil && ofSysV(name, state) {
		return b.systemctl.fileState(ctx, name)
	}
	return state, err
}

func (b *systemBus) ownState(ctx context.Context, name string) (string, error) {
	if err := b.alive(ctx); err != nil {
		return "", err
	}
	var state string
	err := b.call(ctx, "GetUnitFileState", name).Store(&state)
	if said, ok := errors.AsType[dbus.Error](err); ok &&
		(strings.HasSuffix(said.Name, "FileNotFound") || strings.HasSuffix(said.Name, "NoSuchUnit")) {
		return "", nil
	}
	return state, busError(err)
}

// ofSysV reports a unit that has no file but a script of SysV.
func ofSysV(name, state string) bool {
	script, service := strings.CutSuffix(name, ".service")
	return service && (state == "" || state == "generated") && hostfile.Exists(path.Join("/etc/init.d", script))
}

func (b *systemBus) files(ctx context.Context) ([]string, error) {
	if err := b.alive(ctx); err != nil {
		return nil, err
	}
	list, err := b.conn.ListUnitFilesContext(ctx)
	var names []string
	for _, f := range list {
		names = append(names, path.Base(f.Path))
	}
	return names, busError(err)
}

// linkChange is what was done to one link.
type linkChange struct{ Type, Link, Target string }

func (b *systemBus) manage(ctx context.Context, verb, name string, runtime bool) (string, error) {
	if err := b.alive(ctx); err != nil {
		return "", err
	}
	switch verb {
	case "daemon-reload":
		return "", busError(b.conn.ReloadContext(ctx))
	case "reset-failed":
		return "", busError(b.conn.ResetFailedUnitContext(ctx, name))
	case "enable", "disable":
		state, err := b.ownState(ctx, name)
		if err != nil {
			return "", err
		}
		if ofSysV(name, state) {
			return b.systemctl.manage(ctx, verb, name, runtime)
		}
	}
	changes, err := b.link(ctx, verb, []string{name}, runtime)
	if err != nil || len(changes) == 0 {
		return "", busError(err)
	}
	var said strings.Builder
	for _, c := range changes {
		switch c.Type {
		case "symlink":
			fmt.Fprintf(&said, "link %s -> %s\n", c.Link, c.Target)
		case "unlink":
			fmt.Fprintf(&said, "removed %s\n", c.Link)
		}
	}
	return strings.TrimSpace(said.String()), busError(b.conn.ReloadContext(ctx)) // systemd reads links only then
}

func (b *systemBus) link(
	ctx context.Context,
	verb string,
	names []string,
	runtime bool,
) (changes []linkChange, err error) {
	switch verb {
	case "enable":
		var installs bool
		err = b.call(ctx, "EnableUnitFiles", names, runtime, false).Store(&installs, &changes)
	case "disable":
		err = b.call(ctx, "DisableUnitFiles", names, runtime).Store(&changes)
	case "mask":
		err = b.call(ctx, "MaskUnitFiles", names, runtime, false).Store(&changes)
	case "unmask":
		err = b.call(ctx, "UnmaskUnitFiles", names, runtime).Store(&changes)
	}
	return changes, err
}

func (b *systemBus) job(ctx context.Context, verb, name string) (string, error) {
	if err := b.alive(ctx); err != nil {
		return "", err
	}
	begin := b.conn.StartUnitContext
	switch verb {
	case "stop":
		begin = b.conn.StopUnitContext
	case "restart":
		begin = b.conn.RestartUnitContext
	case "reload":
		begin = b.conn.ReloadUnitContext
	}
	ended := make(chan string, 1)
	if _, err := begin(ctx, name, "replace", ended); err != nil {
		return "", busError(err)
	}
	return b.wait(ctx, name, ended)
}

// wait waits for the end of a job. Where its signal is lost, as when systemd starts itself anew, the unit tells that
// there is no job any more; how it went, the unit's own state says.
func (b *systemBus) wait(ctx context.Context, name string, ended <-chan string) (string, error) {
	ask := time.NewTicker(time.Second)
	defer ask.Stop()
	for idle := 0; idle < 2; {
		select {
		case result := <-ended:
			return result, nil
		case <-ctx.Done():
			return "", ctx.Err()
		case <-ask.C:
		}
		p, err := b.show(ctx, name)
		switch {
		case err != nil:
			return "", err
		case p["Job"] == "0":
			idle++
		default:
			idle = 0
		}
	}
	return "done", nil
}

// busError is what systemd said, without the names that its bus has for it.
func busError(err error) error {
	said, ok := errors.AsType[dbus.Error](err)
	switch {
	case !ok:
		return err
	case strings.HasSuffix(said.Name, ".AccessDenied") ||
		strings.HasSuffix(said.Name, ".InteractiveAuthorizationRequired"):
		return errNotPermitted
	}
	return errors.New(strings.TrimSuffix(said.Error(), "."))
}
