// Package stripetest is a fake of Stripe's API according to its documentation
// (docs.stripe.com/api): Checkout Sessions in the modes payment and setup, payment
// methods, PaymentIntents, refunds, disputes, idempotency keys, and signed events. It can
// decline cards, be slow, drop connections, and deliver events as often and in the
// order that a test wants.
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
	"net/url"
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
	Mode                    string
	Status, PaymentStatus   string
	Intent                  string // empty: no attempt to pay yet
	IntentStatus, Declined  string
	Metadata                map[string]string // of the session
	SetupMetadata           map[string]string // of its SetupIntent
	PaymentMethod, Customer string            // of its SetupIntent, once it has succeeded
	Back                    string
}

// Fault is how a request fails.
type Fault int

// The faults.
const (
	None     Fault = iota
	Down           // status 500, and nothing was done
	Lost           // done, but the connection is lost before the response
	Hang           // no response
	Refused        // status 400
	Unauthed       // status 401
	Garbage        // an invalid response
)

// Stripe is the fake.
type Stripe struct {
	URL string
	// Hung receives a value when a request hangs.
	Hung chan struct{}

	mu          sync.Mutex // guards the fields below
	sessions    map[string]*Session
	keys        map[string]idempotentResult // by idempotency key
	methods     map[string]*Method
	intents     map[string]*Intent
	charges     map[string]chargeResult // by idempotency key
	banks       map[string]Bank         // by payment method
	now         func() time.Time
	created     int
	requests    int
	fault       Fault
	chargeFault Fault // of requests for a charge

	refunds      map[string]*Refund
	refundsBegin string // status of new refunds
	refundFault  Fault  // of requests for a refund
	disputes     map[string]*Dispute
}

type idempotentResult struct{ form, session string }

// Start runs the fake until the test ends.
func Start(t testing.TB) *Stripe {
	t.Helper()
	s := &Stripe{Hung: make(chan struct{}, 1), sessions: map[string]*Session{}, keys: map[string]idempotentResult{}, methods: map[string]*Method{},
		intents: map[string]*Intent{}, charges: map[string]chargeResult{}, banks: map[string]Bank{}, now: time.Now,
		refunds: map[string]*Refund{}, refundsBegin: "succeeded", disputes: map[string]*Dispute{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/checkout/sessions", s.create)
	mux.HandleFunc("GET /v1/checkout/sessions/{id}", s.retrieve)
	mux.HandleFunc("POST /v1/payment_intents", s.createIntent)
	mux.HandleFunc("GET /v1/payment_intents", s.listIntents)
	mux.HandleFunc("GET /v1/payment_intents/{id}", s.retrieveIntent)
	mux.HandleFunc("GET /v1/disputes", s.listDisputes)
	mux.HandleFunc("GET /v1/disputes/{id}", s.retrieveDispute)
	mux.HandleFunc("POST /v1/refunds", s.createRefund)
	mux.HandleFunc("GET /v1/refunds", s.listRefunds)
	mux.HandleFunc("GET /v1/refunds/{id}", s.retrieveRefund)
	mux.HandleFunc("GET /v1/payment_methods/{id}", s.retrieveMethod)
	mux.HandleFunc("POST /v1/payment_methods/{id}/detach", s.detach)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serve(mux, w, r) }))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	s.URL = server.URL
	return s
}

// serve checks the key, and applies the current fault.
func (s *Stripe) serve(mux http.Handler, w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests++
	fault := s.fault
	if r.Method == http.MethodPost && r.URL.Path == "/v1/payment_intents" && fault == None {
		fault = s.chargeFault
	}
	if r.Method == http.MethodPost && r.URL.Path == "/v1/refunds" && fault == None {
		fault = s.refundFault
	}
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
		_, _ = io.Copy(io.Discard, r.Body) // otherwise the server does not notice that the client has disconnected
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

// create creates a session: for the same idempotency key it returns the same one, and
// refuses the key with other parameters (docs.stripe.com/api/idempotent_requests).
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
		respond(w, s.sessions[was.session])
		return
	}
	if f.Get("mode") == "setup" {
		if why := checkSetup(f); why != "" {
			refuse(w, http.StatusBadRequest, "invalid_request_error", why)
			return
		}
		x := s.add(f, &Session{Mode: "setup", PaymentStatus: "no_payment_required", Intent: fmt.Sprintf("seti_%d", s.created+1), IntentStatus: "requires_payment_method"})
		s.keys[key] = idempotentResult{f.Encode(), x.ID}
		respond(w, x)
		return
	}
	amount, err := strconv.ParseInt(f.Get("line_items[0][price_data][unit_amount]"), 10, 64)
	if err != nil || amount < 50 || f.Get("mode") != "payment" || f.Get("success_url") == "" || f.Get("payment_method_types[0]") != "card" ||
		f.Get("line_items[0][quantity]") != "1" || f.Get("line_items[0][price_data][product_data][name]") == "" {
		refuse(w, http.StatusBadRequest, "invalid_request_error", "missing parameter: "+f.Encode())
		return
	}
	x := s.add(f, &Session{Mode: "payment", Currency: f.Get("line_items[0][price_data][currency]"), Amount: amount, PaymentStatus: "unpaid"})
	s.keys[key] = idempotentResult{f.Encode(), x.ID}
	respond(w, x)
}

// add adds a session with the parameters that all modes have. The caller holds mu.
func (s *Stripe) add(f url.Values, x *Session) *Session {
	s.created++
	x.ID, x.Status = fmt.Sprintf("cs_test_%d", s.created), "open"
	x.Reference, x.Back = f.Get("client_reference_id"), f.Get("success_url")
	x.Metadata, x.SetupMetadata = metadataOf(f, "metadata"), metadataOf(f, "setup_intent_data[metadata]")
	s.sessions[x.ID] = x
	return x
}

// retrieve returns a session; the payment method of its SetupIntent is an ID unless it
// was expanded (docs.stripe.com/api/expanding_objects).
func (s *Stripe) retrieve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.sessions[r.PathValue("id")]
	if x == nil {
		refuse(w, http.StatusNotFound, "invalid_request_error", "no such session")
		return
	}
	o := x.object()
	expand := strings.Join([]string{r.URL.Query().Get("expand[]"), r.URL.Query().Get("expand[0]")}, "")
	if si, ok := o["setup_intent"].(map[string]any); ok {
		switch m := s.methods[x.PaymentMethod]; {
		case !strings.HasPrefix(expand, "setup_intent"):
			o["setup_intent"] = x.Intent
		case expand == "setup_intent.payment_method" && m != nil:
			si["payment_method"] = m.object()
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(o)
}

func respond(w http.ResponseWriter, x *Session) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(x.object())
}

func (x *Session) object() map[string]any {
	o := map[string]any{"id": x.ID, "object": "checkout.session", "client_reference_id": x.Reference, "currency": x.Currency, "amount_total": x.Amount,
		"status": x.Status, "payment_status": x.PaymentStatus, "metadata": x.Metadata, "url": "https://checkout.stripe.com/c/" + x.ID, "payment_intent": nil}
	if x.Mode == "setup" {
		x.addSetup(o)
	} else if x.Intent != "" {
		pi := map[string]any{"id": x.Intent, "object": "payment_intent", "status": x.IntentStatus, "metadata": x.Metadata}
		if x.Declined != "" {
			pi["last_payment_error"] = map[string]any{"type": "card_error", "code": "card_declined", "message": x.Declined}
		}
		o["payment_intent"] = pi
	}
	return o
}

// Break makes each request fail from now on; None ends that.
func (s *Stripe) Break(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// Asked returns the number of requests.
func (s *Stripe) Asked() int { s.mu.Lock(); defer s.mu.Unlock(); return s.requests }

// Made returns the number of sessions that were created.
func (s *Stripe) Made() int { s.mu.Lock(); defer s.mu.Unlock(); return s.created }

// Session returns a session, by its ID or its reference.
func (s *Stripe) Session(t testing.TB, id string) Session {
	t.Helper()
	return s.change(t, id, func(*Session) {})
}

// change changes a session, as a user on its page does.
func (s *Stripe) change(t testing.TB, id string, edit func(*Session)) Session {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.sessions {
		if x.ID == id || x.Reference == id {
			edit(x)
			return *x
		}
	}
	t.Fatalf("stripe has no session %s", id)
	return Session{}
}

// Pay pays a session with a valid card.
func (s *Stripe) Pay(t testing.TB, id string) Session {
	t.Helper()
	return s.change(t, id, func(x *Session) {
		x.Intent, x.IntentStatus, x.Declined = cmp.Or(x.Intent, "pi_"+x.ID), "succeeded", ""
		x.Status, x.PaymentStatus = "complete", "paid"
	})
}

// Decline declines a card on a session's page, which stays open.
func (s *Stripe) Decline(t testing.TB, id, why string) Session {
	t.Helper()
	return s.change(t, id, func(x *Session) {
		x.Intent, x.IntentStatus, x.Declined = cmp.Or(x.Intent, "pi_"+x.ID), "requires_payment_method", why
	})
}

// Expire expires a session.
func (s *Stripe) Expire(t testing.TB, id string) Session {
	t.Helper()
	return s.change(t, id, func(x *Session) { x.Status = "expired" })
}

// Change changes a session in any way.
func (s *Stripe) Change(t testing.TB, id string, edit func(*Session)) Session {
	t.Helper()
	return s.change(t, id, edit)
}

// Forget removes a session, as if it belonged to another account.
func (s *Stripe) Forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, id)
}

// Event returns an event about the session in its current state.
func (x Session) Event(kind string) []byte {
	raw, _ := json.Marshal(map[string]any{"id": "evt_" + x.ID, "object": "event", "type": kind, "api_version": "2020-08-27", "data": map[string]any{"object": x.object()}})
	return raw
}

// Sign returns the header Stripe-Signature of a body
// (docs.stripe.com/webhooks/signature).
func Sign(secret string, at time.Time, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "%d.%s", at.Unix(), body)
	return strings.Join([]string{"t=" + strconv.FormatInt(at.Unix(), 10), "v1=" + strings.Repeat("00", 32), "v1=" + hex.EncodeToString(mac.Sum(nil))}, ",")
}
