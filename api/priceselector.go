package api

import (
	"cmp"
	"math/bits"
	"strings"
)

// A PriceSelector is also what use is of: the attributes that a record has.

// named are its fields in the order in which prices are told apart: the first
// weighs most.
func (p PriceSelector) named() [5]string {
	return [...]string{p.Model, p.Pool, p.StorageClass, p.Flavor, p.Tier}
}

var selectorFields = [...]string{"model", "pool", "storageClass", "flavor", "tier"}

// Matches reports whether what was used is what the selector names.
func (p PriceSelector) Matches(used PriceSelector) bool {
	is := used.named()
	for i, want := range p.named() {
		if want != "" && want != is[i] {
			return false
		}
	}
	return true
}

// Specificity orders selectors: more fields count more, and of as many those that
// come first in the order of fields. Two that match the same use and have the same
// specificity are the same.
func (p PriceSelector) Specificity() int {
	set := uint(0)
	for i, f := range p.named() {
		if f != "" {
			set |= 1 << (len(selectorFields) - 1 - i)
		}
	}
	return bits.OnesCount(set)<<len(selectorFields) | int(set)
}

// Compare is the order of selectors, field by field.
func (p PriceSelector) Compare(q PriceSelector) int {
	a, b := p.named(), q.named()
	for i := range a {
		if c := cmp.Compare(a[i], b[i]); c != 0 {
			return c
		}
	}
	return 0
}

// String is the fields that it names: "model NVIDIA L4, tier basic".
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

// fitsKey reports whether the fields may be parts of a key of a store.
func (p PriceSelector) fitsKey() bool {
	for _, f := range p.named() {
		if f != "" && !isPart(f) {
			return false
		}
	}
	return true
}

// Parts are the fields in the order of Compare, for stores.
func (p PriceSelector) Parts() []string { s := p.named(); return s[:] }

// SelectorOf is the selector of parts; false when there are more or less.
func SelectorOf(parts []string) (PriceSelector, bool) {
	if len(parts) != len(selectorFields) {
		return PriceSelector{}, false
	}
	return PriceSelector{Model: parts[0], Pool: parts[1], StorageClass: parts[2], Flavor: parts[3], Tier: parts[4]}, true
}

// Attributes are what the use was of, as far as prices may differ by it.
func (s UsageRecordSpec) Attributes() PriceSelector {
	return PriceSelector{Model: s.Model, Pool: s.Pool, StorageClass: s.StorageClass, Flavor: s.Flavor, Tier: s.Tier}
}

// SetAttributes of the use.
func (s *UsageRecordSpec) SetAttributes(a PriceSelector) {
	s.Model, s.Pool, s.StorageClass, s.Flavor, s.Tier = a.Model, a.Pool, a.StorageClass, a.Flavor, a.Tier
}
