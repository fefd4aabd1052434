package stripetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Refund is a Refund (docs.stripe.com/api/refunds).
type Refund struct {
	ID, Intent, Currency string
	Amount               int64 // in the smallest unit
	Status               string
	FailureReason        string
	Metadata             map[string]string
	Created              time.Time
}

func (r *Refund) object() map[string]any {
	o := map[string]any{"id": r.ID, "object": "refund", "payment_intent": r.Intent, "currency": r.Currency, "amount": r.Amount, "status": r.Status, "metadata": r.Metadata, "created": r.Created.Unix()}
	if r.FailureReason != "" {
		o["failure_reason"] = r.FailureReason
	}
	return o
}

// Event returns an event about the refund in its current state.
func (r Refund) Event(kind string) []byte {
	raw, _ := json.Marshal(map[string]any{"id": "evt_" + r.ID, "object": "event", "type": kind, "data": map[string]any{"object": r.object()}})
	return raw
}

// createRefund creates a refund; one of more than is left of the charge is refused.
func (s *Stripe) createRefund(w http.ResponseWriter, r *http.Request) {
	s.idempotent(w, r, func(f map[string][]string) chargeResult {
		intent := strings.Join(f["payment_intent"], "")
		amount, err := strconv.ParseInt(strings.Join(f["amount"], ""), 10, 64)
		currency, left := s.left(intent)
		switch {
		case currency == "":
			return invalidRequest(http.StatusNotFound, "No such payment_intent: '"+intent+"'")
		case err != nil || amount <= 0:
			return invalidRequest(http.StatusBadRequest, "Invalid positive integer")
		case left == 0:
			return invalidRequest(http.StatusBadRequest, "Charge has already been refunded.")
		case amount > left:
			return invalidRequest(http.StatusBadRequest, fmt.Sprintf("Refund amount (%d) is greater than unrefunded amount on charge (%d)", amount, left))
		}
		x := s.addRefund(&Refund{Intent: intent, Currency: currency, Amount: amount, Metadata: metadataOf(f, "metadata")})
		raw, _ := json.Marshal(x.object())
		return chargeResult{status: http.StatusOK, body: raw}
	})
}

// addRefund adds a refund. The caller holds mu.
func (s *Stripe) addRefund(x *Refund) *Refund {
	s.created++
	x.ID, x.Status, x.Created = fmt.Sprintf("re_test_%d", s.created), s.refundsBegin, s.now()
	s.refunds[x.ID] = x
	return x
}

// RefundInDashboard refunds an amount of a charge, in the smallest unit, without the API; at
// most what is left of it.
func (s *Stripe) RefundInDashboard(t testing.TB, intent string, amount int64) (made Refund, any bool) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	currency, left := s.left(intent)
	if currency == "" {
		t.Fatalf("stripe has no charge %s", intent)
	}
	if amount = min(amount, left); amount <= 0 {
		return made, false
	}
	return *s.addRefund(&Refund{Intent: intent, Currency: currency, Amount: amount, Metadata: map[string]string{}}), true
}

// left returns the currency of a charge and what is not refunded of it. The caller holds mu.
func (s *Stripe) left(intent string) (currency string, left int64) {
	currency, left = s.paid(intent)
	for _, x := range s.refunds {
		if x.Intent == intent && x.Status != "failed" && x.Status != "canceled" {
			left -= x.Amount
		}
	}
	return currency, left
}

// paid returns the currency and the amount of a charge, empty if it was not made. The
// caller holds mu.
func (s *Stripe) paid(intent string) (currency string, amount int64) {
	if i := s.intents[intent]; i != nil && i.Status == "succeeded" {
		return i.Currency, i.Amount
	}
	for _, x := range s.sessions {
		if x.Intent == intent && x.PaymentStatus == "paid" {
			return x.Currency, x.Amount
		}
	}
	return "", 0
}

func (s *Stripe) retrieveRefund(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.refunds[r.PathValue("id")]
	if x == nil {
		refuse(w, http.StatusNotFound, "invalid_request_error", "No such refund")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(x.object())
}

// listRefunds returns the refunds of a charge, or all since a time, in any order.
func (s *Stripe) listRefunds(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, q := []map[string]any{}, r.URL.Query()
	for _, x := range s.refunds {
		since, _ := strconv.ParseInt(q.Get("created[gte]"), 10, 64)
		if of := q.Get("payment_intent"); (of == "" || x.Intent == of) && x.Created.Unix() >= since {
			data = append(data, x.object())
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"object": "list", "data": data, "has_more": false, "url": "/v1/refunds"})
}

// RefundsBegin sets the status of refunds that are created from now on.
func (s *Stripe) RefundsBegin(status string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refundsBegin = status
}

// SettleRefund sets the status of a refund, and why it failed.
func (s *Stripe) SettleRefund(t testing.TB, id, status, why string) Refund {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.refunds[id]
	if x == nil {
		t.Fatalf("stripe has no refund %s", id)
	}
	x.Status, x.FailureReason = status, why
	return *x
}

// Refunds returns all refunds, in order of their creation.
func (s *Stripe) Refunds() []Refund {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Refund
	for _, x := range s.refunds {
		out = append(out, *x)
	}
	number := func(x Refund) int { n, _ := strconv.Atoi(strings.TrimPrefix(x.ID, "re_test_")); return n }
	slices.SortFunc(out, func(a, b Refund) int { return number(a) - number(b) })
	return out
}

// BreakRefunds makes each request for a refund fail from now on, but not those that ask
// about refunds; None ends that.
func (s *Stripe) BreakRefunds(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refundFault = f
}
