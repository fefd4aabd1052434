package api

// BudgetCap is the action taken when a budget is exhausted.
type BudgetCap string

// Caps of budgets.
const (
	CapNone    BudgetCap = "none"
	CapStop    BudgetCap = "stop"
	CapSuspend BudgetCap = "suspend"
)

const maxAlerts = 16

// DefaultBudget fills in what was left out.
func DefaultBudget(s BudgetSpec) BudgetSpec {
	if s.Cap == "" {
		s.Cap = CapNone
	}
	return s
}

// ValidateBudget checks a spec.
func ValidateBudget(s BudgetSpec) error {
	var bad faults
	if len(s.AlertPercents) > maxAlerts {
		bad.note(invalid("spec.alertPercents", "has %d alerts, want at most %d", len(s.AlertPercents), maxAlerts))
		return bad.err()
	}
	for _, p := range s.AlertPercents {
		bad.note(between("spec.alertPercents", p, 1, 1000, " %"))
	}
	if s.Project != "" && s.Cap == CapSuspend {
		bad.note(invalid("spec.cap", "cap suspend is not possible for a project").WithHint("cap stop prevents creating and starting anything in it"))
	}
	bad.note(oneOf("spec.cap", s.Cap, CapNone, CapStop, CapSuspend), between("spec.amountMicros", s.AmountMicros, 1, maxPriceMicros, " millionths"))
	return bad.err()
}

// ChangeBudget returns an error if the project of a budget changes, which it cannot.
func ChangeBudget(old, s BudgetSpec) error {
	if s.Project != old.Project {
		return invalid("spec.project", "the project of a budget cannot change").WithHint("create another budget")
	}
	return nil
}
