package alerts

import (
	"slices"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// vatChecks adds alerts for VAT numbers of customers that VIES does not know, those that
// belong to a business with another name, and those about which it gives no result.
func (l *list) vatChecks(s State) {
	if len(s.VATChecks) == 0 {
		return
	}
	names := map[string]string{}
	for _, o := range s.Organizations {
		names[o.Meta.ID] = o.Meta.Name
	}
	var unknown, silent, others []string
	var unknownSince, silentSince, othersSince *time.Time
	why := ""
	for _, c := range s.VATChecks {
		name := names[c.Meta.Organization]
		if name == "" {
			continue // the organization is gone, and its check soon
		}
		if c.Status.State == api.VATInvalid {
			unknown, unknownSince = append(unknown, name), earlier(unknownSince, c.Status.CheckedAt)
		}
		if c.Status.NameDiffers {
			others, othersSince = append(others, name), earlier(othersSince, c.Status.CheckedAt)
		}
		if c.Status.Attempts >= failing {
			silent, silentSince, why = append(silent, name), earlier(silentSince, c.Status.CheckedAt), c.Status.LastError
		}
	}
	what := about{kind: api.KindVATCheck}
	if len(unknown) > 0 {
		l.warning(api.AlertVATInvalid, what, unknownSince, says("VIES does not know the VAT numbers of "+plural(len(unknown), "customer")+": "+listed(unknown)).with(customers(unknown)),
			"ask them for the correct number; until then their invoices have the tax of a customer without one")
	}
	if len(others) > 0 {
		l.warning(api.AlertVATName, what, othersSince, says("VIES has another name for the VAT numbers of "+plural(len(others), "customer")+": "+listed(others)).with(customers(others)),
			"basalt vat-check list shows both names; compare them, and ask the customer. Invoices have the reverse charge nonetheless")
	}
	if len(silent) > 0 {
		l.warning(api.AlertVATUnverified, what, silentSince, says("VIES gives no result for the VAT numbers of "+plural(len(silent), "customer")+": "+listed(silent)).because(why).with(customers(silent)),
			"basalt vat-check list shows the reasons; a number that was confirmed before counts for 60 days, and invoices of others have tax until VIES answers")
	}
}

// earlier returns the earlier of two times that may be unknown.
func earlier(a, b *time.Time) *time.Time {
	if a == nil || b != nil && b.Before(*a) {
		return b
	}
	return a
}

// customers returns the values for an alert about customers, of which it names some.
func customers(names []string) api.AlertParams {
	slices.Sort(names)
	return api.AlertParams{Count: int64(len(names)), Names: names[:min(named, len(names))]}
}

// listed returns the first of the names in order, and how many more there are.
func listed(names []string) string {
	slices.Sort(names)
	text := strings.Join(names[:min(named, len(names))], ", ")
	if more := len(names) - named; more > 0 {
		text += " and " + plural(more, "other")
	}
	return text
}
