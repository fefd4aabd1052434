package api

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestVoucherCode(t *testing.T) {
	for in, want := range map[string]string{
		"abcd-efgh-jkmn-pqrs-tvwx": "ABCDEFGHJKMNPQRSTVWX",
		" OIL0 1234 5678 ":         "011012345678",
		"ABCDEFGHJKM":              "", // too short
		strings.Repeat("A", 65):    "",
		"ABCDEFGHJKMN_":            "",
		"ABCDEFGHJKMNÄ":            "",
		"":                         "",
	} {
		got, ok := VoucherCode(in)
		if want == "" && ok || want != "" && (got != want || !ok) {
			t.Errorf("VoucherCode(%q) = %q, %v, want %q", in, got, ok, want)
		}
	}
	seen := map[string]bool{}
	for range 1000 {
		c := NewVoucherCode()
		if norm, ok := VoucherCode(c); !ok || norm != strings.ReplaceAll(c, "-", "") || seen[c] {
			t.Fatalf("NewVoucherCode() = %q with normal form %q, %v; want a new, valid code", c, norm, ok)
		}
		seen[c] = true
	}
	for code, good := range map[string]bool{"WELCOME-2027-ACME": true, "AAAAAAAAAAAAAAAA": false, "SHORT": false, "with/slash-2027": false} {
		if err := ValidateVoucherCode(code); (err == nil) != good {
			t.Errorf("ValidateVoucherCode(%q) = %v, want good %v", code, err, good)
		}
	}
}

func FuzzVoucherCode(f *testing.F) {
	for _, s := range []string{"", "ABCD-EFGH-JKMN", "ıſ", "oil", "\xff", strings.Repeat("-", 200)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		code, ok := VoucherCode(s)
		if !ok {
			return
		}
		if again, ok := VoucherCode(code); !ok || again != code {
			t.Errorf("VoucherCode(%q) = %q, whose own normal form is %q, %v; want it unchanged", s, code, again, ok)
		}
		if strings.Trim(code, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" || strings.ContainsAny(code, "OIL") {
			t.Errorf("VoucherCode(%q) = %q, want digits and capitals without O, I and L only", s, code)
		}
	})
}

func TestValidateVoucher(t *testing.T) {
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	good := DefaultVoucher(VoucherSpec{Currency: "EUR", AmountMicros: 10_000_000})
	if err := ValidateVoucher(good, now); err != nil {
		t.Fatalf("ValidateVoucher of a valid voucher: %v", err)
	}
	past := now.Add(-time.Second)
	for field, change := range map[string]func(*VoucherSpec){
		"spec.currency":     func(s *VoucherSpec) { s.Currency = "euro" },
		"spec.amountMicros": func(s *VoucherSpec) { s.AmountMicros = -1 },
		"spec.redemptions":  func(s *VoucherSpec) { s.Redemptions = -1 },
		"spec.expiresAt":    func(s *VoucherSpec) { s.ExpiresAt = &past },
		"spec.note":         func(s *VoucherSpec) { s.Note = strings.Repeat("x", 1000) },
		"spec.hash":         func(s *VoucherSpec) { s.Hash = "00" },
	} {
		bad := good
		change(&bad)
		var err *Error
		if !errors.As(ValidateVoucher(bad, now), &err) || err.Field != field {
			t.Errorf("ValidateVoucher with an invalid %s = %v, want an error there", field, err)
		}
	}
	v := Voucher{Spec: good}
	v.Spec.ExpiresAt = &now
	if got := v.State(past); got != VoucherOpen {
		t.Errorf("state before the expiry = %s, want %s", got, VoucherOpen)
	}
	if got := v.State(now); got != VoucherExpired {
		t.Errorf("state at the expiry = %s, want %s", got, VoucherExpired)
	}
	v.Status.Redeemed = 1
	if got := v.State(past); got != VoucherUsed {
		t.Errorf("state when fully redeemed = %s, want %s", got, VoucherUsed)
	}
}
