package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// prover looks at the headers of a request. It returns what looks at the body then; nil: the headers alone prove
// nothing, and the body is not read.
type prover func(e *endpoint, header http.Header, secrets []string) verifier

// verifier says by what a delivery is known when it comes again, or why it is refused.
type verifier func(body []byte) (ids []string, refused *answer)

// anyBody is for senders that the headers proved.
func anyBody(ids ...string) verifier {
	return func([]byte) ([]string, *answer) { return ids, nil }
}

// equal compares with one of the secrets, in a time that says nothing of them.
func equal(given string, secrets []string) bool {
	sum, same := sha256.Sum256([]byte(given)), 0
	for _, secret := range secrets {
		want := sha256.Sum256([]byte(secret))
		same |= subtle.ConstantTimeCompare(sum[:], want[:])
	}
	return same == 1
}

// HasToken reports that a request has one of the tokens in the text of a file, as a bearer token or as the password of
// basic authentication. An error says what is wrong with the file.
func HasToken(header http.Header, file string, text []byte) (bool, error) {
	tokens, err := secrets(file, text)
	return err == nil && hasToken(header, tokens), err
}

func hasToken(header http.Header, tokens []string) bool {
	r := http.Request{Header: header}
	_, token, basic := r.BasicAuth()
	kind, bearer, _ := strings.Cut(header.Get("Authorization"), " ")
	if !basic && strings.EqualFold(kind, "Bearer") {
		token = strings.TrimSpace(bearer)
	}
	return equal(token, tokens)
}

// byToken takes what Alertmanager can send.
func byToken(_ *endpoint, header http.Header, secrets []string) verifier {
	if !hasToken(header, secrets) {
		return nil
	}
	return anyBody()
}

func byOwnHeader(e *endpoint, header http.Header, secrets []string) verifier {
	name := e.Header
	if name == "" {
		name = "X-Signature"
	}
	return bySignature(header.Get(name), "", secrets)
}

func byGitHub(_ *endpoint, header http.Header, secrets []string) verifier {
	return bySignature(header.Get("X-Hub-Signature-256"), header.Get("X-GitHub-Delivery"), secrets)
}

func byGitea(_ *endpoint, header http.Header, secrets []string) verifier {
	return bySignature(header.Get("X-Gitea-Signature"), header.Get("X-Gitea-Delivery"), secrets)
}

// byForgejo takes Forgejo's own header alone where there is one; older servers send that of Gitea.
func byForgejo(e *endpoint, header http.Header, secrets []string) verifier {
	if _, own := header["X-Forgejo-Signature"]; !own {
		return byGitea(e, header, secrets)
	}
	return bySignature(header.Get("X-Forgejo-Signature"), header.Get("X-Forgejo-Delivery"), secrets)
}

// bySignature holds the body against an HMAC-SHA256 in hexadecimal digits. The id of a delivery is not signed, so that
// the signature, too, is what a delivery is known by.
func bySignature(signature, delivery string, secrets []string) verifier {
	mac, err := hex.DecodeString(strings.TrimPrefix(signature, "sha256="))
	if err != nil || len(mac) != sha256.Size {
		return nil
	}
	return func(body []byte) ([]string, *answer) {
		signs := func(secret string) bool { return hmac.Equal(sum([]byte(secret), body), mac) }
		if !slices.ContainsFunc(secrets, signs) {
			return nil, wrongSecret
		}
		return known("signature "+hex.EncodeToString(mac), "delivery ", delivery), nil
	}
}

// known adds the id of a delivery, where there is one, to what it is known by.
func known(first, kind, id string) []string {
	if id == "" {
		return []string{first}
	}
	return []string{first, kind + id}
}

func sum(key []byte, parts ...[]byte) []byte {
	mac := hmac.New(sha256.New, key)
	for _, part := range parts {
		mac.Write(part) // never fails
	}
	return mac.Sum(nil)
}

// signing begins a secret of Standard Webhooks: base64 follows.
const signing = "whsec_"

// byGitLab takes a signature of Standard Webhooks where the hook has such a secret and the request a signature, and the
// plain token otherwise.
func byGitLab(e *endpoint, header http.Header, secrets []string) verifier {
	var keys [][]byte
	var tokens []string
	for _, secret := range secrets {
		text, signs := strings.CutPrefix(secret, signing)
		if key, err := base64.StdEncoding.DecodeString(text); signs && err == nil {
			keys = append(keys, key)
		} else {
			tokens = append(tokens, secret)
		}
	}
	if len(keys) > 0 && (len(tokens) == 0 || header.Get("Webhook-Signature") != "") {
		return byStandard(header, keys, e.now())
	}
	if !equal(header.Get("X-Gitlab-Token"), tokens) {
		return nil
	}
	if id := header.Get("Idempotency-Key"); id != "" {
		return anyBody("delivery " + id)
	}
	return anyBody()
}

// tolerance is how far the clock of a sender may be off.
const tolerance = 5 * time.Minute

// byStandard holds the id, the time and the body against signatures as Standard Webhooks has them. The id is signed.
func byStandard(header http.Header, keys [][]byte, now time.Time) verifier {
	id, at := header.Get("Webhook-Id"), header.Get("Webhook-Timestamp")
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil || id == "" {
		return nil
	}
	var macs [][]byte
	for signature := range strings.FieldsSeq(header.Get("Webhook-Signature")) {
		text, ours := strings.CutPrefix(signature, "v1,")
		if mac, err := base64.StdEncoding.DecodeString(text); ours && err == nil {
			macs = append(macs, mac)
		}
	}
	if len(macs) == 0 || len(macs) > 10 {
		return nil
	}
	return func(body []byte) ([]string, *answer) {
		signed := func(key []byte) bool {
			want := sum(key, []byte(id+"."+at+"."), body)
			return slices.ContainsFunc(macs, func(mac []byte) bool { return hmac.Equal(mac, want) })
		}
		if !slices.ContainsFunc(keys, signed) {
			return nil, wrongSecret
		}
		if now.Sub(time.Unix(seconds, 0)).Abs() > tolerance {
			return nil, replayed
		}
		return []string{"delivery " + id}, nil
	}
}
