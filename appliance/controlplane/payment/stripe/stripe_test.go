package stripe

import (
	"bytes"
	"errors"
	"maps"
	"math"
	"net/http"
	"slices"
	"testing"
	"time"

	stripego "github.com/stripe/stripe-go/v84"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/payment"
	"github.com/basalt-gpu/basalt/appliance/controlplane/payment/stripetest"
)

func TestAmounts(t *testing.T) {
	for _, c := range []struct {
		currency      string
		micros, minor int64 // minor 0 means refused
	}{
		{"EUR", 50_000_000, 5000}, {"EUR", 10_000, 1}, {"EUR", 9_999, 0}, {"EUR", 15_000, 0}, {"EUR", 0, 0}, {"EUR", -10_000, 0},
		{"JPY", 500_000_000, 500}, {"JPY", 500_010_000, 0}, {"KWD", 1_230_000, 1230}, {"UGX", 5_000_000, 500},
	} {
		got, err := minor(c.currency, c.micros)
		if got != c.minor || (err != nil) != (c.minor == 0) {
			t.Errorf("minor(%s, %d) = %d, %v; want %d", c.currency, c.micros, got, err, c.minor)
		}
		if back := micros(c.currency, got); c.minor != 0 && back != c.micros {
			t.Errorf("micros(%s, %d) = %d, want %d", c.currency, got, back, c.micros)
		}
	}
	for _, bad := range []int64{0, -1, math.MinInt64, math.MaxInt64} {
		if got := micros("EUR", bad); got != 0 {
			t.Errorf("micros(EUR, %d) = %d, want 0", bad, got)
		}
	}
}

// FuzzNotice reads events of all kinds: the result is the ID of a checkout, a card
// or a refund, or nothing, and always nothing unless the signature is valid.
func FuzzNotice(f *testing.F) {
	at := time.Unix(1_700_000_000, 0)
	good := stripetest.Session{ID: "cs_1", Metadata: map[string]string{label: "chk-0123456789ab"}}.Event("checkout.session.completed")
	f.Add(good, stripetest.Sign(stripetest.Secret, at, good))
	f.Add([]byte(`{"object":"event","data":{"object":{"object":"payment_intent","metadata":{"basalt_checkout":["chk-0123456789ab"]}}}}`), "t=1,v1=00")
	f.Add([]byte(`{"object":"event","data":{"object":{"object":"setup_intent","metadata":{"basalt_card":"card-0123456789ab"}}}}`), "t=1,v1=00")
	f.Add([]byte(`{"object":"event","data":{"object":{"object":"setup_intent","metadata":{"basalt_card":"chk-0123456789ab"}}}}`), "t=1,v1=00")
	f.Add([]byte(`{"object":"event","data":{"object":{"object":"refund","metadata":{"basalt_refund":"ref-0123456789ab"}}}}`), "t=1,v1=00")
	f.Add([]byte(`{"object":"event","data":{"object":{"object":"dispute","id":"du_0123"}}}`), "t=1,v1=00")
	f.Add([]byte(`{"object":"event","data":{"object":{"object":"dispute","id":"../refunds"}}}`), "t=1,v1=00")
	f.Add([]byte(`{"object":"event","data":{"object":{"object":"refund","id":"re_0123","metadata":{}}}}`), "t=1,v1=00")
	f.Add([]byte(`{"object":"event","data":null}`), "t=9999999999999999999,v1=")
	f.Add([]byte("{"), "v1=,t")
	p := New(api.PaymentSettingsSpec{SecretKey: stripetest.Key, WebhookSecret: stripetest.Secret}, http.DefaultClient, "")
	f.Fuzz(func(t *testing.T, body []byte, signature string) {
		if of, err := p.EventSubject(http.Header{"Stripe-Signature": {signature}}, body); !errors.Is(err, payment.ErrSignature) {
			t.Errorf("notice with the old signature %q = %+v, %v; want %v", signature, of, err, payment.ErrSignature)
		}
		signed := http.Header{"Stripe-Signature": {stripetest.Sign(stripetest.Secret, time.Now(), body)}}
		of, err := p.EventSubject(signed, body)
		if errors.Is(err, payment.ErrSignature) {
			t.Errorf("notice with a valid signature: %v", err)
		}
		if of.Dispute != "" && (of.ID != "" || !providerID.MatchString(of.Dispute) || err != nil) {
			t.Errorf("notice = %+v, %v; want the ID of a dispute alone", of, err)
		}
		if of.Refund != "" && (of.ID != "" || of.Dispute != "" || !providerID.MatchString(of.Refund) || err != nil) {
			t.Errorf("notice = %+v, %v; want the ID of a refund alone", of, err)
		}
		id := of.ID
		if kind, _ := api.KindOfID(id); id != "" && (!slices.Contains(slices.Collect(maps.Values(labels)), kind) || !api.LooksLikeID(id) || err != nil) {
			t.Errorf("notice = %q, %v; want the ID of a checkout, a card or a refund, or none", id, err)
		}
		if bytes.Contains(body, []byte("chk-0123456789ab")) && id != "" && id != "chk-0123456789ab" && !bytes.Contains(body, []byte(id)) {
			t.Errorf("notice = checkout %q, want one that is in the event", id)
		}
	})
}

// TestReasons checks the cause that a payer reads about a declined card.
func TestReasons(t *testing.T) {
	for _, c := range []struct {
		e    stripego.Error
		want api.CauseCode
	}{
		{stripego.Error{Code: stripego.ErrorCodeCardDeclined, DeclineCode: stripego.DeclineCodeInsufficientFunds}, api.CauseCardFunds},
		{stripego.Error{Code: stripego.ErrorCodeCardDeclined, DeclineCode: stripego.DeclineCodeDoNotHonor}, api.CauseCardDeclined},
		{stripego.Error{Code: stripego.ErrorCodeCardDeclined, DeclineCode: stripego.DeclineCodeAuthenticationRequired}, api.CauseCardAuthentication},
		{stripego.Error{Code: stripego.ErrorCodeAuthenticationRequired}, api.CauseCardAuthentication},
		{stripego.Error{Code: stripego.ErrorCodeExpiredCard}, api.CauseCardExpired},
		{stripego.Error{Code: stripego.ErrorCodeIncorrectCVC}, api.CauseCardDetails},
		{stripego.Error{Code: "of a later version"}, api.CauseCardDeclined},
	} {
		if got := reasonOf(&c.e); got.Cause != (api.Cause{Code: c.want, Plain: true}) || got.Text == "" {
			t.Errorf("reason of %s, %s = %+v, want a text and cause %s", c.e.Code, c.e.DeclineCode, got, c.want)
		}
	}
}
