package api

import "time"

// CheckoutState is the state of a checkout.
type CheckoutState string

// Checkout states. A checkout without one is being opened.
const (
	CheckoutOpening    CheckoutState = "Opening"
	CheckoutOpen       CheckoutState = "Open"
	CheckoutProcessing CheckoutState = "Processing"
	CheckoutPaid       CheckoutState = "Paid"
	CheckoutFailed     CheckoutState = "Failed"
	CheckoutExpired    CheckoutState = "Expired"
)

// MaxOpenCheckouts limits the checkouts of an organization that are open, or that failed
// to charge a card on file within CheckoutLife, since stolen payment cards are tested in
// bulk.
const MaxOpenCheckouts = 10

// CheckoutLife is how long a checkout can be paid after it was created.
const CheckoutLife = time.Hour

// Done reports whether the checkout is in a final state.
func (c Checkout) Done() bool {
	return c.Status.State == CheckoutPaid || c.Status.State == CheckoutFailed || c.Status.State == CheckoutExpired
}

// Limited reports whether the checkout counts for MaxOpenCheckouts.
func (c Checkout) Limited(now time.Time) bool {
	declined := c.Spec.Card != "" && !c.Spec.TopUp && !c.Spec.AutoPay && c.Status.State == CheckoutFailed
	return !c.Done() || declined && now.Sub(c.Meta.CreatedAt) < CheckoutLife
}

// ValidateCheckout checks a spec whose amount is known. The limits come from the
// payment settings; the amount for an invoice is its unpaid part, however small.
func ValidateCheckout(s CheckoutSpec, limits PaymentSettingsSpec) error {
	var bad faults
	least := limits.MinMicros
	if s.Invoice != "" {
		least = chargeStep(s.Currency)
	}
	bad.note(currency(s.Currency))
	switch {
	case s.AmountMicros < least || s.AmountMicros > limits.MaxMicros:
		bad.note(invalid("spec.amountMicros", "must be between %d and %d millionths, got %d", least, limits.MaxMicros, s.AmountMicros).WithHint("pay larger amounts in parts, or by bank transfer"))
	case s.AmountMicros%chargeStep(s.Currency) != 0:
		bad.note(invalid("spec.amountMicros", "must be a multiple of %d millionths, the least that is charged in %s", chargeStep(s.Currency), clip(s.Currency)))
	}
	return bad.err()
}

// uncharged are the currencies that are charged in whole units only
// (docs.stripe.com/currencies: zero-decimal currencies, and special cases).
var uncharged = map[string]bool{"BIF": true, "CLP": true, "DJF": true, "GNF": true, "ISK": true, "JPY": true, "KMF": true, "KRW": true, "MGA": true, "PYG": true, "RWF": true,
	"UGX": true, "VND": true, "VUV": true, "XAF": true, "XOF": true, "XPF": true}

// chargeStep returns the unit that charged amounts in a currency are multiples of, in
// millionths.
func chargeStep(currency string) int64 {
	if uncharged[currency] {
		return 1_000_000
	}
	return microsPerCent
}

// leastCharges are the least amounts that are charged at once, in millionths
// (docs.stripe.com/currencies: minimum and maximum charge amounts).
var leastCharges = map[string]int64{"AED": 2_000_000, "AUD": 500_000, "BGN": 1_000_000, "BRL": 500_000, "CAD": 500_000, "CHF": 500_000, "CZK": 15_000_000,
	"DKK": 2_500_000, "EUR": 500_000, "GBP": 300_000, "HKD": 4_000_000, "HUF": 175_000_000, "INR": 500_000, "JPY": 50_000_000, "MXN": 10_000_000, "MYR": 2_000_000,
	"NOK": 3_000_000, "NZD": 500_000, "PLN": 2_000_000, "RON": 2_000_000, "SEK": 3_000_000, "SGD": 500_000, "THB": 10_000_000, "USD": 500_000}

// LeastCharge returns the least amount that the payment provider charges at once in a
// currency, in millionths. It is 0 for currencies for which the provider states none: it
// may refuse small amounts in them.
func LeastCharge(currency string) int64 { return leastCharges[currency] }

// Chargeable returns an owed amount, rounded up to an amount that can be charged.
func Chargeable(currency string, micros int64) int64 {
	step := chargeStep(currency)
	return (micros + step - 1) / step * step
}
