package api

import "fmt"

// ValidateCreditNote checks what is asked for.
func ValidateCreditNote(s CreditNoteSpec) error {
	if s.Invoice == "" {
		return invalid("spec.invoice", "which invoice?").WithHint("its number, as inv-000042")
	}
	seen := map[string]bool{}
	for i, l := range s.Lines {
		at := fmt.Sprintf("spec.lines[%d]", i)
		if seen[l.Line] || l.Line == "" {
			return invalid(at+".line", "%q is no line, or named twice", clip(l.Line))
		}
		seen[l.Line] = true
		if err := between(at+".amountMicros", l.AmountMicros, 1, maxPriceMicros, " millionths"); err != nil {
			return err
		}
	}
	return firstError(text("spec.reason", s.Reason))
}
