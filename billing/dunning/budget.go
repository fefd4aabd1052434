package dunning

import (
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Spent returns what a month's usage costs before taxes and the minimum charge: in a
// project, or in total with the commitments.
func Spent(p api.InvoicePreview, project api.ProjectID) (micros int64) {
	for _, l := range p.Lines {
		if l.Kind == api.LineUsage && (project == "" || l.Project == project) || l.Kind == api.LineCommitment && project == "" {
			micros += l.AmountMicros // of lines whose total fits
		}
	}
	return micros
}

// Assess evaluates the spending of a month: each alert is raised once per month, and
// the cap applies from when the amount is first reached until the amount is raised or
// the month ends.
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

// reached reports whether spent is at least the given percentage of the amount.
func reached(spent, amount, percent int64) bool {
	return !api.Product(max(0, spent), 100).Less(api.Product(amount, percent))
}
