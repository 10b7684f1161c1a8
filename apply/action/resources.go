package action

import (
	"path"

	"golang.org/x/crypto/ssh"

	"github.com/pullet/pullet/apply"
)

// What the steps of each action bring to a host, and how that is removed when no step declares it any longer.

// file is a path that a step makes. When it is pruned a copy stays in the state directory; a directory goes only when it is empty.
func file(name string) apply.Resource {
	name = path.Clean(name)
	return apply.Resource{ID: "file " + name, Path: name, Absent: "file.absent", Params: map[string]any{"name": name, "onlyEmpty": true, "backup": true}}
}

// thing is a resource that an action removes by its name.
func thing(kind, name, absent string) apply.Resource {
	return apply.Resource{ID: kind + " " + name, Absent: absent, Params: map[string]any{"name": name}}
}

// Manages is the file, or with recurse all that is below it.
func (a *FileManaged) Manages() []apply.Resource {
	if a.tree == nil {
		return []apply.Resource{file(a.Name)}
	}
	var out []apply.Resource
	for _, dir := range append([]string{"."}, a.tree.dirs...) {
		out = append(out, file(path.Join(a.Name, dir)))
	}
	for _, f := range a.tree.files {
		out = append(out, file(path.Join(a.Name, f.path)))
	}
	return out
}

// Manages is the directory.
func (a *FileDirectory) Manages() []apply.Resource { return []apply.Resource{file(a.Name)} }

// Manages is the link.
func (a *FileSymlink) Manages() []apply.Resource { return []apply.Resource{file(a.Name)} }

// Manages is the line, where it can be told from others: one that replaced another cannot be removed without it.
func (a *FileLine) Manages() []apply.Resource {
	return a.part("line "+a.Line, "file.line", a.State == absent || a.Line == "" || a.Match != "", map[string]any{"line": a.Line})
}

// Manages is the block.
func (a *FileBlock) Manages() []apply.Resource {
	return a.part("block "+a.begin, "file.block", a.State == absent, map[string]any{"begin": a.begin, "end": a.end})
}

// part is a part of an edited file, which the action itself removes.
func (a *Editing) part(what, action string, absent bool, params map[string]any) []apply.Resource {
	name := path.Clean(a.Name)
	out := apply.Resource{ID: "file " + name + ": " + what, Path: name, Part: true}
	if !absent {
		params["name"], params["state"] = name, "absent"
		out.Absent, out.Params = action, params
	}
	return []apply.Resource{out}
}

// Manages is the directory: what was extracted is not removed.
func (a *ArchiveExtracted) Manages() []apply.Resource {
	return []apply.Resource{{ID: "archive in " + path.Clean(a.Name), Fills: path.Clean(a.Name)}}
}

// Manages is the directory: a checkout is not removed.
func (a *GitCheckout) Manages() []apply.Resource {
	return []apply.Resource{{ID: "checkout in " + path.Clean(a.Name), Fills: path.Clean(a.Name)}}
}

// Manages is the user.
func (a *UserPresent) Manages() []apply.Resource {
	return []apply.Resource{thing("user", a.Name, "user.absent")}
}

// Manages is the group.
func (a *GroupPresent) Manages() []apply.Resource {
	return []apply.Resource{thing("group", a.Name, "group.absent")}
}

// Manages is the keys, one by one.
func (a *SSHAuthorizedKey) Manages() []apply.Resource {
	if a.State == "absent" {
		return nil
	}
	var out []apply.Resource
	for _, line := range a.want {
		out = append(out, apply.Resource{
			ID: "ssh key " + ssh.FingerprintSHA256(line.key) + " of " + a.User, Absent: "ssh.authorized_key",
			Params: map[string]any{"user": a.User, "key": (&keyLine{key: line.key}).String(), "state": absent},
		})
	}
	return out
}

// Manages is the host's key.
func (a *SSHKnownHost) Manages() []apply.Resource {
	if a.State == "absent" {
		return nil
	}
	params := map[string]any{"host": a.Host, "port": a.Port, "key": a.Key, "state": "absent"}
	id := "known host " + a.Host
	if a.User != "" {
		params["user"], id = a.User, id+" of "+a.User
	}
	return []apply.Resource{{ID: id, Absent: "ssh.known_host", Params: params}}
}

// Manages is the file of the job.
func (a *CronPresent) Manages() []apply.Resource {
	return []apply.Resource{file(cronDir + "/" + a.Name)}
}

// Manages is the names, one by one.
func (a *HostPresent) Manages() []apply.Resource {
	var out []apply.Resource
	for _, name := range a.Names {
		out = append(out, apply.Resource{
			ID: "host " + name + " at " + a.IP, Path: hostsPath, Part: true, Absent: "host.absent",
			Params: map[string]any{"ip": a.IP, "names": []string{name}},
		})
	}
	return out
}

// Manages is the file for the boot; the value that the kernel has now stays.
func (a *SysctlPresent) Manages() []apply.Resource {
	if own := ownSysctlFile(sysctlKey(a.Name)); a.File == "" || a.File == own {
		return []apply.Resource{file(own)}
	}
	return []apply.Resource{{ID: "sysctl " + a.Name, Path: path.Clean(a.File), Part: true}}
}

// Manages is the files for the boot; the module stays loaded.
func (a *KmodPresent) Manages() []apply.Resource {
	if !a.Persist {
		return nil
	}
	out := []apply.Resource{file(kmod(a.Name).loadFile())}
	if len(a.Options) > 0 {
		out = append(out, file(kmod(a.Name).optionsFile()))
	}
	return out
}

// Manages is the unit, where it is to run or to start with the host: brought is one that did neither before.
func (a *ServiceEnsure) Manages() []apply.Resource {
	starts := a.run != "" && a.run != "stopped"
	if !starts && (a.Enabled == nil || !*a.Enabled) {
		return nil
	}
	return []apply.Resource{{
		ID: "unit " + a.unit, Absent: "service.ensure", Params: map[string]any{"name": a.unit, "state": []string{"stopped", "disabled"}},
	}}
}

// Manages is the mount.
func (a *MountMounted) Manages() []apply.Resource {
	return []apply.Resource{thing("mount", path.Clean(a.Name), "mount.unmounted")}
}
