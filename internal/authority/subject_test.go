package authority

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"strings"
	"testing"
)

func TestSubjects(t *testing.T) {
	for _, c := range []struct {
		s   Subject
		err string
	}{
		{Subject{"prod", "web1", Node}, ""},
		{Subject{"prod", "ada", Operator}, ""},
		{Subject{"prod", "board", Viewer}, ""},
		{Subject{"prod", "etcd_1.example.org", Server}, ""},
		{Subject{"prod", "root", Keeper}, ""},
		{Subject{"prod", strings.Repeat("a", 64), Node}, ""},
		{Subject{"prod", strings.Repeat("a", 65), Node}, "the name"},
		{Subject{"prod", "", Node}, "the name"},
		{Subject{"prod", "a/b", Node}, "the name"},
		{Subject{"prod", "a\x1b[2J", Node}, "the name"},
		{Subject{"prod", "root", Node}, `"root" is the name of the keeper`},
		{Subject{"prod", "root", Operator}, `"root" is the name of the keeper`},
		{Subject{"prod", "ada", Keeper}, `"root" is the name of the keeper`},
		{Subject{"prod", "web1", ""}, "the kind"},
		{Subject{"prod", "web1", "Node"}, "the kind"},
		{Subject{"", "web1", Node}, "the fleet"},
		{Subject{"a:b", "web1", Node}, "the fleet"},
	} {
		err := c.s.check()
		wantError(t, string(c.s.Kind)+" "+c.s.Name, err, c.err)
		cert := &x509.Certificate{}
		sequence := c.s.name().ToRDNSequence()
		cert.Subject.FillFromRDNSequence(&sequence)
		got, errOf := SubjectOf(cert)
		if (errOf == nil) != (err == nil) || err == nil && got != c.s {
			t.Errorf("%v is read as %v, %v", c.s, got, errOf)
		}
	}
}

// TestStrangeSubjects: a certificate with more names than Issue writes names nobody: readers might choose different
// ones.
func TestStrangeSubjects(t *testing.T) {
	attribute := func(kind int, value string) pkix.AttributeTypeAndValue {
		return pkix.AttributeTypeAndValue{Type: asn1.ObjectIdentifier{2, 5, 4, kind}, Value: value}
	}
	name, fleet, node := attribute(3, "web1"), attribute(10, "pullet:prod"), attribute(11, "node")
	for what, c := range map[string]struct {
		names []pkix.AttributeTypeAndValue
		err   string
	}{
		"as it is":     {[]pkix.AttributeTypeAndValue{fleet, node, name}, ""},
		"empty":        {nil, "does not name"},
		"two names":    {[]pkix.AttributeTypeAndValue{fleet, node, attribute(3, "root"), name}, "does not name"},
		"two kinds":    {[]pkix.AttributeTypeAndValue{fleet, node, attribute(11, "operator"), name}, "does not name"},
		"two fleets":   {[]pkix.AttributeTypeAndValue{fleet, attribute(10, "pullet:b"), node, name}, "does not name"},
		"no kind":      {[]pkix.AttributeTypeAndValue{fleet, attribute(6, "DE"), name}, "does not name"},
		"no fleet":     {[]pkix.AttributeTypeAndValue{attribute(6, "DE"), node, name}, "does not name"},
		"no name":      {[]pkix.AttributeTypeAndValue{fleet, node, attribute(6, "DE")}, "the name"},
		"not pullet's": {[]pkix.AttributeTypeAndValue{attribute(10, "prod"), node, name}, "not a fleet of pullet"},
	} {
		var sequence pkix.RDNSequence
		for _, one := range c.names {
			sequence = append(sequence, pkix.RelativeDistinguishedNameSET{one})
		}
		cert := &x509.Certificate{}
		cert.Subject.FillFromRDNSequence(&sequence)
		_, err := SubjectOf(cert)
		wantError(t, what, err, c.err)
	}
}
