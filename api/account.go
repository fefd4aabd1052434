package api

import "regexp"

var currencyPattern = regexp.MustCompile(`^[A-Z]{3}$`)

// Account types.
const (
	AccountReceivable = "receivable"
	AccountRevenue    = "revenue"
)

// DefaultAccount fills in what was left out.
func DefaultAccount(s AccountSpec) AccountSpec {
	if s.Type == "" {
		s.Type = AccountReceivable
	}
	return s
}

// ValidateAccount checks a spec.
func ValidateAccount(s AccountSpec) error {
	return firstError(currency(s.Currency), oneOf("spec.type", s.Type, AccountReceivable, AccountRevenue))
}

// ChangeAccount checks what may change: sums in it have a currency and a side.
func ChangeAccount(old, s AccountSpec) error {
	if old != s {
		return invalid("spec", "an account's currency and type do not change").WithHint("make another account")
	}
	return nil
}

func currency(c string) *Error {
	if !currencyPattern.MatchString(c) {
		return invalid("spec.currency", "%q is no currency", clip(c)).WithHint("an ISO 4217 code, as EUR")
	}
	return nil
}
