package facts

import (
	"strings"

	"github.com/pullet/pullet/render"
)

// families are the systems that share package names, paths and services with others, by ID of os-release. What stands
// in no row is a family of its own, such as alpine.
var families = map[string]string{
	"ubuntu": "debian", "raspbian": "debian", "linuxmint": "debian",
	"rhel": "redhat", "fedora": "redhat", "centos": "redhat", "rocky": "redhat", "almalinux": "redhat", "ol": "redhat",
	"amzn": "redhat",
	"sles": "suse", "sled": "suse", "sle-micro": "suse", "opensuse": "suse", "opensuse-leap": "suse",
	"opensuse-tumbleweed": "suse",
	"manjaro":             "arch", "endeavouros": "arch",
	"debian": "debian", "suse": "suse", "arch": "arch",
}

// osFamily is the system whose package names, paths and services this one has: its own, or that of the first one that
// it is like.
func osFamily(id string, like []any) string {
	if known := families[id]; known != "" {
		return known
	}
	for _, other := range like {
		if name, _ := other.(string); families[name] != "" {
			return families[name]
		}
	}
	return id
}

// major is a version up to its first dot.
func major(version string) string {
	first, _, _ := strings.Cut(version, ".")
	return first
}

// Over are the facts with others put over them. What follows from the system follows that of the others, where they do
// not say.
func Over(base, over render.Facts) render.Facts {
	out := render.Facts{}
	for _, facts := range []render.Facts{base, over} {
		for name, value := range facts {
			out[name] = value
		}
	}
	id, _ := out["os"].(string)
	version, _ := out["osVersion"].(string)
	like, _ := out["osLike"].([]any)
	for name, value := range map[string]string{"osFamily": osFamily(id, like), "osMajor": major(version)} {
		if _, said := over[name]; !said {
			out[name] = value
		}
	}
	return out
}
