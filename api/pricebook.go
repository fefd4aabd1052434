package api

import (
	"fmt"
	"math"
	"regexp"
	"time"
)

var currencyPattern = regexp.MustCompile(`^[A-Z]{3}$`)

const (
	maxPrices = 256
	// maxPriceMicros, a thousand million of a currency, exceeds any real price and
	// keeps sums far from overflow.
	maxPriceMicros = 1e15
	// maxUnits limits the units of a tier or commitment.
	maxUnits       = 1e15
	maxTiers       = 31 // without the last one
	maxBasisPoints = 10_000
)

// DefaultPriceBook is the name of the price book used by organizations that name none.
const DefaultPriceBook = "default"

// Meters returns all meters, in the order of invoice lines.
func Meters() []Meter {
	return []Meter{MeterVCPU, MeterMemory, MeterVolume, MeterSnapshot, MeterAddress, MeterEgress, MeterGPU, MeterGPUPremium, MeterGPUBasic, MeterGPUShare, MeterVRAM, MeterCopy, MeterLaunch}
}

// InvoiceLineKind describes what a line charges for.
type InvoiceLineKind string

// Kinds of lines.
const (
	LineUsage      InvoiceLineKind = "usage"      // usage of a resource
	LineCommitment InvoiceLineKind = "commitment" // the commitment to a quantity
	LineMinimum    InvoiceLineKind = "minimum"    // the difference to the minimum charge
	LineTax        InvoiceLineKind = "tax"
)

// ValidatePriceBook checks a spec.
func ValidatePriceBook(s PriceBookSpec) error {
	var bad faults
	bad.note(currency(s.Currency), between("spec.minimumMicros", s.MinimumMicros, 0, maxPriceMicros, " millionths"),
		text("spec.seller.name", s.Seller.Name), text("spec.seller.taxId", s.Seller.TaxID), address("spec.seller.address", s.Seller.Address))
	for field, n := range map[string]int{"prices": len(s.Prices), "commitments": len(s.Commitments), "discounts": len(s.Discounts)} {
		if n > maxPrices {
			bad.note(invalid("spec."+field, "has %d %s, want at most %d", n, field, maxPrices))
			return bad.err()
		}
	}
	bad.note(validatePrices(s.Prices))
	for i, c := range s.Commitments {
		at := fieldOf("commitments", i)
		bad.note(
			oneOf(at("meter"), c.Meter, Meters()...), between(at("quantity"), c.Quantity, 1, maxUnits, ""),
			between(at("per"), c.Per, 1, math.MaxInt64, ""), between(at("priceMicros"), c.PriceMicros, 0, maxPriceMicros, " millionths"),
			interval(at("until"), c.From, c.Until))
	}
	for i, d := range s.Discounts {
		at := fieldOf("discounts", i)
		for j, m := range d.Meters {
			bad.note(oneOf(at(fmt.Sprintf("meters[%d]", j)), m, Meters()...))
		}
		bad.note(between(at("basisPoints"), d.BasisPoints, 1, maxBasisPoints, ""), fullHour(at("from"), d.From),
			fullHour(at("until"), d.Until), interval(at("until"), d.From, d.Until))
	}
	return bad.err()
}

// ChangePriceBook checks which fields change: the currency cannot, since amounts were
// charged in it.
func ChangePriceBook(old, s PriceBookSpec) error {
	if s.Currency != old.Currency {
		return invalid("spec.currency", "the currency of a price book cannot change").WithHint("create another price book")
	}
	return nil
}

func currency(c string) *Error {
	if !currencyPattern.MatchString(c) {
		return invalid("spec.currency", "%q is not a valid currency", clip(c)).WithHint("use an ISO 4217 code, e.g. EUR")
	}
	return nil
}

func validatePrices(prices []Price) error {
	type begin struct {
		meter Meter
		where PriceSelector
		unix  int64
	}
	seen := map[begin]bool{}
	for i, p := range prices {
		at := fieldOf("prices", i)
		if err := joined(
			oneOf(at("meter"), p.Meter, Meters()...),
			between(at("priceMicros"), p.PriceMicros, 0, maxPriceMicros, " millionths"),
			between(at("per"), p.Per, 1, math.MaxInt64, ""),
			text(at("unit"), p.Unit), p.Where.valid(at("where")), fullHour(at("from"), p.From)); err != nil {
			return err
		}
		b := begin{p.Meter, p.Where, p.From.Unix()}
		if seen[b] {
			return invalid(at("meter"), "%s already has a price for the same that begins at that time", p.Meter)
		}
		seen[b] = true
		if len(p.Tiers) > maxTiers {
			return invalid(at("tiers"), "has %d tiers, want at most %d", len(p.Tiers), maxTiers)
		}
		least := int64(1)
		for j, t := range p.Tiers {
			at := fieldOf(fmt.Sprintf("prices[%d].tiers", i), j)
			if err := joined(between(at("upTo"), t.UpTo, least, maxUnits, ""),
				between(at("priceMicros"), t.PriceMicros, 0, maxPriceMicros, " millionths")); err != nil {
				return err
			}
			least = t.UpTo + 1
		}
	}
	return nil
}

func fieldOf(list string, i int) func(string) string {
	return func(f string) string { return fmt.Sprintf("spec.%s[%d].%s", list, i, f) }
}

func fullHour(field string, t time.Time) *Error {
	if t.IsZero() || t.Equal(t.Truncate(time.Hour)) {
		return nil
	}
	return invalid(field, "%s is not a full hour", t.UTC().Format(time.RFC3339Nano)).WithHint("usage is recorded by the hour")
}

func interval(field string, from, until time.Time) *Error {
	if until.IsZero() || from.Before(until) {
		return nil
	}
	return invalid(field, "must be after the beginning")
}

// SimulationQuery selects the usage to rate with a price book: that of the hours that
// begin in a period.
type SimulationQuery struct {
	Book         PriceBook
	Seller       OrganizationID // empty: any seller
	Organization OrganizationID // empty: all customers of the seller
	From, To     time.Time      // To is exclusive
}

// Has reports whether the query selects an organization.
func (q SimulationQuery) Has(organization Meta) bool {
	return (q.Organization == "" || organization.ID == string(q.Organization)) &&
		(q.Seller == "" || organization.Organization == string(q.Seller))
}
