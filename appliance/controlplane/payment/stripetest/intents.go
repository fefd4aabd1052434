package stripetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Bank is how a card's bank answers to charges.
type Bank int

// The answers.
const (
	Accept        Bank = iota
	Decline            // card_declined
	Authenticate       // authentication_required: the customer must confirm
	Process            // not known yet: SettleCharge decides
	RequireAction      // requires_action: as Authenticate, but the charge stays open
)

// Intent is a PaymentIntent of a card on file (docs.stripe.com/api/payment_intents).
type Intent struct {
	ID, Customer, Method, Currency string
	Amount                         int64 // in the smallest unit
	Status                         string
	ErrorCode, Declined            string
	Metadata                       map[string]string
	Created                        time.Time
}

type chargeResult struct {
	form   string
	status int
	body   []byte
}

func (i *Intent) object() map[string]any {
	o := map[string]any{"id": i.ID, "object": "payment_intent", "customer": i.Customer, "currency": i.Currency, "amount": i.Amount, "amount_received": 0,
		"status": i.Status, "metadata": i.Metadata, "created": i.Created.Unix(), "last_payment_error": nil}
	if i.Status == "succeeded" {
		o["amount_received"] = i.Amount
	}
	if i.ErrorCode != "" {
		o["last_payment_error"] = map[string]any{"type": "card_error", "code": i.ErrorCode, "message": i.Declined}
	}
	return o
}

// Event returns an event about the charge in its current state.
func (i Intent) Event(kind string) []byte {
	raw, _ := json.Marshal(map[string]any{"id": "evt_" + i.ID, "object": "event", "type": kind, "data": map[string]any{"object": i.object()}})
	return raw
}

// createIntent creates and confirms a PaymentIntent.
func (s *Stripe) createIntent(w http.ResponseWriter, r *http.Request) {
	s.idempotent(w, r, s.charge)
}

// idempotent answers a request with what do returns, which is called with mu held. A
// repeated idempotency key gets the same response, errors too, and is refused with other
// parameters.
func (s *Stripe) idempotent(w http.ResponseWriter, r *http.Request, do func(f map[string][]string) chargeResult) {
	if err := r.ParseForm(); err != nil {
		refuse(w, http.StatusBadRequest, "invalid_request_error", "form")
		return
	}
	f, key := r.PostForm, r.Header.Get("Idempotency-Key")
	s.mu.Lock()
	defer s.mu.Unlock()
	was, ok := s.charges[key]
	switch {
	case key == "":
		refuse(w, http.StatusBadRequest, "invalid_request_error", "the fake wants an idempotency key")
		return
	case ok && was.form != f.Encode():
		refuse(w, http.StatusBadRequest, "idempotency_error", "other parameters with the same key")
		return
	case !ok:
		was = do(f)
		was.form = f.Encode()
		s.charges[key] = was
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(was.status)
	_, _ = w.Write(was.body)
}

// invalidRequest returns the response to a request that Stripe refuses.
func invalidRequest(status int, why string) chargeResult {
	raw, _ := json.Marshal(map[string]any{"error": map[string]any{"type": "invalid_request_error", "message": why}})
	return chargeResult{status: status, body: raw}
}

// charge charges a card. The caller holds mu.
func (s *Stripe) charge(f map[string][]string) chargeResult {
	get := func(name string) string { return strings.Join(f[name], "") }
	bad := func(why string) chargeResult { return invalidRequest(http.StatusBadRequest, why) }
	amount, err := strconv.ParseInt(get("amount"), 10, 64)
	m := s.methods[get("payment_method")]
	switch {
	case err != nil || amount < 50 || get("confirm") != "true" || get("off_session") != "true" || get("payment_method_types[0]") != "card" || len(get("currency")) != 3:
		return bad(fmt.Sprintf("missing parameter: %v", f))
	case m == nil || m.Customer == "" || m.Customer != get("customer"):
		return bad("The PaymentMethod does not belong to the customer.")
	}
	s.created++
	i := &Intent{ID: fmt.Sprintf("pi_test_%d", s.created), Customer: m.Customer, Method: m.ID, Currency: get("currency"), Amount: amount, Metadata: metadataOf(f, "metadata"), Created: s.now()}
	s.intents[i.ID] = i
	s.answer(i, s.banks[m.ID])
	if i.Status == "succeeded" || i.Status == "processing" || i.Status == "requires_action" {
		raw, _ := json.Marshal(i.object())
		return chargeResult{status: http.StatusOK, body: raw}
	}
	raw, _ := json.Marshal(map[string]any{"error": map[string]any{"type": "card_error", "code": i.ErrorCode, "message": i.Declined, "payment_intent": i.object()}})
	return chargeResult{status: http.StatusPaymentRequired, body: raw}
}

// answer sets the state of a charge as its bank answers. The caller holds mu.
func (s *Stripe) answer(i *Intent, b Bank) {
	switch b {
	case Accept:
		i.Status, i.ErrorCode, i.Declined = "succeeded", "", ""
	case Decline:
		i.Status, i.ErrorCode, i.Declined = "requires_payment_method", "card_declined", "Your card was declined."
	case Authenticate:
		i.Status, i.ErrorCode, i.Declined = "requires_payment_method", "authentication_required", "Your card was declined. This transaction requires authentication."
	case Process:
		i.Status = "processing"
	case RequireAction:
		i.Status, i.ErrorCode, i.Declined = "requires_action", "", ""
	}
}

func (s *Stripe) retrieveIntent(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.intents[r.PathValue("id")]
	if i == nil {
		refuse(w, http.StatusNotFound, "invalid_request_error", "No such payment_intent")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(i.object())
}

// listIntents returns the charges of a customer, in any order.
func (s *Stripe) listIntents(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	since, err := strconv.ParseInt(r.URL.Query().Get("created[gte]"), 10, 64)
	customer := r.URL.Query().Get("customer")
	if err != nil || customer == "" {
		refuse(w, http.StatusBadRequest, "invalid_request_error", "missing parameter: "+r.URL.RawQuery)
		return
	}
	data := []map[string]any{}
	for _, i := range s.intents {
		if i.Customer == customer && i.Created.Unix() >= since {
			data = append(data, i.object())
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"object": "list", "data": data, "has_more": false, "url": "/v1/payment_intents"})
}

// SetBank sets how a card's bank answers to charges from now on.
func (s *Stripe) SetBank(paymentMethod string, b Bank) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.banks[paymentMethod] = b
}

// SettleCharge decides a charge that is being processed.
func (s *Stripe) SettleCharge(id string, b Bank) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer(s.intents[id], b)
}

// Intents returns all charges of cards on file, in order of their creation.
func (s *Stripe) Intents() []Intent {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Intent
	for _, i := range s.intents {
		out = append(out, *i)
	}
	number := func(i Intent) int { n, _ := strconv.Atoi(strings.TrimPrefix(i.ID, "pi_test_")); return n }
	slices.SortFunc(out, func(a, b Intent) int { return number(a) - number(b) })
	return out
}

// BreakCharges makes each request for a charge of a card on file fail from now on, but not
// those that ask about charges; None ends that.
func (s *Stripe) BreakCharges(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.chargeFault = f
}

// ForgetKeys forgets all idempotency keys, as Stripe does after 24 hours.
func (s *Stripe) ForgetKeys() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys, s.charges = map[string]idempotentResult{}, map[string]chargeResult{}
}

// SetClock replaces the clock.
func (s *Stripe) SetClock(now func() time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = now
}
