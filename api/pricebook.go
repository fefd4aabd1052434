package api

import (
	"fmt"
	"math"
)

const (
	maxPrices = 256
	// maxPriceMicros, a thousand million of a currency, is beyond any real
	// price and keeps sums far from overflow.
	maxPriceMicros = 1e15
)

// DefaultPriceBook is the name of the price book of organizations that name none.
const DefaultPriceBook = "default"

// Meters that there are, in the order of an invoice.
func Meters() []Meter {
	return []Meter{MeterVCPU, MeterMemory, MeterVolume, MeterGPU, MeterVRAM, MeterCopy, MeterLaunch}
}

// ValidatePriceBook checks a spec.
func ValidatePriceBook(s PriceBookSpec) error {
	if err := currency(s.Currency); err != nil {
		return err
	}
	if len(s.Prices) > maxPrices {
		return invalid("spec.prices", "%d prices, at most %d", len(s.Prices), maxPrices)
	}
	seen := map[Meter]bool{}
	for i, p := range s.Prices {
		at := func(f string) string { return fmt.Sprintf("spec.prices[%d].%s", i, f) }
		if err := firstError(
			oneOf(at("meter"), p.Meter, Meters()...),
			between(at("priceMicros"), p.PriceMicros, 0, maxPriceMicros, " millionths"),
			between(at("per"), p.Per, 1, math.MaxInt64, ""),
			text(at("unit"), p.Unit)); err != nil {
			return err
		}
		if seen[p.Meter] {
			return invalid(at("meter"), "%s has a price already", p.Meter)
		}
		seen[p.Meter] = true
	}
	return nil
}
