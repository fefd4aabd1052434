package api

import (
	"cmp"
	"math/bits"
	"strings"
)

// A PriceSelector also describes usage, by the attributes of its record.

// named returns the fields in order of their weight when prices are compared; the first
// weighs most.
func (p PriceSelector) named() [5]string {
	return [...]string{p.Model, p.Pool, p.StorageClass, p.Flavor, p.Tier}
}

var selectorFields = [...]string{"model", "pool", "storageClass", "flavor", "tier"}

// Matches reports whether usage has the attributes that the selector sets.
func (p PriceSelector) Matches(used PriceSelector) bool {
	is := used.named()
	for i, want := range p.named() {
		if want != "" && want != is[i] {
			return false
		}
	}
	return true
}

// Specificity returns a number that orders selectors: one with more fields is higher,
// and of two with equally many the one with the earlier fields. Two selectors that
// match the same usage and have the same specificity are identical.
func (p PriceSelector) Specificity() int {
	set := uint(0)
	for i, f := range p.named() {
		if f != "" {
			set |= 1 << (len(selectorFields) - 1 - i)
		}
	}
	return bits.OnesCount(set)<<len(selectorFields) | int(set)
}

// Compare orders selectors field by field.
func (p PriceSelector) Compare(q PriceSelector) int {
	a, b := p.named(), q.named()
	for i := range a {
		if c := cmp.Compare(a[i], b[i]); c != 0 {
			return c
		}
	}
	return 0
}

// String returns the fields that are set: "model NVIDIA L4, tier basic".
func (p PriceSelector) String() string {
	var parts []string
	for i, f := range p.named() {
		if f != "" {
			parts = append(parts, selectorFields[i]+" "+f)
		}
	}
	return strings.Join(parts, ", ")
}

func (p PriceSelector) valid(field string) *Error {
	for i, f := range p.named() {
		if err := text(field+"."+selectorFields[i], f); err != nil {
			return err
		}
	}
	return nil
}

// fitsKey reports whether the fields can be parts of a store's key.
func (p PriceSelector) fitsKey() bool {
	for _, f := range p.named() {
		if f != "" && !isPart(f) {
			return false
		}
	}
	return true
}

// Parts returns the fields in the order of Compare, for stores.
func (p PriceSelector) Parts() []string { s := p.named(); return s[:] }

// SelectorOf returns the selector with the fields in parts; false if their number is
// wrong.
func SelectorOf(parts []string) (PriceSelector, bool) {
	if len(parts) != len(selectorFields) {
		return PriceSelector{}, false
	}
	return PriceSelector{Model: parts[0], Pool: parts[1], StorageClass: parts[2], Flavor: parts[3], Tier: parts[4]}, true
}

// Attributes returns the attributes of the usage that prices may depend on.
func (s UsageRecordSpec) Attributes() PriceSelector {
	return PriceSelector{Model: s.Model, Pool: s.Pool, StorageClass: s.StorageClass, Flavor: s.Flavor, Tier: s.Tier}
}

// SetAttributes sets the attributes that Attributes returns.
func (s *UsageRecordSpec) SetAttributes(a PriceSelector) {
	s.Model, s.Pool, s.StorageClass, s.Flavor, s.Tier = a.Model, a.Pool, a.StorageClass, a.Flavor, a.Tier
}
