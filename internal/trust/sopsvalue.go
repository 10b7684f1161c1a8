package trust

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// An encrypted value is ENC[AES256_GCM,data:...,iv:...,tag:...,type:...].
const (
	sopsBegin = "ENC[AES256_GCM,"
	sopsIV    = 32 // bytes
	sopsTag   = 16
)

// sopsCipher is an encrypted value.
type sopsCipher struct {
	iv     []byte
	sealed []byte // the data, and the tag
	kind   string // not authenticated
}

// parseSOPSCipher takes an encrypted value apart.
func parseSOPSCipher(text string) (c sopsCipher, err error) {
	errShape := errors.New("it is not an encrypted value as SOPS writes it")
	inner, begins := strings.CutPrefix(text, sopsBegin)
	inner, ends := strings.CutSuffix(inner, "]")
	fields := strings.Split(inner, ",")
	if !begins || !ends || len(fields) != 4 {
		return c, errShape
	}
	var parts [3][]byte
	for i, name := range []string{"data:", "iv:", "tag:", "type:"} {
		value, ok := strings.CutPrefix(fields[i], name)
		if i == 3 {
			c.kind = value
		} else if parts[i], err = base64.StdEncoding.Strict().DecodeString(value); err != nil {
			return c, errShape
		}
		if !ok {
			return c, errShape
		}
	}
	if len(parts[0]) == 0 || len(parts[1]) != sopsIV || len(parts[2]) != sopsTag {
		return c, errShape
	}
	c.iv, c.sealed = parts[1], append(parts[0], parts[2]...)
	return c, nil
}

// typed is the value of decrypted bytes. No error has them in its text.
func (c sopsCipher) typed(opened []byte) (v any, err error) {
	text := string(opened)
	switch c.kind {
	case "str", "bytes":
		return text, nil
	case "int":
		v, err = strconv.Atoi(text)
	case "float":
		v, err = strconv.ParseFloat(text, 64)
	case "bool":
		v, err = strconv.ParseBool(text)
	case "time":
		var at time.Time
		err = at.UnmarshalText(opened)
		v = at
	case "comment":
		return sopsComment{}, nil
	default:
		return nil, fmt.Errorf("it has the unknown type %.50q", c.kind)
	}
	if err != nil {
		return nil, fmt.Errorf("it is not of its type %s", c.kind)
	}
	return v, nil
}

// sopsOpening decrypts the values of a file, and hashes them for the MAC.
type sopsOpening struct {
	aead          cipher.AEAD
	hash          hash.Hash
	onlyEncrypted bool
}

// onlyEncryptedStart is hashed first where the MAC is over encrypted values alone: SHA-256 of "sops".
const onlyEncryptedStart = "8a3fd2ad54ce66527b1034f3d147be0b0b975b3bf44f72c6fdadec8176f27d69"

func newSOPSOpening(key []byte, onlyEncrypted bool) (*sopsOpening, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithNonceSize(block, sopsIV)
	if err != nil {
		return nil, err
	}
	o := &sopsOpening{aead: aead, hash: sha512.New(), onlyEncrypted: onlyEncrypted}
	if onlyEncrypted {
		start, err := hex.DecodeString(onlyEncryptedStart)
		if err != nil {
			return nil, err
		}
		o.hash.Write(start)
	}
	return o, nil
}

// encrypted decrypts a value. Those of a comment are not in the MAC.
func (o *sopsOpening) encrypted(at *sopsPlace, c sopsCipher) (any, error) {
	with, err := at.authenticated()
	if err != nil {
		return nil, err
	}
	opened, err := o.aead.Open(nil, c.iv, c.sealed, []byte(with))
	if err != nil {
		return nil, errors.New("it was changed, or is from another place or file: authentication fails")
	}
	v, err := c.typed(opened)
	if err != nil || v == (sopsComment{}) {
		return v, err
	}
	return v, o.add(v)
}

func (o *sopsOpening) plain(v any) error {
	if o.onlyEncrypted {
		return nil
	}
	return o.add(v)
}

// add hashes a value for the MAC.
func (o *sopsOpening) add(v any) error {
	text, err := sopsText(v)
	o.hash.Write([]byte(text))
	return err
}

// sopsText is a value as SOPS hashes it.
func sopsText(v any) (string, error) {
	switch v := v.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	case int:
		return strconv.Itoa(v), nil
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), nil
	case bool:
		if v {
			return "True", nil
		}
		return "False", nil
	case time.Time:
		text, err := v.MarshalText()
		if err != nil {
			return "", errors.New("its time cannot be written")
		}
		return string(text), nil
	}
	return "", errors.New("its number is too large")
}

// checkMAC holds what was hashed against the MAC of the file.
func (o *sopsOpening) checkMAC(m *sopsMeta) error {
	c, err := parseSOPSCipher(m.mac)
	if err == nil && c.kind != "str" {
		err = fmt.Errorf("it is of type %.50q and not a text", c.kind)
	}
	if err != nil {
		return fmt.Errorf("the MAC: %w", err)
	}
	mac, err := o.aead.Open(nil, c.iv, c.sealed, []byte(m.modified))
	if err != nil {
		return errors.New("the MAC or lastmodified was changed, or is from another file: authentication fails")
	}
	if subtle.ConstantTimeCompare(mac, fmt.Appendf(nil, "%X", o.hash.Sum(nil))) != 1 {
		return errors.New("it was changed after SOPS encrypted it: the MAC is of other values")
	}
	return nil
}

// textNode is a text, which reads as one whatever it is.
func textNode(text string) *yaml.Node {
	if !utf8.ValidString(text) {
		encoded := base64.StdEncoding.EncodeToString([]byte(text))
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!binary", Value: encoded}
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text, Style: yaml.DoubleQuotedStyle}
}

// valueNode is a value as YAML.
func valueNode(v any) (*yaml.Node, error) {
	n := &yaml.Node{}
	switch v := v.(type) {
	case string:
		return textNode(v), nil
	case float64:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!float", Value: floatText(v)}, nil
	}
	if n.Encode(v) != nil {
		return nil, errors.New("a value cannot be written as YAML")
	}
	return n, nil
}

// floatText is a number that YAML reads as one with a point, also where it is whole.
func floatText(v float64) string {
	switch text := strconv.FormatFloat(v, 'g', -1, 64); {
	case math.IsNaN(v):
		return ".nan"
	case math.IsInf(v, 0):
		return strings.TrimPrefix(strings.Replace(text, "Inf", ".inf", 1), "+")
	case strings.ContainsAny(text, ".e"):
		return text
	default:
		return text + ".0"
	}
}
