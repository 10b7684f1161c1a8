package file

import (
	"path"

	"github.com/pullet/pullet/apply/action/place"
	"github.com/pullet/pullet/apply/claim"
)

// Claims returns the content, owner and mode of the file, or of each file of the tree. Without content a link at the
// name is followed.
func (a *Managed) Claims() []claim.Claim {
	at := claim.Path(a.Name)
	if a.Recurse || a.tree != nil {
		return a.treeClaims()
	}
	var out []claim.Claim
	switch has := a.Content != nil || a.Source != "" || a.Data != nil || len(a.From) > 0; {
	case len(a.From) > 0: // what it is, shows when the step runs
		out = append(out, at.Are(claim.Exists), at.Whole(a.want.Digest()))
	case has && a.Replace:
		out = append(out, at.Are(claim.Regular), at.Whole(a.want.Digest()))
	case has:
		out = append(out, at.Are(claim.File), at.Initial(a.want.Digest()))
	default:
		out = append(out, at.Are(claim.File))
	}
	return append(out, a.Permissions.Claims(a.Name)...)
}

// treeClaims returns what a tree wants of all that it puts below its directory. Its mistakes are found by Bind.
func (a *Managed) treeClaims() []claim.Claim {
	out := []claim.Claim{claim.Path(a.Name).Are(claim.Tree)}
	modes, err := place.Permissions{Mode: a.Mode}.Tree(nil, a.TreeModes)
	if err != nil || a.tree == nil {
		return out
	}
	add := func(rel string, w place.Wanted) {
		p := place.Permissions{Owner: a.Owner, Group: a.Group}
		if w.SetMode {
			p.Mode = place.ModeBits(w.Mode)
		}
		out = append(out, p.Claims(path.Join(a.Name, rel))...)
	}
	add(".", modes.Dir)
	for _, dir := range a.tree.dirs {
		out = append(out, claim.Path(path.Join(a.Name, dir)).Are(claim.Directory))
		add(dir, modes.Dir)
	}
	for _, f := range a.tree.files {
		at, digest := claim.Path(path.Join(a.Name, f.path)), claim.Digest(f.data)
		if a.Replace {
			out = append(out, at.Are(claim.Regular), at.Whole(digest))
		} else {
			out = append(out, at.Are(claim.File), at.Initial(digest))
		}
		add(f.path, modes.Of(f.mode, f.exec))
	}
	return out
}

// Claims returns the line, and owner and mode of the file that has it.
func (a *Line) Claims() []claim.Claim {
	match := a.match
	if match == nil {
		match, _ = pattern("match", a.Match) // Bind refuses a bad one
	}
	return a.partClaims(claim.Path(a.Name).Line(a.Line, match, a.State == absent), a.State == absent)
}

// Claims returns the block, and owner and mode of the file that has it.
func (a *Block) Claims() []claim.Claim {
	if a.begin == "" && a.markers() != nil {
		return nil // Bind refuses it
	}
	return a.partClaims(claim.Path(a.Name).Block(a.begin, a.end, a.want, a.State == absent), a.State == absent)
}

// partClaims returns the claims of a part of the file. One that is to be absent needs no file.
func (a *Editing) partClaims(part claim.Claim, gone bool) []claim.Claim {
	out := []claim.Claim{part}
	if !gone {
		out = append(out, claim.Path(a.Name).Are(claim.File))
	}
	return append(out, a.Permissions.Claims(a.Name)...)
}

// Claims returns the directory with its owner and mode. What recurse and clean do below it spares what other steps
// name.
func (a *Directory) Claims() []claim.Claim {
	return append([]claim.Claim{claim.Path(a.Name).Are(claim.Tree)}, a.Permissions.Claims(a.Name)...)
}

// Claims returns the link with its target.
func (a *Symlink) Claims() []claim.Claim {
	at, leads := claim.Path(a.Name), a.Target
	if !path.IsAbs(leads) {
		leads = path.Join(path.Dir(path.Clean(a.Name)), leads)
	}
	return []claim.Claim{at.Are(claim.Link), at.Is("target", a.Target), at.Is("resolved target", path.Clean(leads))}
}

// Claims returns that nothing is there.
func (a *Absent) Claims() []claim.Claim {
	if a.OnlyEmpty {
		return []claim.Claim{claim.Path(a.Name).AbsentIfEmpty()}
	}
	return []claim.Claim{claim.Path(a.Name).Are(claim.Absent)}
}
