package authority

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/pullet/pullet/internal/safetext"
)

const (
	joinTime = time.Minute      // for all that Join does
	tryTime  = 20 * time.Second // for one request
	maxHead  = 64 << 10         // bytes
)

// Join asks the door at an address, "host:port", for the certificate of a new host. The door's server is believed only
// over TLS 1.3 and by a certificate for servers, of the kind Server and for the host of the address, that the authority
// with this fingerprint signed; see Authority.Fingerprint. Nothing is sent to another one. The authorities of the
// system do not count, and neither does a proxy.
//
// The answer is complete and the server's to give: its certificate is for the key of a.Request and of the server's
// fleet, and its Bundle has the authority. While the door is too busy, Join asks again, for a minute at most. What the
// door refuses is a *Refusal with its reason.
func Join(ctx context.Context, address, fingerprint string, a Asked) (Answer, error) {
	j, err := newJoining(address, fingerprint, a)
	if err != nil {
		return Answer{}, fmt.Errorf("join the fleet: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, joinTime)
	defer cancel()
	answer, err := j.ask(ctx)
	if err != nil {
		return Answer{}, fmt.Errorf("join the fleet: %w", err)
	}
	return answer, nil
}

// joining is a host on its way into a fleet.
type joining struct {
	address, host string
	pin           string
	asked         Asked
	pause         time.Duration // before a busy door is asked again
	now           func() time.Time
}

func newJoining(address, fingerprint string, a Asked) (*joining, error) {
	host, port, err := net.SplitHostPort(address)
	number, errPort := strconv.ParseUint(port, 10, 16)
	if err != nil || errPort != nil || number == 0 || !safetext.Address(host) || strings.Contains(host, "%") {
		return nil, fmt.Errorf("the address %q: write HOST:PORT", safetext.Line(address, 300))
	}
	pin := strings.ToLower(strings.TrimSpace(fingerprint))
	digits, ok := strings.CutPrefix(pin, fingerprintPrefix)
	if sum, err := hex.DecodeString(digits); !ok || err != nil || len(sum) != 32 {
		return nil, fmt.Errorf("the fingerprint %q: write %s and its 64 hexadecimal digits, as the invitation has them",
			safetext.Line(fingerprint, 100), fingerprintPrefix)
	}
	return &joining{address: address, host: host, pin: pin, asked: a, pause: time.Second, now: time.Now}, nil
}

// ask asks until the door is not too busy.
func (j *joining) ask(ctx context.Context) (Answer, error) {
	for {
		answer, err := j.once(ctx)
		if !errors.Is(err, errBusy) {
			return answer, err
		}
		select {
		case <-ctx.Done():
			return Answer{}, fmt.Errorf("%s: %w", j.address, err)
		case <-time.After(j.pause):
		}
	}
}

var errBusy = errors.New("the authority is too busy: try again in some minutes")

// once asks one time, over a connection of its own.
func (j *joining) once(ctx context.Context) (Answer, error) {
	body, err := json.Marshal(j.asked)
	if err != nil {
		return Answer{}, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+j.address+joinPath, bytes.NewReader(body))
	if err != nil {
		return Answer{}, err
	}
	r.Header.Set("Content-Type", "application/json")
	met := &meeting{address: j.address, host: j.host, pin: j.pin, now: j.now}
	client := &http.Client{
		Timeout: tryTime,
		Transport: &http.Transport{
			TLSClientConfig: met.config(), DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: maxHead,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Do(r)
	if err != nil {
		return Answer{}, met.failure(err)
	}
	defer func() { _ = response.Body.Close() }()
	return j.read(response, *met.server.Load())
}

// read takes the answer of a server that is believed.
func (j *joining) read(response *http.Response, server Subject) (Answer, error) {
	if response.StatusCode != http.StatusOK {
		return Answer{}, j.refusal(response)
	}
	var answer Answer
	err := decode(response.Body, maxAnswer, &answer)
	if err == nil {
		err = answer.check(j.asked.Request, server, j.pin, j.now())
	}
	if err != nil {
		return Answer{}, fmt.Errorf("the answer of %s cannot be used: %w", j.address, err)
	}
	return answer, nil
}

// refusal is the error of a server that is believed, and has no certificate for this host.
func (j *joining) refusal(response *http.Response) error {
	var said refused
	err := decode(response.Body, maxAsked, &said)
	reason := safetext.Line(said.Error, maxReason)
	switch {
	case response.StatusCode == http.StatusTooManyRequests:
		return errBusy
	case err != nil || reason == "":
		return fmt.Errorf("%s answers with the status %d, which is not what an authority says: check the address",
			j.address, response.StatusCode)
	case response.StatusCode == http.StatusForbidden:
		return fmt.Errorf("%s refuses this host: %w", j.address, &Refusal{Reason: reason})
	}
	return fmt.Errorf("%s has no certificate for this host: %s", j.address, reason)
}
