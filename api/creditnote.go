package api

import "fmt"

// ValidateCreditNote checks a spec.
func ValidateCreditNote(s CreditNoteSpec) error {
	var bad faults
	if s.Invoice == "" {
		bad.note(invalid("spec.invoice", "an invoice is required").WithHint("its number, e.g. inv-000042"))
	}
	seen := map[string]bool{}
	for i, l := range s.Lines {
		at := fmt.Sprintf("spec.lines[%d]", i)
		if seen[l.Line] || l.Line == "" {
			bad.note(invalid(at+".line", "line %q does not exist or is named twice", clip(l.Line)))
		}
		seen[l.Line] = true
		bad.note(between(at+".amountMicros", l.AmountMicros, 1, maxPriceMicros, " millionths"))
	}
	bad.note(text("spec.reason", s.Reason))
	return bad.err()
}
