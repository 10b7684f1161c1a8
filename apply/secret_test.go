package apply

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/pullet/pullet/render"
)

// hidden is a vault that turns bytes round; failing says what does not work.
func hidden(failing *error) Vault {
	turn := func(in []byte) ([]byte, error) {
		out := bytes.Clone(in)
		for i := range out {
			out[i] ^= 0x55
		}
		return out, *failing
	}
	return Vault{Seal: turn, Open: turn}
}

// TestVault: what a sensitive step returned is on disk in no form that can be read, and comes back as it was. Without a
// key the step still has ended, and its result is withheld.
func TestVault(t *testing.T) {
	t.Parallel()
	var failing error
	vault := hidden(&failing)
	result := render.StepResult{
		Result: "ok", Changed: true, ExitCode: 3, StdOut: "canary", StdErr: "canary", Data: map[string]any{"a": "canary"},
		ByNode: map[string]render.StepResult{"n": {StdOut: "canary"}},
	}
	line := StepReport{Step: "a", Outcome: Changed, Summary: "run canary", Result: result}
	onDisk := func(r recorded) recorded {
		text, err := json.Marshal(r)
		if err != nil || strings.Contains(string(text), "canary") {
			t.Fatalf("%s, %v", text, err)
		}
		var out recorded
		if err := json.Unmarshal(text, &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	sealed := onDisk(vault.record(line, true, true))
	if got := vault.report(sealed); !reflect.DeepEqual(got.Result, result) || !got.hidden || got.Outcome != Changed {
		t.Errorf("%+v", got)
	}
	failing = errors.New("no key")
	for name, r := range map[string]StepReport{
		"cannot be decrypted":    vault.report(sealed),
		"could not be encrypted": vault.report(onDisk(vault.record(line, true, true))),
		"no vault":               Vault{}.report(sealed),
	} {
		if r.Outcome != Changed || !r.Result.Withheld || r.Result.StdOut != "" || r.Result.ExitCode != 3 || !r.Result.Changed {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if got := (Vault{}).record(line, false, false); got.Result.StdOut != "canary" || got.Summary != "run canary" {
		t.Errorf("a step that is not sensitive: %+v", got)
	}
	if got := (Vault{}).record(line, true, false); got.Result.StdOut != "canary" || got.Summary == "run canary" {
		t.Errorf("a host without a key: %+v", got)
	}
}
