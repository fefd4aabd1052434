package alerts

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// failing is after how many tries in a row a receiver counts as down: the first
// ones are minutes apart.
const failing = 3

const named = 5 // overdue customers

// outside is what depends on others: receivers of webhooks, and who pays.
func (l *list) outside(s State) {
	for _, w := range s.Webhooks {
		if w.Spec.Paused || w.Status.Attempts < failing {
			continue
		}
		l.warning(api.AlertWebhookFailing, about{api.KindWebhook, w.Meta}, w.Status.DeliveredAt, fmt.Sprintf("webhook %s: the receiver refused %d deliveries in a row", w.Meta.Name, w.Status.Attempts)+because(w.Status.LastError),
			"check the receiver; events are kept for a day")
	}
	var due []string
	var since time.Time
	how := api.AlertWarning
	for _, o := range s.Organizations {
		b := o.Status.Billing
		if b == nil || b.State == "" || b.State == api.BillingOK {
			continue
		}
		due = append(due, o.Meta.Name)
		if since.IsZero() || b.Since.Before(since) {
			since = b.Since
		}
		if b.State == api.BillingDeleteDue {
			how = api.AlertCritical
		}
	}
	if len(due) == 0 {
		return
	}
	slices.Sort(due)
	names := strings.Join(due[:min(named, len(due))], ", ")
	if len(due) > named {
		names += fmt.Sprintf(" and %d more", len(due)-named)
	}
	l.add(api.AlertInvoicesOverdue, how, about{kind: api.KindInvoice}, &since, plural(len(due), "customer")+" with overdue invoices: "+names, "record payments received, or contact them; basalt organization list shows who is restricted")
}
