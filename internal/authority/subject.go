package authority

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"slices"
	"strings"

	"github.com/pullet/pullet/internal/safetext"
)

// Kind is what the holder of a certificate is to the fleet.
type Kind string

const (
	// Node is a host that pulls.
	Node Kind = "node"
	// Operator is a person who changes the fleet.
	Operator Kind = "operator"
	// Viewer is a person or a program that only reads.
	Viewer Kind = "viewer"
	// Server is what others connect to: the datastore and the door. It is a client of its peers, too.
	Server Kind = "server"
	// Keeper manages the datastore's users. Its name is always "root".
	Keeper Kind = "keeper"
)

const (
	maxCommonName = 64 // bytes: ub-common-name of RFC 5280
	maxFleet      = maxCommonName - len("pullet  authority")
	keeperName    = "root"
	// ServerName is the name in certificates of a datastore, and of no client: its members know each other by it.
	ServerName = "datastore"
	ofFleet    = "pullet:"
)

var kinds = []Kind{Node, Operator, Viewer, Server, Keeper}

// Subject is whom a certificate names. The datastore knows the holder by Name alone, so a Name belongs to one holder,
// of one Kind.
type Subject struct {
	Fleet string // as safetext.Name has it, of 47 bytes at most
	Name  string // as safetext.Name has it, of 64 bytes at most; "root" is the Keeper's
	Kind  Kind
}

// SubjectOf reads the subject of a certificate: CN is the name, O the fleet behind "pullet:", OU the kind. It does not
// ask who signed the certificate. A subject that Issue does not write is an error.
func SubjectOf(cert *x509.Certificate) (Subject, error) {
	of := cert.Subject
	if len(of.Names) != 3 || len(of.Organization) != 1 || len(of.OrganizationalUnit) != 1 {
		return Subject{}, fmt.Errorf(
			"the certificate of %q does not name a fleet, a kind and a name: it is not one that pullet made",
			safetext.Line(of.String(), 200),
		)
	}
	fleet, ours := strings.CutPrefix(of.Organization[0], ofFleet)
	if !ours {
		return Subject{}, fmt.Errorf("the certificate is of %q, which is not a fleet of pullet",
			safetext.Line(of.Organization[0], maxCommonName))
	}
	s := Subject{Fleet: fleet, Name: of.CommonName, Kind: Kind(of.OrganizationalUnit[0])}
	if err := s.check(); err != nil {
		return Subject{}, err
	}
	return s, nil
}

// check says what is wrong with a subject.
func (s Subject) check() error {
	name := safetext.Line(s.Name, maxCommonName)
	switch {
	case !slices.Contains(kinds, s.Kind):
		return fmt.Errorf("the kind %q is not known: there are %s", safetext.Line(string(s.Kind), 50), kinds)
	case !safetext.Name(s.Name) || len(s.Name) > maxCommonName:
		return fmt.Errorf("the name %q: a name has letters, digits, dots, dashes and underscores, at most %d, "+
			"with a letter or a digit at both ends", name, maxCommonName)
	case (s.Name == keeperName) != (s.Kind == Keeper):
		return fmt.Errorf("the name %q for the kind %q: %q is the name of the %s, and only of it",
			name, s.Kind, keeperName, Keeper)
	case s.Name == ServerName && s.Kind != Server:
		return fmt.Errorf("the name %q for the kind %q: it is the name of the datastore itself", name, s.Kind)
	}
	return checkFleet(s.Fleet)
}

func checkFleet(fleet string) error {
	if !safetext.Name(fleet) || len(fleet) > maxFleet {
		return fmt.Errorf("the fleet %q: its name has letters, digits, dots, dashes and underscores, at most %d, "+
			"with a letter or a digit at both ends", safetext.Line(fleet, maxCommonName), maxFleet)
	}
	return nil
}

// name is the subject as a certificate has it.
func (s Subject) name() pkix.Name {
	return pkix.Name{
		CommonName: s.Name, Organization: []string{ofFleet + s.Fleet}, OrganizationalUnit: []string{string(s.Kind)},
	}
}
