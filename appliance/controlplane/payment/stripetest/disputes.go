package stripetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Dispute is a Dispute (docs.stripe.com/api/disputes).
type Dispute struct {
	ID, Intent, Method, Currency string
	Amount                       int64 // in the smallest unit
	Status, Reason               string
	Created, DueBy               time.Time
	Balance                      []BalanceTransaction
}

// BalanceTransaction is what a dispute changes in the account's balance.
type BalanceTransaction struct {
	Amount   int64  `json:"amount"`
	Fee      int64  `json:"fee"`
	Currency string `json:"currency"`
}

func (d *Dispute) object(expanded bool) map[string]any {
	o := map[string]any{"id": d.ID, "object": "dispute", "charge": "ch_" + d.ID, "payment_intent": d.Intent, "currency": d.Currency, "amount": d.Amount,
		"status": d.Status, "reason": d.Reason, "created": d.Created.Unix(), "metadata": map[string]string{}, "balance_transactions": d.Balance,
		"evidence_details": map[string]any{"due_by": d.DueBy.Unix()}}
	if expanded {
		o["payment_intent"] = map[string]any{"id": d.Intent, "object": "payment_intent", "payment_method": d.Method}
	}
	return o
}

// Event returns an event about the dispute in its current state.
func (d Dispute) Event(kind string) []byte {
	raw, _ := json.Marshal(map[string]any{"id": "evt_" + d.ID, "object": "event", "type": kind, "data": map[string]any{"object": d.object(false)}})
	return raw
}

// Dispute begins a dispute of a charge, of all of its amount. The money is taken back unless
// it is an inquiry (status warning_needs_response).
func (s *Stripe) Dispute(t testing.TB, intent, status string) Dispute {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	currency, amount := s.paid(intent)
	if currency == "" {
		t.Fatalf("stripe has no charge %s", intent)
	}
	s.created++
	d := &Dispute{ID: fmt.Sprintf("du_test%d", s.created), Intent: intent, Currency: currency, Amount: amount, Status: status, Reason: "product_not_received",
		Created: s.now(), DueBy: s.now().Add(7 * 24 * time.Hour)}
	if i := s.intents[intent]; i != nil {
		d.Method = i.Method
	}
	s.disputes[d.ID] = d
	s.settle(d)
	return *d
}

// SettleDispute sets the status of a dispute.
func (s *Stripe) SettleDispute(t testing.TB, id, status string) Dispute {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.disputes[id]
	if d == nil {
		t.Fatalf("stripe has no dispute %s", id)
	}
	d.Status = status
	s.settle(d)
	return *d
}

// disputeFee is the fee of a dispute, in the smallest unit. It is returned with what was won.
const disputeFee = 1500

// settle takes the money of a dispute, or returns it. The caller holds mu.
func (s *Stripe) settle(d *Dispute) {
	switch {
	case strings.HasPrefix(d.Status, "warning_") || d.Status == "prevented":
	case d.Status == "won" && len(d.Balance) == 1:
		d.Balance = append(d.Balance, BalanceTransaction{d.Amount, -disputeFee, d.Currency})
	case d.Status != "won" && len(d.Balance) == 0:
		d.Balance = append(d.Balance, BalanceTransaction{-d.Amount, disputeFee, d.Currency})
	}
}

// Disputes returns all disputes.
func (s *Stripe) Disputes() (out []Dispute) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.disputes {
		out = append(out, *d)
	}
	return out
}

func (s *Stripe) retrieveDispute(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.disputes[r.PathValue("id")]
	if d == nil {
		refuse(w, http.StatusNotFound, "invalid_request_error", "No such dispute")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(d.object(strings.Contains(r.URL.RawQuery, "payment_intent")))
}

// listDisputes returns the disputes, in any order.
func (s *Stripe) listDisputes(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	data := []map[string]any{}
	for _, d := range s.disputes {
		if since := r.URL.Query().Get("created[gte]"); fmt.Sprint(d.Created.Unix()) >= since {
			data = append(data, d.object(strings.Contains(r.URL.RawQuery, "payment_intent")))
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"object": "list", "data": data, "has_more": false, "url": "/v1/disputes"})
}
