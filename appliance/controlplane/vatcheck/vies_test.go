package vatcheck

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/basalt-gpu/basalt/api/outbound"
	"github.com/basalt-gpu/basalt/appliance/controlplane/vatcheck/viestest"
)

const (
	french = "FR40303265045"
	greek  = "EL094259216"
	seller = "DE136695976"
)

var businesses = map[string]viestest.Business{french: {Name: "ACME SA", Address: "1 RUE A\n75001 PARIS"}, greek: {Name: "---", Address: "---"}}

// local allows the addresses of test servers.
var local = outbound.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}

func service(v *viestest.VIES) VIES { return VIES{Client: NewClient(local), URL: v.URL} }

func TestCheck(t *testing.T) {
	v := viestest.New(t, businesses)
	for name, c := range map[string]struct {
		number, requester string
		want              Answer
		ask               viestest.Ask
	}{
		"valid":               {french, seller, Answer{Valid: true, Consultation: "WAPIAAAA00000001", Name: "ACME SA", Address: "1 RUE A 75001 PARIS"}, viestest.Ask{CountryCode: "FR", VATNumber: "40303265045", RequesterMemberStateCode: "DE", RequesterNumber: "136695976"}},
		"Greece, undisclosed": {greek, "", Answer{Valid: true}, viestest.Ask{CountryCode: "EL", VATNumber: "094259216"}},
		"unknown":             {"ATU13585627", "", Answer{}, viestest.Ask{CountryCode: "AT", VATNumber: "U13585627"}},
	} {
		got, err := service(v).Check(t.Context(), c.number, c.requester)
		if c.want.Consultation != "" && strings.HasPrefix(got.Consultation, "WAPIAAAA") {
			c.want.Consultation = got.Consultation // they are numbered
		}
		if err != nil || got != c.want {
			t.Errorf("%s: Check = %+v, %v; want %+v", name, got, err, c.want)
		}
		if d := cmp.Diff([]viestest.Ask{c.ask}, v.Asked()); d != "" {
			t.Errorf("%s: request mismatch (-want +got):\n%s", name, d)
		}
	}
}

// Whatever goes wrong is a failure without a result, soon.
func TestCheckFails(t *testing.T) {
	v := viestest.New(t, businesses)
	s := service(v)
	s.Client = outbound.NewClient(outbound.Options{Policy: local, MaxBody: maxAnswer, Header: 200 * time.Millisecond, Silence: 200 * time.Millisecond, Total: time.Second})
	for fault, scope := range map[string]Scope{
		viestest.Hang: OfService, viestest.Drop: OfService, viestest.Garbage: OfService, viestest.Huge: OfService, viestest.Types: OfService,
		viestest.Other: OfService, viestest.Empty: OfService, viestest.Both: OfService, viestest.Down: OfService, viestest.Busy: OfService, viestest.Redirect: OfService,
		"INVALID_INPUT": OfNumber, "VAT_BLOCKED": OfNumber, "INVALID_REQUESTER_INFO": OfRequester, "MS_UNAVAILABLE": OfState, "TIMEOUT": OfState,
		"MS_MAX_CONCURRENT_REQ": OfState, "GLOBAL_MAX_CONCURRENT_REQ_TIME": OfService, "IP_BLOCKED": OfService, "SERVICE_UNAVAILABLE": OfService,
	} {
		v.Fail(func(viestest.Ask) string { return fault })
		began := time.Now()
		got, err := s.Check(t.Context(), french, seller)
		var f *Failure
		if !errors.As(err, &f) || f.Scope != scope || f.Reason == "" || got != (Answer{}) {
			t.Errorf("%s: Check = %+v, %v; want a failure of scope %d", fault, got, err, scope)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%s: Check took %v", fault, took)
		}
	}
	if _, err := s.Check(t.Context(), "FR", seller); err == nil {
		t.Error("Check of a prefix = nil, want an error")
	}
}

func TestCheckEndsWithItsContext(t *testing.T) {
	v := viestest.New(t, businesses)
	v.Fail(func(viestest.Ask) string { return viestest.Hang })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := (VIES{Client: http.DefaultClient, URL: v.URL}).Check(ctx, french, ""); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Check = %v, want %v", err, context.DeadlineExceeded)
	}
}
