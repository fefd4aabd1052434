// Package stripetest is a stand-in for Stripe's API, as its documentation describes it
// (docs.stripe.com/api): Checkout Sessions, idempotency keys, and signed events. It can
// decline, be slow, hang up, and deliver events as often and in the order that a test
// wants.
package stripetest

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Secrets of the account.
const (
	Key    = "sk_test_0123456789abcdef"
	Secret = "whsec_0123456789abcdef"
)

// Session is a Checkout Session.
type Session struct {
	ID, Reference, Currency string
	Amount                  int64 // in the smallest unit
	Status, PaymentStatus   string
	Intent                  string // empty: nobody has tried to pay
	IntentStatus, Declined  string
	Metadata                map[string]string
	Back                    string
}

// Fault is what becomes of a request instead of an answer.
type Fault int

// Faults.
const (
	None     Fault = iota
	Down           // 500, and nothing was done
	Lost           // it was done, and the connection breaks before the answer
	Hang           // no answer
	Refused        // 400
	Unauthed       // 401
	Garbage        // an answer that is none
)

// Stripe is the stand-in.
type Stripe struct {
	URL string
	// Hung says that a request hangs.
	Hung chan struct{}

	mu       sync.Mutex // guards what is below
	sessions map[string]*Session
	keys     map[string]kept // by idempotency key
	made     int
	asked    int
	fault    Fault
}

type kept struct{ form, session string }

// Start runs it until the test ends.
func Start(t testing.TB) *Stripe {
	t.Helper()
	s := &Stripe{Hung: make(chan struct{}, 1), sessions: map[string]*Session{}, keys: map[string]kept{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/checkout/sessions", s.create)
	mux.HandleFunc("GET /v1/checkout/sessions/{id}", s.retrieve)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serve(mux, w, r) }))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	s.URL = server.URL
	return s
}

// serve checks the key, and does what is wrong today.
func (s *Stripe) serve(mux http.Handler, w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked++
	fault := s.fault
	s.mu.Unlock()
	if r.Header.Get("Authorization") != "Bearer "+Key {
		fault = Unauthed
	}
	switch fault {
	case None:
		mux.ServeHTTP(w, r)
	case Down:
		refuse(w, http.StatusInternalServerError, "api_error", "something is wrong")
	case Lost:
		mux.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	case Hang:
		_, _ = io.Copy(io.Discard, r.Body) // only then the server notices that the client is gone
		select {
		case s.Hung <- struct{}{}:
		default:
		}
		<-r.Context().Done()
	case Refused:
		refuse(w, http.StatusBadRequest, "invalid_request_error", "no such currency")
	case Unauthed:
		refuse(w, http.StatusUnauthorized, "invalid_request_error", "invalid API key")
	case Garbage:
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write([]byte("<html>\x00"))
	}
}

func refuse(w http.ResponseWriter, status int, kind, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"type": kind, "message": message}})
}

// create makes a session: for the same idempotency key the same one, and none for the
// same key with other parameters (docs.stripe.com/api/idempotent_requests).
func (s *Stripe) create(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		refuse(w, http.StatusBadRequest, "invalid_request_error", "form")
		return
	}
	f, key := r.PostForm, r.Header.Get("Idempotency-Key")
	s.mu.Lock()
	defer s.mu.Unlock()
	if was, ok := s.keys[key]; ok && key != "" {
		if was.form != f.Encode() {
			refuse(w, http.StatusBadRequest, "idempotency_error", "other parameters with the same key")
			return
		}
		answer(w, s.sessions[was.session])
		return
	}
	amount, err := strconv.ParseInt(f.Get("line_items[0][price_data][unit_amount]"), 10, 64)
	if err != nil || amount < 50 || f.Get("mode") != "payment" || f.Get("success_url") == "" || f.Get("payment_method_types[0]") != "card" ||
		f.Get("line_items[0][quantity]") != "1" || f.Get("line_items[0][price_data][product_data][name]") == "" {
		refuse(w, http.StatusBadRequest, "invalid_request_error", "missing parameter: "+f.Encode())
		return
	}
	s.made++
	x := &Session{ID: fmt.Sprintf("cs_test_%d", s.made), Reference: f.Get("client_reference_id"), Currency: f.Get("line_items[0][price_data][currency]"), Amount: amount,
		Status: "open", PaymentStatus: "unpaid", Metadata: map[string]string{"basalt_checkout": f.Get("metadata[basalt_checkout]")}, Back: f.Get("success_url")}
	s.sessions[x.ID] = x
	s.keys[key] = kept{f.Encode(), x.ID}
	answer(w, x)
}

func (s *Stripe) retrieve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.sessions[r.PathValue("id")]
	if x == nil {
		refuse(w, http.StatusNotFound, "invalid_request_error", "no such session")
		return
	}
	answer(w, x)
}

func answer(w http.ResponseWriter, x *Session) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(x.object())
}

func (x *Session) object() map[string]any {
	o := map[string]any{"id": x.ID, "object": "checkout.session", "client_reference_id": x.Reference, "currency": x.Currency, "amount_total": x.Amount,
		"status": x.Status, "payment_status": x.PaymentStatus, "metadata": x.Metadata, "url": "https://checkout.stripe.com/c/" + x.ID, "payment_intent": nil}
	if x.Intent != "" {
		pi := map[string]any{"id": x.Intent, "object": "payment_intent", "status": x.IntentStatus, "metadata": x.Metadata}
		if x.Declined != "" {
			pi["last_payment_error"] = map[string]any{"type": "card_error", "code": "card_declined", "message": x.Declined}
		}
		o["payment_intent"] = pi
	}
	return o
}

// Break makes each request from now on fail; None: no more.
func (s *Stripe) Break(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// Asked is how many requests there were.
func (s *Stripe) Asked() int { s.mu.Lock(); defer s.mu.Unlock(); return s.asked }

// Made is how many sessions there are.
func (s *Stripe) Made() int { s.mu.Lock(); defer s.mu.Unlock(); return s.made }

// Session as it is, by its id or by what it is a reference to.
func (s *Stripe) Session(t testing.TB, id string) Session {
	t.Helper()
	return s.change(t, id, func(*Session) {})
}

// change a session, as who is at its page does.
func (s *Stripe) change(t testing.TB, id string, do func(*Session)) Session {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.sessions {
		if x.ID == id || x.Reference == id {
			do(x)
			return *x
		}
	}
	t.Fatalf("stripe has no session %s", id)
	return Session{}
}

// Pay a session with a card that is good.
func (s *Stripe) Pay(t testing.TB, id string) Session {
	t.Helper()
	return s.change(t, id, func(x *Session) {
		x.Intent, x.IntentStatus, x.Declined = cmp.Or(x.Intent, "pi_"+x.ID), "succeeded", ""
		x.Status, x.PaymentStatus = "complete", "paid"
	})
}

// Decline a card on a session's page, which stays open.
func (s *Stripe) Decline(t testing.TB, id, why string) Session {
	t.Helper()
	return s.change(t, id, func(x *Session) {
		x.Intent, x.IntentStatus, x.Declined = cmp.Or(x.Intent, "pi_"+x.ID), "requires_payment_method", why
	})
}

// Expire a session.
func (s *Stripe) Expire(t testing.TB, id string) Session {
	t.Helper()
	return s.change(t, id, func(x *Session) { x.Status = "expired" })
}

// Change a session in any way.
func (s *Stripe) Change(t testing.TB, id string, do func(*Session)) Session {
	t.Helper()
	return s.change(t, id, do)
}

// Forget a session, as another account has never known it.
func (s *Stripe) Forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, id)
}

// Event of a session as it is now.
func (x Session) Event(kind string) []byte {
	raw, _ := json.Marshal(map[string]any{"id": "evt_" + x.ID, "object": "event", "type": kind, "api_version": "2020-08-27", "data": map[string]any{"object": x.object()}})
	return raw
}

// Sign is the header Stripe-Signature of a body (docs.stripe.com/webhooks/signature).
func Sign(secret string, at time.Time, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "%d.%s", at.Unix(), body)
	return strings.Join([]string{"t=" + strconv.FormatInt(at.Unix(), 10), "v1=" + strings.Repeat("00", 32), "v1=" + hex.EncodeToString(mac.Sum(nil))}, ",")
}
