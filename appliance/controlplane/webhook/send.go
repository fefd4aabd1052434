package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/outbound"
	"github.com/basalt-gpu/basalt/api/webhooksig"
)

const (
	sendTime  = 15 * time.Second // for one request in total
	maxAnswer = 16 << 10         // bytes read of a response, so that its connection can be reused
)

// send sends one event once. The error is meant for the webhook's owner: it contains
// nothing of the response's body, which may belong to somebody else.
func send(ctx context.Context, c *http.Client, to string, secrets []string, e api.WebhookEvent, now time.Time) error {
	body := e.Body()
	signature, err := webhooksig.Sign(secrets, e.ID, now, body)
	if err != nil {
		return fmt.Errorf("sign the event: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return errors.New("the address is not valid")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "Basalt-Webhook/1")
	req.Header.Set(webhooksig.HeaderID, e.ID)
	req.Header.Set(webhooksig.HeaderTimestamp, strconv.FormatInt(now.Unix(), 10))
	req.Header.Set(webhooksig.HeaderSignature, signature)
	resp, err := c.Do(req)
	if err != nil {
		return outbound.PublicError(err)
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, maxAnswer) // only the status matters
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return fmt.Errorf("receiver responded with redirect status %d: use the final address", resp.StatusCode)
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return fmt.Errorf("receiver responded with status %d", resp.StatusCode)
	}
	return nil
}
