package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/standardwebhook"
)

const (
	sendTime   = 15 * time.Second // for one request, all in all
	maxAnswer  = 16 << 10         // bytes that are read of an answer, so that its connection can be used again
	maxHeaders = 64 << 10
	maxError   = 256 // bytes of an error that the status keeps
)

// newClient reaches only what mayReach allows, follows nobody, and asks no proxy.
func newClient(allowed []netip.Prefix, limit time.Duration) *http.Client {
	dialer := &net.Dialer{Timeout: limit, Control: checkAddress(allowed)}
	return &http.Client{
		Timeout: limit,
		Transport: &http.Transport{
			DialContext: dialer.DialContext, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, TLSHandshakeTimeout: limit,
			MaxResponseHeaderBytes: maxHeaders, MaxIdleConns: 64, MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute, DisableCompression: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// send one event, once. What the error says is for the webhook's owner: nothing
// of the answer's body, which may be somebody else's.
func send(ctx context.Context, c *http.Client, to string, secrets []string, e api.WebhookEvent, now time.Time) error {
	body := e.Body()
	signature, err := standardwebhook.Sign(secrets, e.ID, now, body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return errors.New("the address cannot be used")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "Basalt-Webhook/1")
	req.Header.Set(standardwebhook.HeaderID, e.ID)
	req.Header.Set(standardwebhook.HeaderTimestamp, strconv.FormatInt(now.Unix(), 10))
	req.Header.Set(standardwebhook.HeaderSignature, signature)
	resp, err := c.Do(req)
	if err != nil {
		return reason(err)
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, maxAnswer) // its status counts
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return fmt.Errorf("it answers %d and points elsewhere: give the address that takes the events", resp.StatusCode)
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return fmt.Errorf("it answers %d", resp.StatusCode)
	}
	return nil
}

// reason is an error without the address that its owner knows.
func reason(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		if u.Timeout() {
			return errors.New("it does not answer in time")
		}
		err = u.Err
	}
	text := err.Error()
	if len(text) > maxError {
		text = text[:maxError]
	}
	return errors.New(text)
}
