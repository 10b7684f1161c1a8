package authority

import "errors"

// Fingerprints are those of the authorities in a bundle, as Authority.Fingerprint has them.
func Fingerprints(bundle []byte) ([]string, error) {
	believed, err := readBundle(bundle)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, cert := range believed {
		out = append(out, fingerprint(cert))
	}
	return out, nil
}

// SignedBy is the fingerprint of the authority in the chain of credentials that Issue made.
func SignedBy(credentials []byte) (string, error) {
	blocks, err := readBlocks(credentials)
	if err != nil {
		return "", err
	}
	if len(blocks) == 0 {
		return "", errors.New("there is no certificate in the text")
	}
	cert, err := authorityIn(blocks[len(blocks)-1]) // the last one of the chain
	if err != nil {
		return "", err
	}
	return fingerprint(cert), nil
}
