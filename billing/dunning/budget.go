package dunning

import (
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Spent is what a month's use costs before taxes and the minimum: of a project,
// or of all with the commitments.
func Spent(p api.InvoicePreview, project api.ProjectID) (micros int64) {
	for _, l := range p.Lines {
		if l.Kind == api.LineUsage && (project == "" || l.Project == project) || l.Kind == api.LineCommitment && project == "" {
			micros += l.AmountMicros // of lines whose total fits
		}
	}
	return micros
}

// Assess what was spent in a month: each alert is raised once in it, and the cap
// holds from when the amount is seen to be reached until the amount is more, or
// the month is over.
func Assess(b api.BudgetSpec, was api.BudgetStatus, month string, spent int64, now time.Time) api.BudgetStatus {
	if was.Month != month {
		was = api.BudgetStatus{}
	}
	next := api.BudgetStatus{Month: month, SpentMicros: spent, Alerts: slices.Clone(was.Alerts)}
	for _, percent := range slices.Compact(slices.Sorted(slices.Values(b.AlertPercents))) {
		raised := slices.ContainsFunc(was.Alerts, func(a api.BudgetAlert) bool { return a.Percent == percent })
		if !raised && reached(spent, b.AmountMicros, percent) {
			next.Alerts = append(next.Alerts, api.BudgetAlert{Percent: percent, At: now.UTC()})
		}
	}
	if b.Cap != api.CapNone && reached(spent, b.AmountMicros, 100) {
		at := now.UTC()
		if next.CappedAt = was.CappedAt; next.CappedAt == nil {
			next.CappedAt = &at
		}
	}
	return next
}

// reached reports whether spent is so many per cent of the amount.
func reached(spent, amount, percent int64) bool {
	return !api.Product(max(0, spent), 100).Less(api.Product(amount, percent))
}
