// Package webhooksig signs and verifies requests according to Standard Webhooks
// (https://www.standardwebhooks.com, version 1): HMAC-SHA256 over ID, timestamp and
// body. Receivers written in Go may use it as it is.
package webhooksig

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// The headers of a request.
const (
	HeaderID        = "webhook-id"
	HeaderTimestamp = "webhook-timestamp" // seconds since 1970
	HeaderSignature = "webhook-signature" // one or more, separated by spaces
)

const (
	secretPrefix = "whsec_"
	version      = "v1,"
	// maxSignatures limits the signatures in one header that are checked.
	maxSignatures = 16
)

// NewSecret returns 32 random bytes in their text form.
func NewSecret() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never returns an error: it aborts the process instead
	return secretPrefix + base64.StdEncoding.EncodeToString(b[:])
}

// key returns the key in a secret; it has 16 to 128 bytes.
func key(secret string) ([]byte, error) {
	k, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, secretPrefix))
	if err != nil || len(k) < 16 || len(k) > 128 {
		return nil, errors.New("the secret is not valid: want whsec_ and 16 to 128 bytes in base64")
	}
	return k, nil
}

// Sign returns the header's value: a signature with each secret.
func Sign(secrets []string, id string, at time.Time, body []byte) (string, error) {
	var out []string
	for _, s := range secrets {
		k, err := key(s)
		if err != nil {
			return "", err
		}
		out = append(out, version+base64.StdEncoding.EncodeToString(sum(k, id, strconv.FormatInt(at.Unix(), 10), body)))
	}
	if len(out) == 0 {
		return "", errors.New("there is no secret to sign with")
	}
	return strings.Join(out, " "), nil
}

func sum(key []byte, id, timestamp string, body []byte) []byte {
	h := hmac.New(sha256.New, key)
	fmt.Fprintf(h, "%s.%s.", id, timestamp)
	h.Write(body)
	return h.Sum(nil)
}

// Verify checks a request's three headers and its body. A timestamp further from now
// than the tolerance is refused, to prevent replays; a tolerance of 0 accepts any time.
func Verify(secret, id, timestamp, signature string, body []byte, now time.Time, tolerance time.Duration) error {
	k, err := key(secret)
	if err != nil {
		return err
	}
	at, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || id == "" {
		return errors.New("the request has no " + HeaderID + " or no " + HeaderTimestamp)
	}
	if away := math.Abs(now.Sub(time.Unix(at, 0)).Seconds()); tolerance > 0 && away > tolerance.Seconds() {
		return fmt.Errorf("the request was signed at %s, which is too old or in the future", time.Unix(at, 0).UTC().Format(time.RFC3339))
	}
	want := sum(k, id, timestamp, body)
	for i, s := range strings.Fields(signature) {
		given, ok := strings.CutPrefix(s, version)
		if !ok || i >= maxSignatures {
			continue
		}
		if got, err := base64.StdEncoding.DecodeString(given); err == nil && subtle.ConstantTimeCompare(got, want) == 1 {
			return nil
		}
	}
	return errors.New("no signature matches: the secret differs or the request was changed")
}
