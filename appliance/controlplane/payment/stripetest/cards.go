package stripetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// Method is a PaymentMethod of the type card (docs.stripe.com/api/payment_methods).
type Method struct {
	ID, Brand, Last4  string
	ExpMonth, ExpYear int
	Customer          string // empty: not attached
}

// setupParameters are the parameters of a session in the mode setup that the fake
// knows (docs.stripe.com/api/checkout/sessions/create); names with [ are prefixes.
var setupParameters = []string{"mode", "payment_method_types[", "customer_creation", "client_reference_id", "success_url", "cancel_url", "expires_at", "metadata[", "setup_intent_data[metadata]["}

// checkSetup returns why Stripe refuses the parameters of a session in the mode setup,
// or an empty string.
func checkSetup(f url.Values) string {
	for name := range f {
		known := false
		for _, p := range setupParameters {
			known = known || name == p || strings.HasSuffix(p, "[") && strings.HasPrefix(name, p)
		}
		if !known {
			return "Received unknown parameter: " + name
		}
	}
	switch c := f.Get("customer_creation"); {
	case f.Get("success_url") == "":
		return "Missing required param: success_url."
	case c != "" && c != "always" && c != "if_required":
		return "Invalid customer_creation: must be one of always or if_required"
	case f.Get("payment_method_types[0]") == "":
		return "Missing required param: currency." // dynamic payment methods need one
	}
	return ""
}

// metadataOf returns the metadata among nested form parameters.
func metadataOf(f url.Values, prefix string) map[string]string {
	out := map[string]string{}
	for name := range f {
		if key, ok := strings.CutPrefix(name, prefix+"["); ok {
			out[strings.TrimSuffix(key, "]")] = f.Get(name)
		}
	}
	return out
}

// addSetup adds the fields of the mode setup to a session's object, with the
// SetupIntent expanded.
func (x *Session) addSetup(o map[string]any) {
	delete(o, "payment_intent")
	o["mode"], o["amount_total"], o["currency"], o["customer"] = "setup", nil, nil, nil
	si := map[string]any{"id": x.Intent, "object": "setup_intent", "status": x.IntentStatus, "metadata": x.SetupMetadata, "payment_method": nil}
	if x.Declined != "" {
		si["last_setup_error"] = map[string]any{"type": "card_error", "code": "card_declined", "message": x.Declined}
	}
	if x.PaymentMethod != "" {
		o["customer"], si["payment_method"] = x.Customer, x.PaymentMethod
	}
	o["setup_intent"] = si
}

// object returns the PaymentMethod in Stripe's form.
func (m *Method) object() map[string]any {
	o := map[string]any{"id": m.ID, "object": "payment_method", "type": "card", "customer": nil,
		"card": map[string]any{"brand": m.Brand, "last4": m.Last4, "exp_month": m.ExpMonth, "exp_year": m.ExpYear}}
	if m.Customer != "" {
		o["customer"] = m.Customer
	}
	return o
}

func (s *Stripe) retrieveMethod(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.methods[r.PathValue("id")]
	if m == nil {
		refuse(w, http.StatusNotFound, "invalid_request_error", "No such PaymentMethod")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(m.object())
}

// detach detaches a card from its customer; a card without a customer is refused
// (docs.stripe.com/api/payment_methods/detach).
func (s *Stripe) detach(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.methods[r.PathValue("id")]
	switch {
	case m == nil:
		refuse(w, http.StatusNotFound, "invalid_request_error", "No such PaymentMethod")
		return
	case m.Customer == "":
		refuse(w, http.StatusBadRequest, "invalid_request_error", "The payment method you provided is not attached to a customer so detachment is impossible.")
		return
	}
	m.Customer = ""
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(m.object())
}

// SaveCard enters a card on the page of a session in the mode setup, as a user does.
func (s *Stripe) SaveCard(t testing.TB, id, last4 string) Session {
	t.Helper()
	return s.change(t, id, func(x *Session) {
		x.Status, x.IntentStatus, x.Declined = "complete", "succeeded", ""
		x.PaymentMethod, x.Customer = "pm_"+x.ID, fmt.Sprintf("cus_%s", x.ID)
		s.methods[x.PaymentMethod] = &Method{ID: x.PaymentMethod, Brand: "visa", Last4: last4, ExpMonth: 4, ExpYear: 2031, Customer: x.Customer}
	})
}

// Attached reports whether a card is attached to a customer, so that it can be charged.
func (s *Stripe) Attached(paymentMethod string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.methods[paymentMethod]
	return m != nil && m.Customer != ""
}
