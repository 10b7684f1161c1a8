package trust

import (
	"testing"
)

const armored = sshArmor + "\nAAAA\n-----END SSH SIGNATURE-----\n"

func TestCommit(t *testing.T) {
	for name, c := range map[string]struct{ object, payload, signature, err string }{
		"unsigned": {
			object:  "tree 1\nauthor a\n\nmessage\n",
			payload: "tree 1\nauthor a\n\nmessage\n",
		},
		"signed": {
			object:    "tree 1\ngpgsig -----BEGIN SSH SIGNATURE-----\n AAAA\n -----END SSH SIGNATURE-----\nx y\n\nmessage\n",
			payload:   "tree 1\nx y\n\nmessage\n",
			signature: armored,
		},
		"a continued header is not a signature": {
			object:  "tree 1\nmergetag object 2\n gpgsig AAAA\n\nmessage\n",
			payload: "tree 1\nmergetag object 2\n gpgsig AAAA\n\nmessage\n",
		},
		"a message is not a header": {
			object:  "tree 1\n\ngpgsig AAAA\n",
			payload: "tree 1\n\ngpgsig AAAA\n",
		},
		"no message": {
			object:    "tree 1\ngpgsig AAAA\n",
			payload:   "tree 1\n",
			signature: "AAAA\n",
		},
		"two signatures": {
			object: "tree 1\ngpgsig AAAA\nauthor a\ngpgsig BBBB\n\nmessage\n",
			err:    "has two signatures",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Commit([]byte(c.object))
			if err != nil || c.err != "" {
				if err == nil || err.Error() != c.err {
					t.Fatalf("error %v, not %q", err, c.err)
				}
				return
			}
			if string(s.Payload) != c.payload || string(s.Signature) != c.signature {
				t.Errorf("payload %q\nsignature %q", s.Payload, s.Signature)
			}
		})
	}
}

func TestTag(t *testing.T) {
	const text = "object 1\ntype commit\ntag v1\n\nmessage\n"
	for object, payload := range map[string]string{
		text:                     text,
		text + armored:           text,
		text + armored + armored: text + armored, // git, too, takes the last one
	} {
		s := Tag([]byte(object))
		if string(s.Payload) != payload || string(s.Payload)+string(s.Signature) != object {
			t.Errorf("%q: payload %q, signature %q", object, s.Payload, s.Signature)
		}
	}
}

// FuzzCommit: what is taken apart is what was there, and nothing of a payload is in the signature.
func FuzzCommit(f *testing.F) {
	f.Add([]byte("tree 1\ngpgsig AAAA\n BBBB\nauthor a\n\nmessage\n"))
	f.Add([]byte("gpgsig \n\n\n"))
	f.Fuzz(func(t *testing.T, object []byte) {
		s, err := Commit(object)
		if err != nil {
			return
		}
		again, err := Commit(s.Payload)
		if err != nil || len(again.Signature) > 0 || string(again.Payload) != string(s.Payload) {
			t.Errorf("%q: the payload %q has a signature: %v", object, s.Payload, err)
		}
	})
}
