package gitremote

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
)

// TestRequestOfCapabilities: a request has what the server can do and helps here, and nothing that it did not offer.
func TestRequestOfCapabilities(t *testing.T) {
	for offered, want := range map[string]string{
		"":                                     " ofs-delta no-progress\n",
		"thin-pack side-band side-band-64k":    " ofs-delta no-progress side-band-64k\n",
		"multi_ack thin-pack":                  " ofs-delta no-progress multi_ack\n",
		"multi_ack multi_ack_detailed no-done": " ofs-delta no-progress multi_ack_detailed\n",
		"multi_ack_detailed multi_ack":         " ofs-delta no-progress multi_ack_detailed\n",
	} {
		var list bytes.Buffer
		line(&list, fmt.Sprintf("%s refs/heads/main\x00%s\n", wanted, offered))
		fmt.Fprint(&list, "0000")
		l, err := readListing(&list)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Request{Wants: []plumbing.Hash{wanted}}.encode(l)
		if text := fmt.Sprintf("want %s%s", wanted, want); err != nil || !strings.Contains(string(got), text) {
			t.Errorf("%q: %q %v, want %q", offered, got, err, text)
		}
	}
}

// TestAcknowledgements: whichever commits a server acknowledges in whichever way, the pack begins behind that.
func TestAcknowledgements(t *testing.T) {
	for _, acks := range []string{
		"NAK", "ACK ID", "ACK ID continue|NAK", "ACK ID continue|ACK ID continue|ACK ID",
		"ACK ID common|ACK ID ready|NAK|ACK ID",
	} {
		var answer bytes.Buffer
		for ack := range strings.SplitSeq(acks, "|") {
			line(&answer, strings.ReplaceAll(ack, "ID", wanted.String())+"\n")
		}
		line(&answer, "\x01PACK...")
		fmt.Fprint(&answer, "0000")
		lines := newLines(&answer)
		if _, err := lines.beforePack(false); err != nil {
			t.Errorf("%s: %v", acks, err)
			continue
		}
		if pack, err := io.ReadAll(lines.packReader()); err != nil || string(pack) != "PACK..." {
			t.Errorf("%s: %q %v", acks, pack, err)
		}
	}
}
