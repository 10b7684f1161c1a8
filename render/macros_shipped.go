package render

// shippedMacros are the macros that every repository has. One of the same name in macros/ takes its place.
//
// pkg.uptodate asks what the package lists of the host know, as they are: it refreshes nothing. Like every macro it
// runs on the machine, and PULLET_ROOT is the root that is meant. reboot.required asks for the note that packages of
// Debian and Ubuntu leave.
const shippedMacros = `
pkg.uptodate:
  action: cmd.run
  parameters:
    timeout: 5m
    cmd: |
      export LC_ALL=C.UTF-8
      root=${PULLET_ROOT:-/}
      if [ -e "$root/var/lib/dpkg/status" ]; then
        into=; if [ "$root" != / ]; then into="chroot $root"; fi
        news=$($into apt-get -s -q -o Debug::NoLocking=1 -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= upgrade --with-new-pkgs) || exit
        if printf '%s\n' "$news" | grep -q '^Inst '; then echo false; else echo true; fi
      elif command -v dnf >/dev/null; then
        below=; if [ "$root" != / ]; then below="--installroot=$root"; fi
        dnf -q -C $below check-update >/dev/null
        case $? in
          0) echo true ;;
          100) echo false ;;
          *) exit 1 ;;
        esac
      else
        echo 'this host has neither apt-get nor dnf' >&2
        exit 1
      fi
reboot.required:
  action: cmd.run
  parameters:
    cmd: if [ -e "${PULLET_ROOT:-/}/run/reboot-required" ]; then echo true; else echo false; fi
` + serversByLabel + `:
  template.expression:
    - content: '{{ pullet.servers .label }}'
  params: [label]
`

// serversByLabel is the shipped macro whose value is a list, as a text of a macro cannot be.
const serversByLabel = "servers_get_by_label"

func (m *Macro) lists() bool { return m.Name == serversByLabel && m.pos.File == shippedFile }

// shipMacros gives the node the macros that pullet brings. They are read like those of a file.
func (c *compiler) shipMacros() {
	doc, errs := parseYAML(&rendered{src: &source{path: shippedFile, text: shippedMacros}, text: []byte(shippedMacros)})
	c.errs = append(c.errs, errs...)
	c.macroFile(doc)
}

// shippedFile stands for a file in messages.
const shippedFile = "shipped macros"
