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

// send sends one event once, and returns why that failed. The reason is meant for the webhook's owner: it contains
// nothing of the response's body, which may belong to somebody else.
func send(ctx context.Context, c *http.Client, to string, secrets []string, e api.WebhookEvent, now time.Time) api.Reason {
	body := e.Body()
	signature, err := webhooksig.Sign(secrets, e.ID, now, body)
	if err != nil {
		return api.PlainReason("sign the event: "+err.Error(), api.CauseReceiverSecret, "")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return api.PlainReason("the address is not valid", api.CauseReceiverAddress, "")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "Basalt-Webhook/1")
	req.Header.Set(webhooksig.HeaderID, e.ID)
	req.Header.Set(webhooksig.HeaderTimestamp, strconv.FormatInt(now.Unix(), 10))
	req.Header.Set(webhooksig.HeaderSignature, signature)
	resp, err := c.Do(req)
	if err != nil {
		code := api.CauseReceiverUnreachable
		if errors.Is(err, outbound.ErrRefused) {
			code = api.CauseReceiverForbidden
		}
		return api.PlainReason(outbound.PublicError(err).Error(), code, "")
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, maxAnswer) // only the status matters
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return responded("receiver responded with redirect status %d: use the final address", api.CauseReceiverRedirect, resp.StatusCode)
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return responded("receiver responded with status %d", api.CauseReceiverStatus, resp.StatusCode)
	}
	return api.Reason{}
}

// responded returns the reason for a response with a status that is no success.
func responded(format string, code api.CauseCode, status int) api.Reason {
	return api.Reason{Text: fmt.Sprintf(format, status), Cause: api.Cause{Code: code, Count: int64(status), Plain: true}}
}
