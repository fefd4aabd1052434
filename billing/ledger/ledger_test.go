package ledger

import (
	"math"
	"slices"
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

func TestLedgerRefuses(t *testing.T) {
	l := NewLedger("EUR")
	good := Transaction{ID: "txn-1", Currency: "EUR", Entries: []Entry{{Receivable("org-1"), Revenue(api.MeterGPU), 5}}}
	if err := l.Post(good); err != nil {
		t.Fatal(err)
	}
	changed := good
	changed.Entries = []Entry{{Receivable("org-1"), Revenue(api.MeterGPU), 6}}
	for name, c := range map[string]struct {
		tx   Transaction
		code api.Code
	}{
		"changed":  {changed, api.CodeConflict},
		"currency": {Transaction{ID: "txn-2", Currency: "USD"}, api.CodeInvalid},
		"no id":    {Transaction{Currency: "EUR"}, api.CodeInvalid},
		"negative": {Transaction{ID: "txn-2", Currency: "EUR", Entries: []Entry{{"a", "b", 1}, {"a", "b", -1}}}, api.CodeInvalid},
		"itself":   {Transaction{ID: "txn-2", Currency: "EUR", Entries: []Entry{{"a", "a", 1}}}, api.CodeInvalid},
		"overflow": {Transaction{ID: "txn-2", Currency: "EUR", Entries: []Entry{{"a", "b", math.MaxInt64}, {"a", "c", 1}}}, api.CodeTooLarge},
	} {
		if err := l.Post(c.tx); err == nil || api.CodeOf(err) != c.code {
			t.Errorf("%s: Post = %v, want %s", name, err, c.code)
		}
	}
	if got := l.Accounts(); !slices.Equal(got, []Account{"receivable/org-1", "revenue/gpu-nanoseconds"}) || l.Balance("receivable/org-1") != 5 {
		t.Errorf("accounts = %v, want receivable/org-1 and revenue/gpu-nanoseconds with unchanged balances", got)
	}
}

// TestVoucherIsNoCash checks that credit from a voucher reduces the debt without cash.
func TestVoucherIsNoCash(t *testing.T) {
	p := api.Payment{Meta: api.Meta{ID: "pay-1", Organization: "org-1"}, Spec: api.PaymentSpec{Type: api.PaymentVoucher, Currency: "EUR", AmountMicros: 5, Reference: "voucher vch-1"}}
	l := NewLedger("EUR")
	if err := l.Post(OfPayment(p)); err != nil {
		t.Fatal(err)
	}
	for account, want := range map[Account]int64{Receivable("org-1"): -5, Vouchers: 5, Cash: 0} {
		if got := l.Balance(account); got != want {
			t.Errorf("balance of %s = %d, want %d", account, got, want)
		}
	}
}
