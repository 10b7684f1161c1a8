package authority

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/pullet/pullet/internal/unixsocket"
)

// ReadAsked reads what a new host asks, from one line of JSON.
func ReadAsked(line []byte) (Asked, error) {
	var a Asked
	if err := decode(bytes.NewReader(line), maxAsked, &a); err != nil {
		return Asked{}, fmt.Errorf("what the host asks: %w", err)
	}
	return a, nil
}

// PostInside posts to a path of the door at a socket of this host, which its file permissions guard. The caller closes
// the body of the answer, and bounds the time with ctx.
func PostInside(ctx context.Context, socket, path string, body []byte) (*http.Response, error) {
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return unixsocket.Dial(ctx, socket)
		},
	}}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://datastore"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	response, err := client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("the datastore of this host does not answer: is pullet-etcd.service active? %w", err)
	}
	return response, nil
}

// AskInside asks the door at a socket of this host for somebody else.
func AskInside(ctx context.Context, socket string, a Asked) (Answer, error) {
	body, err := json.Marshal(a)
	if err != nil {
		return Answer{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	response, err := PostInside(ctx, socket, joinPath, body)
	if err != nil {
		return Answer{}, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return Answer{}, (&joining{address: "the datastore"}).refusal(response)
	}
	return Receive(response.Body, a.Request)
}

// Receive reads the answer to a request from somebody who is believed for another reason, such as that he came over
// ssh. It is complete, and for the key of the request.
func Receive(from io.Reader, request string) (Answer, error) {
	var a Answer
	err := decode(from, maxAnswer, &a)
	var believed []*x509.Certificate
	if err == nil {
		believed, err = readBundle([]byte(a.Bundle))
	}
	if err == nil {
		err = a.check(request, Subject{Fleet: a.Fleet}, fingerprint(believed[0]), time.Now())
	}
	if err != nil {
		return Answer{}, fmt.Errorf("the answer cannot be used: %w", err)
	}
	return a, nil
}
