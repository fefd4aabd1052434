// Package captcha verifies the tokens of captchas. hCaptcha, Turnstile and reCAPTCHA
// use the same protocol: one POST of a form with secret and response, answered with
// success.
package captcha

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api/outbound"
)

const (
	maxAnswer = 16 << 10 // bytes
	maxToken  = 8 << 10  // bytes: tokens of reCAPTCHA have about 2 KiB
	patience  = 10 * time.Second
)

// ErrNotSolved is the error for a token that the provider does not confirm.
var ErrNotSolved = errors.New("the captcha was not solved")

// Verifier verifies tokens with their provider.
type Verifier struct{ client *http.Client }

// New returns a verifier that reaches only addresses allowed by the policy.
func New(p outbound.Policy) *Verifier {
	return &Verifier{outbound.NewClient(outbound.Options{Policy: p, MaxBody: maxAnswer, Connect: patience, Header: patience, Silence: patience, Total: patience})}
}

// Verify checks whether a token belongs to a solved captcha. It returns nil if so,
// ErrNotSolved if not, and any other error if the provider gave no usable response.
func (v *Verifier) Verify(ctx context.Context, at, secret, token string) error {
	if token == "" || len(token) > maxToken {
		return ErrNotSolved
	}
	form := url.Values{"secret": {secret}, "response": {token}}.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, at, strings.NewReader(form))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := v.client.Do(r)
	if err != nil {
		return fmt.Errorf("ask the captcha provider: %w", outbound.PublicError(err))
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the captcha provider answered with status %d", resp.StatusCode)
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("read the captcha provider's answer: %w", err)
	}
	return answer(raw)
}

// ours are the error codes caused by wrong settings: nobody could solve that captcha.
var ours = map[string]bool{"missing-input-secret": true, "invalid-input-secret": true, "sitekey-secret-mismatch": true, "bad-request": true, "internal-error": true}

// answer parses the provider's response; nothing except success true counts as success.
func answer(raw []byte) error {
	var a struct {
		Success *bool    `json:"success"`
		Errors  []string `json:"error-codes"`
	}
	if err := json.Unmarshal(raw, &a); err != nil || a.Success == nil {
		return errors.New("the captcha provider's answer cannot be read")
	}
	if *a.Success {
		return nil
	}
	for _, e := range a.Errors {
		if ours[e] {
			return fmt.Errorf("the captcha provider refuses the request: %s", e)
		}
	}
	return ErrNotSolved
}
