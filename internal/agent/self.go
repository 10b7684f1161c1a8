package agent

import (
	"fmt"

	"github.com/pullet/pullet/render"
)

// wrongMachineError says that the configuration is for another machine.
type wrongMachineError struct{ Is, Wants string }

func (e *wrongMachineError) Error() string {
	is := "has the machine id " + e.Is
	if e.Is == "" {
		is = "has no machine id in /etc/machine-id"
	}
	return fmt.Sprintf(
		"node.machineId: this host %s, and its configuration is for the machine %s: if it is a copy of that host, "+
			"give it an id, a name and a configuration of its own (rm /etc/machine-id && systemd-machine-id-setup); "+
			"if it is that host, reinstalled, write its new id",
		is,
		e.Wants,
	)
}

// HostFault is true: the commit has no part in it.
func (e *wrongMachineError) HostFault() bool { return true }

// checkMachine refuses another machine than the one that is pinned.
func (s Self) checkMachine(id string) error {
	if s.MachineID == "" || s.MachineID == id {
		return nil
	}
	return &wrongMachineError{id, s.MachineID}
}

// CheckMachine refuses another machine than the one that the configuration is for.
func (c *Config) CheckMachine() error { return c.Node.checkMachine(machineID(c.Root)) }

// untargetedError says that a host is no host of the repository, neither listed nor matched by a target: it would count
// as up to date without a single step.
type untargetedError struct{ Node render.Node }

func (e *untargetedError) Error() string {
	return fmt.Sprintf(
		"no target in base/jobs.yaml or base/services.yaml matches this host (node %s; labels: %s): "+
			"list it below nodes/ with its labels, or set node.name and node.labels in its configuration",
		e.Node.Name,
		render.LabelsText(e.Node.Labels),
	)
}

// HostFault is true: a typing error in its own name or labels is the likely cause.
func (e *untargetedError) HostFault() bool { return true }
