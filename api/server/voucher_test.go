package server_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server"
	"github.com/basalt-gpu/basalt/api/server/password"
	"github.com/basalt-gpu/basalt/api/server/servertest"
)

// voucher creates a voucher as an operator.
func voucher(p *people, s api.VoucherSpec) api.Voucher {
	p.t.Helper()
	if s.Currency == "" {
		s.Currency = "EUR"
	}
	if s.AmountMicros == 0 {
		s.AmountMicros = 10_000_000
	}
	v, err := ask[api.Voucher](p, p.Token, "POST", "/v1/vouchers", api.Voucher{Kind: api.KindVoucher, Spec: s})
	wanted(p.t, "create voucher", err, "")
	return v
}

func redeem(p *people, token, org, code string) (api.Payment, *api.Error) {
	p.t.Helper()
	return ask[api.Payment](p, token, "POST", "/v1/voucher-redemptions", api.VoucherRedemption{Organization: org, Code: code})
}

// TestVouchers checks that the code is only in the response to the creation, and that
// redeeming it creates a payment of type voucher.
func TestVouchers(t *testing.T) {
	p := newPeople(t)
	admin := p.Key(t, api.Meta{Name: "k", Organization: p.acme}, api.RoleAdmin)
	wallet := func() api.Wallet {
		t.Helper()
		w, err := ask[api.Wallet](p, admin, "GET", "/v1/wallet", nil)
		wanted(t, "wallet", err, "")
		return w
	}
	if wallet().Vouchers {
		t.Error("wallet offers vouchers before any exist, want none offered")
	}
	v := voucher(p, api.VoucherSpec{Redemptions: 2, Note: "for a fair"})
	if v.Code == "" || v.Spec.Hash != "" || v.Spec.Redemptions != 2 {
		t.Fatalf("new voucher = %+v, want a code, no hash and 2 redemptions", v)
	}
	for _, at := range []string{"/v1/vouchers", "/v1/vouchers/" + v.Meta.ID, "/v1/audit-events"} {
		normal, _ := api.VoucherCode(v.Code)
		if body := p.call("GET", at, p.Token, "").Body.String(); strings.Contains(body, v.Code) || strings.Contains(body, normal) || strings.Contains(body, api.VoucherHash(nil, normal)) {
			t.Errorf("GET %s contains the code: %s", at, body)
		}
	}
	if !wallet().Vouchers {
		t.Error("wallet offers no vouchers although one exists, want them offered")
	}
	pay, err := redeem(p, admin, "", " "+strings.ToLower(v.Code)+" ")
	wanted(t, "redeem", err, "")
	if pay.Spec.Type != api.PaymentVoucher || pay.Spec.AmountMicros != 10_000_000 || pay.Meta.Organization != p.acme || pay.Spec.Reference != "voucher "+v.Meta.ID {
		t.Errorf("payment = %+v, want a voucher payment of 10 for %s", pay, p.acme)
	}
	_, err = redeem(p, admin, "", v.Code)
	wanted(t, "redeem again", err, api.CodeExists)
	got, err := ask[api.Voucher](p, p.Token, "GET", "/v1/vouchers/"+v.Meta.ID, nil)
	wanted(t, "read", err, "")
	if got.Status.Redeemed != 1 || got.Status.RedeemedAt == nil {
		t.Errorf("status of the voucher = %+v, want one redemption", got.Status)
	}
	if trail := p.call("GET", "/v1/audit-events", p.Token, "").Body.String(); !strings.Contains(trail, "RedeemVoucher") || !strings.Contains(trail, pay.Meta.ID) {
		t.Errorf("audit log has no redemption, or contains the code: %s", trail)
	}
	_, err = ask[api.Voucher](p, admin, "GET", "/v1/vouchers", nil)
	wanted(t, "list by an admin", err, api.CodeForbidden)
	_, err = ask[api.Payment](p, p.Token, "POST", "/v1/payments", api.Payment{Kind: api.KindPayment, Meta: api.Meta{Organization: p.acme},
		Spec: api.PaymentSpec{Type: api.PaymentVoucher, Currency: "EUR", AmountMicros: 1, Reference: "x"}})
	wanted(t, "note a voucher by hand", err, api.CodeInvalid)
	chosen, err := ask[api.Voucher](p, p.Token, "POST", "/v1/vouchers", api.Voucher{Kind: api.KindVoucher, Code: "FAIR-2026-GPUS", Spec: api.VoucherSpec{Currency: "EUR", AmountMicros: 1}})
	wanted(t, "a chosen code", err, "")
	_, err = ask[api.Voucher](p, p.Token, "POST", "/v1/vouchers", api.Voucher{Kind: api.KindVoucher, Code: "fair2026gpus", Spec: api.VoucherSpec{Currency: "EUR", AmountMicros: 1}})
	wanted(t, "the same code", err, api.CodeExists)
	_, err = ask[api.Voucher](p, p.Token, "DELETE", "/v1/vouchers/"+chosen.Meta.ID, nil)
	wanted(t, "delete", err, "")
	_, err = redeem(p, admin, "", "FAIR-2026-GPUS")
	wanted(t, "redeem a deleted one", err, api.CodeInvalid)
	tried, err := ask[api.Voucher](p, p.Token, "POST", "/v1/vouchers?dryRun=all", api.Voucher{Kind: api.KindVoucher, Spec: api.VoucherSpec{Currency: "EUR", AmountMicros: 1}})
	wanted(t, "dry run", err, "")
	if tried.Code != "" {
		t.Errorf("dry run returned code %s, want none", tried.Code)
	}
	resold := p.Apply(t, api.Command{Op: api.OpPutSpec, Kind: api.KindOrganization, ID: "org-00000000005d", Name: "sold", Organization: p.acme,
		Data: api.Encode(api.OrganizationSpec{Parent: api.OrganizationID(p.acme)})})[0]
	_, err = redeem(p, p.Token, resold.Meta.ID, v.Code)
	wanted(t, "for a reseller's customer", err, api.CodeState)
	other := p.Key(t, api.Meta{Name: "k2", Organization: "org-0123456789ab"}, api.RoleAdmin)
	if _, err = redeem(p, other, p.acme, v.Code); err == nil {
		t.Error("a key redeems a voucher for another organization, want an error")
	}
}

// TestVouchersAreNotGuessed checks that responses do not reveal which codes exist, and
// that too many attempts are rate-limited, even with a valid code.
func TestVouchersAreNotGuessed(t *testing.T) {
	p := newPeople(t)
	admin := p.Key(t, api.Meta{Name: "k", Organization: p.acme}, api.RoleAdmin)
	good := voucher(p, api.VoucherSpec{})
	usd := voucher(p, api.VoucherSpec{Currency: "USD"})
	used := voucher(p, api.VoucherSpec{})
	p.Apply(t, api.Command{Op: api.OpReport, Kind: api.KindVoucher, ID: used.Meta.ID, Expect: api.AnyRevision, Data: api.Encode(api.VoucherStatus{Redeemed: 1})})
	end := p.clock.Now().Add(time.Minute)
	ended := voucher(p, api.VoucherSpec{ExpiresAt: &end})
	p.clock.Advance(2 * time.Minute)
	answers := map[string]bool{}
	for _, code := range []string{usd.Code, used.Code, ended.Code, api.NewVoucherCode(), "", "x", strings.Repeat("A", 10_000), "AAAA-BBBB-CCCC-\x00"} {
		_, err := redeem(p, admin, "", code)
		wanted(t, "code "+code[:min(len(code), 30)], err, api.CodeInvalid)
		answers[err.Error()+err.Hint] = true
	}
	if len(answers) != 1 {
		t.Errorf("responses to invalid codes = %v, want the same for all", answers)
	}
	for range 2 {
		_, _ = redeem(p, admin, "", api.NewVoucherCode())
	}
	_, err := redeem(p, admin, "", good.Code)
	wanted(t, "a good code after ten others", err, api.CodeRateLimited)
	p.clock.Advance(time.Minute)
	_, err = redeem(p, admin, "", good.Code)
	wanted(t, "a minute later", err, "")
	for range 30 { // a valid code does not count
		_, err = redeem(p, admin, "", good.Code)
		wanted(t, "again", err, api.CodeExists)
		p.clock.Advance(10 * time.Second)
	}
}

// TestVouchersAtOnce checks that a voucher redeemed concurrently by several
// organizations, each on every node, gives each the credit once and is redeemed as
// often as allowed.
func TestVouchersAtOnce(t *testing.T) {
	p := newPeople(t)
	const orgs, most, nodes = 6, 4, 3
	v := voucher(p, api.VoucherSpec{Redemptions: most})
	var servers []*server.Server
	for range nodes {
		s, err := server.New(server.Options{Store: p.Store, Billing: servertest.Bill{}, KeyRate: 1e6, Passwords: password.New(password.Cost{MemoryKiB: 64, Passes: 1, Lanes: 1})})
		if err != nil {
			t.Fatal(err)
		}
		servers = append(servers, s)
	}
	ids := []string{}
	for i := range orgs {
		id := "org-0000000000a" + string(rune('0'+i))
		p.Apply(t, api.Command{Op: api.OpPutSpec, Kind: api.KindOrganization, ID: id, Name: "many" + string(rune('0'+i)), Data: api.Encode(api.OrganizationSpec{})})
		ids = append(ids, id)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	got := map[int]int{}
	for _, id := range ids {
		token := p.Key(t, api.Meta{Name: "k", Organization: id}, api.RoleAdmin)
		for _, s := range servers {
			for range 2 {
				wg.Go(func() {
					r := httptest.NewRequest(http.MethodPost, "/v1/voucher-redemptions", strings.NewReader(`{"code":"`+v.Code+`"}`))
					r.Header.Set("Content-Type", "application/json")
					r.Header.Set("Authorization", "Bearer "+token)
					rec := httptest.NewRecorder()
					s.ServeHTTP(rec, r)
					mu.Lock()
					defer mu.Unlock()
					got[rec.Code]++
				})
			}
		}
	}
	wg.Wait()
	if got[http.StatusCreated] != most || got[http.StatusCreated]+got[http.StatusConflict]+got[http.StatusBadRequest] != orgs*nodes*2 {
		t.Errorf("statuses = %v, want %d of 201, and else 409 or 400", got, most)
	}
	list, err := p.Store.List(t.Context(), api.ListQuery{Kind: api.KindPayment, Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	of := map[string]int{}
	for _, o := range list.Items {
		of[o.Meta.Organization]++
	}
	for org, n := range of {
		if n != 1 {
			t.Errorf("organization %s has %d payments, want 1", org, n)
		}
	}
	o, err := p.Store.Get(t.Context(), api.KindVoucher, v.Meta.ID)
	if err != nil {
		t.Fatal(err)
	}
	if d, err := api.Decode[api.Voucher](o); err != nil || d.Status.Redeemed != most || len(of) != most {
		t.Errorf("voucher was redeemed %d times by %d organizations, error %v; want %d", d.Status.Redeemed, len(of), err, most)
	}
}

// TestRedeemAgain checks that a repeated request with the same Idempotency-Key gets the
// same response, also after the voucher is used up.
func TestRedeemAgain(t *testing.T) {
	p := newPeople(t)
	admin := p.Key(t, api.Meta{Name: "k", Organization: p.acme}, api.RoleAdmin)
	v := voucher(p, api.VoucherSpec{})
	ask := func(key string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodPost, "/v1/voucher-redemptions", strings.NewReader(`{"code":"`+v.Code+`"}`))
		for k, v := range map[string]string{"Content-Type": "application/json", "Authorization": "Bearer " + admin, "Idempotency-Key": key} {
			r.Header.Set(k, v)
		}
		rec := httptest.NewRecorder()
		p.Server.ServeHTTP(rec, r)
		return rec
	}
	first, again, other := ask("a"), ask("a"), ask("b")
	if first.Code != http.StatusCreated || again.Code != http.StatusCreated || first.Body.String() != again.Body.String() {
		t.Errorf("responses with one key: %d %s and %d %s, want the same", first.Code, first.Body, again.Code, again.Body)
	}
	if other.Code != http.StatusConflict {
		t.Errorf("response with another key: %d %s, want 409", other.Code, other.Body)
	}
}
