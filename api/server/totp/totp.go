// Package totp implements time-based one-time passwords (RFC 6238): six digits of
// HMAC-SHA-1 over the 30-second step, as authenticators support them.
package totp

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // RFC 6238's default, and the only one that all authenticators know
	"crypto/subtle"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"fmt"
	"net/url"
	"time"
)

const (
	period      = 30 // seconds
	digits      = 6
	secretBytes = 20 // RFC 4226, section 4: as long as the hash
	skew        = 1  // steps that a clock may be off in either direction
)

var text = base32.StdEncoding.WithPadding(base32.NoPadding)

// NewSecret returns a random secret, in the base32 that authenticators accept.
func NewSecret() string {
	raw := make([]byte, secretBytes)
	_, _ = rand.Read(raw) // never returns an error
	return text.EncodeToString(raw)
}

// URI returns a secret's URI for an authenticator, which a QR code contains.
func URI(issuer, account, secret string) string {
	q := url.Values{"secret": {secret}, "issuer": {issuer}, "algorithm": {"SHA1"}, "digits": {fmt.Sprint(digits)}, "period": {fmt.Sprint(period)}}
	return "otpauth://totp/" + url.PathEscape(issuer+":"+account) + "?" + q.Encode()
}

// ErrSecret is the error for a secret that NewSecret did not make.
var ErrSecret = errors.New("not a valid TOTP secret")

func decode(secret string) ([]byte, error) {
	raw, err := text.DecodeString(secret)
	if err != nil || len(raw) != secretBytes {
		return nil, ErrSecret
	}
	return raw, nil
}

// Code returns the code of a secret at a time.
func Code(secret string, at time.Time) (string, error) {
	raw, err := decode(secret)
	if err != nil {
		return "", err
	}
	return code(raw, at.Unix()/period, digits), nil
}

// Check reports whether code is valid for the secret at a time, or one step around it,
// and returns its step. Steps up to last were used: a code is valid once.
func Check(secret, given string, at time.Time, last int64) (step int64, ok bool, err error) {
	raw, err := decode(secret)
	if err != nil || !IsCode(given) {
		return 0, false, err
	}
	now := at.Unix() / period
	for s := now - skew; s <= now+skew; s++ {
		if subtle.ConstantTimeCompare([]byte(code(raw, s, digits)), []byte(given)) == 1 && s > last && !ok {
			step, ok = s, true
		}
	}
	return step, ok, nil
}

// IsCode reports whether s has the form of a code.
func IsCode(s string) bool {
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(s) == digits
}

// code computes HOTP (RFC 4226, section 5.3) for a step.
func code(secret []byte, step int64, digits int) string {
	mac := hmac.New(sha1.New, secret)
	_ = binary.Write(mac, binary.BigEndian, step)
	sum := mac.Sum(nil)
	n := binary.BigEndian.Uint32(sum[sum[len(sum)-1]&15:]) & 0x7fffffff
	mod := uint32(1)
	for range digits {
		mod *= 10
	}
	return fmt.Sprintf("%0*d", digits, n%mod)
}
