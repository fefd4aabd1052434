package stripe

import (
	"fmt"
	"math"
)

// Amounts are integers of the currency's smallest unit (docs.stripe.com/currencies).
var (
	units = map[string]bool{"BIF": true, "CLP": true, "DJF": true, "GNF": true, "JPY": true, "KMF": true, "KRW": true, "MGA": true, "PYG": true, "RWF": true,
		"VND": true, "VUV": true, "XAF": true, "XOF": true, "XPF": true}
	thousandths = map[string]bool{"BHD": true, "JOD": true, "KWD": true, "OMR": true, "TND": true}
)

// perMinor returns how many millionths the smallest unit of a currency has.
func perMinor(currency string) int64 {
	switch {
	case units[currency]:
		return 1_000_000
	case thousandths[currency]:
		return 1000
	}
	return 10_000
}

// minor returns an amount in the currency's smallest unit, or an error if it is not a
// whole number.
func minor(currency string, micros int64) (int64, error) {
	per := perMinor(currency)
	if micros <= 0 || micros%per != 0 {
		return 0, fmt.Errorf("%d millionths of %s cannot be charged: want a multiple of %d", micros, currency, per)
	}
	return micros / per, nil
}

// micros returns the millionths of an amount in the smallest unit, or 0 if it is not
// valid.
func micros(currency string, minor int64) int64 {
	per := perMinor(currency)
	if minor <= 0 || minor > math.MaxInt64/per {
		return 0
	}
	return minor * per
}
