package actiontest

// People are entries for New: the account files of a host with a user alice, whose password has Hash, and more.
func People(more ...string) []string {
	return append([]string{
		"f etc/passwd 644 root:x:0:0:root:/root:/bin/sh\nalice:x:1500:1500:An Alice:/home/alice:/bin/sh\n",
		"f etc/shadow 640 root:*:19000:0:99999:7:::\nalice:" + Hash + ":19000:0:99999:7:::\n",
		"f etc/group 644 root:x:0:\nwheel:x:10:alice\ndocker:x:11:alice\nusers:x:100:\nalice:x:1500:\n",
		"f etc/gshadow 640 root:*::\nwheel:!::alice\ndocker:!::alice\nusers:*::\nalice:!::\n",
	}, more...)
}

// Hashes of passwords that nobody has kept, and an entry for alice's home.
const (
	Hash      = "$6$pFQcySuN$zhQ8oFpeyE3WpThzEN5O6LJtZ.yX57FxZpnnBGo8Vmr66iuyt3ZojoVoX1LMIrghJfDPFGR2nkZgnOwI/1Gs30"
	OtherHash = "$y$j9T$WDZX3xYzjNDMH1Wp3A1bF.$GPYSIIYx9x8YEPnyYqZyRaXXzO8ZDuZOqfMKnT0IYQk"
	Home      = "d home/alice 755"
)

// Public keys whose private ones nobody has kept.
const (
	Key1 = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMpNaqXbdv4j6vc211VA+HyrG5m+9yq0zmX24cJXuoDa"
	Key2 = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDl9Tv8RzFbStJyJ2+0sDuv/eDtMpzeCiowWITtFSpy1"
)

// KeysOf are entries for New: account files with the users root, alice and bare, who has no home, and this text as the
// authorized_keys of root.
func KeysOf(text string) []string {
	return []string{
		"f etc/passwd 644 root:x:0:0::/root:/bin/sh\nalice:x:1500:1500::/home/alice:/bin/sh\n" +
			"bare:x:1501:1501::/:/bin/sh\n",
		"d root 700", "d root/.ssh 700", "f root/.ssh/authorized_keys 600 " + text,
	}
}
