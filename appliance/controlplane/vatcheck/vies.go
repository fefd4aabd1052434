package vatcheck

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/basalt-gpu/basalt/api/outbound"
)

// Address is that of the REST API of VIES.
const Address = "https://ec.europa.eu/taxation_customs/vies/rest-api"

const (
	// requestTime limits one request: VIES waits for the service of a country, some of
	// which take more than ten seconds.
	requestTime = 30 * time.Second
	maxAnswer   = 64 << 10
)

// NewClient returns the HTTP client for VIES.
func NewClient(policy outbound.Policy) *http.Client {
	return outbound.NewClient(outbound.Options{Policy: policy, MaxBody: maxAnswer, Connect: 10 * time.Second, Header: requestTime, Silence: requestTime, Total: requestTime, Keep: true})
}

// VIES is the service.
type VIES struct {
	Client *http.Client
	// URL is that of the REST API; empty means Address.
	URL string
}

type request struct {
	CountryCode              string `json:"countryCode"`
	VATNumber                string `json:"vatNumber"`
	RequesterMemberStateCode string `json:"requesterMemberStateCode,omitempty"`
	RequesterNumber          string `json:"requesterNumber,omitempty"`
}

// Check asks about a VAT number. Numbers begin with the prefix of their country; without a
// requester the answer has no consultation number. Errors are a *Failure, or that of ctx.
func (v VIES) Check(ctx context.Context, number, requester string) (Answer, error) {
	if len(number) < 3 || requester != "" && len(requester) < 3 {
		return Answer{}, &Failure{fmt.Sprintf("VAT number %q or %q has no prefix of a country", number, requester), OfNumber}
	}
	ask := request{CountryCode: number[:2], VATNumber: number[2:]}
	if requester != "" {
		ask.RequesterMemberStateCode, ask.RequesterNumber = requester[:2], requester[2:]
	}
	body, err := json.Marshal(ask)
	if err != nil {
		return Answer{}, fmt.Errorf("encode the request about VAT number %s: %w", number, err)
	}
	url := v.URL
	if url == "" {
		url = Address
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/check-vat-number", bytes.NewReader(body))
	if err != nil {
		return Answer{}, fmt.Errorf("request about VAT number %s: %w", number, err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json")
	resp, err := v.Client.Do(r)
	if err != nil {
		return Answer{}, unreachable(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return Answer{}, unreachable(ctx, err)
	}
	return decode(resp.StatusCode, text, ask.CountryCode, ask.VATNumber)
}

// unreachable returns the failure of a request without a response, or the error of ctx if
// that has ended.
func unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return &Failure{"no answer: " + outbound.PublicError(err).Error(), OfService}
}
