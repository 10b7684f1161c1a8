package metrics

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/prometheus/common/expfmt"

	"github.com/pullet/pullet/apply/hostfile"
)

// CheckTextfile is what is wrong with the name of a file for node exporter.
func CheckTextfile(file string) error {
	switch {
	case file == "":
		return nil
	case !filepath.IsAbs(file):
		return fmt.Errorf("%s: give an absolute path, such as /var/lib/prometheus/node-exporter/pullet.prom", file)
	case filepath.Ext(file) != ".prom":
		return fmt.Errorf("%s: node exporter reads only files whose names end in .prom", file)
	}
	return nil
}

// WriteTextfile replaces a file for the textfile collector of node exporter as a whole. Its directory is there, and may
// belong to another user: nothing that he puts there is followed, read or changed.
func WriteTextfile(file string, v View) error {
	if err := writeTextfile(file, v); err != nil {
		return fmt.Errorf("metrics are not written to %s: %w", file, err)
	}
	return nil
}

func writeTextfile(file string, v View) (err error) {
	all, err := Registry(func() View { return v }).Gather()
	if err != nil {
		return err
	}
	at, err := hostfile.Root("/").Entry(file)
	if err != nil {
		return err
	}
	defer at.Close()
	if !at.HasParent() {
		return errors.New("there is no such directory: install prometheus-node-exporter, or make it")
	}
	c, err := at.Candidate()
	if err != nil {
		return err
	}
	defer c.Drop()
	encode := expfmt.NewEncoder(c, expfmt.NewFormat(expfmt.TypeTextPlain))
	for _, f := range all {
		if err := encode.Encode(f); err != nil {
			return err
		}
	}
	if err := c.Set(hostfile.Attributes{UID: -1, GID: -1, Mode: 0o644, SetMode: true}); err != nil {
		return err
	}
	return c.Place()
}
