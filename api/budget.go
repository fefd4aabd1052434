package api

// BudgetCap is what happens when a budget is used.
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
	if len(s.AlertPercents) > maxAlerts {
		return invalid("spec.alertPercents", "%d alerts, at most %d", len(s.AlertPercents), maxAlerts)
	}
	for _, p := range s.AlertPercents {
		if err := between("spec.alertPercents", p, 1, 1000, " per cent"); err != nil {
			return err
		}
	}
	if s.Project != "" && s.Cap == CapSuspend {
		return invalid("spec.cap", "a project is not suspended").WithHint("cap stop makes and starts nothing new in it")
	}
	return firstError(oneOf("spec.cap", s.Cap, CapNone, CapStop, CapSuspend), between("spec.amountMicros", s.AmountMicros, 1, maxPriceMicros, " millionths"))
}

// ChangeBudget checks what may change: it stays of what it is.
func ChangeBudget(old, s BudgetSpec) error {
	if s.Project != old.Project {
		return invalid("spec.project", "a budget keeps its project").WithHint("make another budget")
	}
	return nil
}
