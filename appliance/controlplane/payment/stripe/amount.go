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

// perMinor is how many millionths the smallest unit of a currency has.
func perMinor(currency string) int64 {
	switch {
	case units[currency]:
		return 1_000_000
	case thousandths[currency]:
		return 1000
	}
	return 10_000
}

// minor is an amount in the currency's smallest unit; one that is not whole is refused.
func minor(currency string, micros int64) (int64, error) {
	per := perMinor(currency)
	if micros <= 0 || micros%per != 0 {
		return 0, fmt.Errorf("%d millionths of %s cannot be charged: want a multiple of %d", micros, currency, per)
	}
	return micros / per, nil
}

// micros of an amount in the smallest unit; 0 for one that cannot be.
func micros(currency string, minor int64) int64 {
	per := perMinor(currency)
	if minor <= 0 || minor > math.MaxInt64/per {
		return 0
	}
	return minor * per
}
