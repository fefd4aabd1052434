package alerts

import (
	"fmt"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// failing is the number of consecutive failures after which a receiver counts as down:
// the first ones are minutes apart.
const failing = 3

const named = 5 // overdue customers that an alert names

// outside adds alerts for external dependencies: receivers of webhooks, the mail
// server, and customers' payments.
func (l *list) outside(s State) {
	l.mail(s)
	l.suppressions(s)
	l.payments(s)
	l.taxes(s)
	l.vatChecks(s)
	for _, w := range s.Webhooks {
		if w.Spec.Paused || w.Status.Attempts < failing {
			continue
		}
		l.warning(api.AlertWebhookFailing, about{api.KindWebhook, w.Meta}, w.Status.DeliveredAt, says(fmt.Sprintf("webhook %s: the receiver refused %d deliveries in a row", w.Meta.Name, w.Status.Attempts)).because(w.Status.LastError).with(api.AlertParams{Count: w.Status.Attempts}),
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
	l.add(api.AlertInvoicesOverdue, how, about{kind: api.KindInvoice}, &since, says(plural(len(due), "customer")+" with overdue invoices: "+listed(due)).with(customers(due)), "record payments received, or contact them; basalt organization list shows who is restricted")
}

// undelivered is how long an alert reports a message that failed.
const undelivered = 24 * time.Hour

// mail adds alerts for the mail server, and for messages that it did not accept.
func (l *list) mail(s State) {
	enabled := slices.ContainsFunc(s.Mail, func(m api.StoredMailSettings) bool { return m.Spec.Enabled })
	for _, m := range s.Mail {
		st, what := m.Status, about{kind: api.KindMailMessage}
		if !enabled {
			return
		}
		if st.Attempts >= failing {
			l.warning(api.AlertMailFailing, what, st.SentAt, says(fmt.Sprintf("the mail server could not be used %d times", st.Attempts)).because(st.LastError).with(api.AlertParams{Count: st.Attempts}),
				"see to the mail server, or to the mail settings; messages wait for a day")
		}
		if st.FailedAt != nil && l.now.Sub(*st.FailedAt) < undelivered {
			l.warning(api.AlertMailUndelivered, what, st.FailedAt, says("mail could not be delivered in the last 24 hours"),
				"run basalt mail-message list: it shows which messages, and why")
		}
		if b := st.Bounces; b != nil {
			l.bounces(*b, what)
		}
	}
}

// bounces adds alerts for returned mail.
func (l *list) bounces(st api.MailBouncesStatus, what about) {
	if st.Attempts >= failing {
		l.warning(api.AlertMailboxFailing, what, nil, says(fmt.Sprintf("the mailbox of returned mail could not be read %d times", st.Attempts)).because(st.LastError).with(api.AlertParams{Count: st.Attempts}),
			"see to the IMAP server, or to the mail settings; until then returned mail counts as sent")
	}
	if st.BouncedAt != nil && l.now.Sub(*st.BouncedAt) < undelivered {
		l.warning(api.AlertMailBounced, what, st.BouncedAt, says("mail was returned in the last 24 hours"), "run basalt mail-message list: it shows which messages, and why")
	}
}

// suppressions adds an alert for addresses that get no ordinary mail since lately.
func (l *list) suppressions(s State) {
	n := 0
	var last *time.Time
	for _, x := range s.Suppressions {
		if at := x.Status.SuppressedAt; at != nil && l.now.Sub(*at) < undelivered {
			n++
			if last == nil || at.After(*last) {
				last = at
			}
		}
	}
	if n > 0 {
		what := "1 address"
		if n > 1 {
			what = fmt.Sprintf("%d addresses", n)
		}
		l.warning(api.AlertMailSuppressed, about{kind: api.KindMailSuppression}, last, says("in the last 24 hours, mail to "+what+" was suppressed: it was returned").with(api.AlertParams{Count: int64(n)}),
			"correct the addresses; basalt mail-suppression list shows them, and basalt mail-suppression delete sends mail again")
	}
}

// taxes adds alerts for sellers whose taxes an upgrade could not decide.
func (l *list) taxes(s State) {
	for _, t := range s.Taxes {
		if t.Spec.Undecided {
			l.critical(api.AlertTaxesUndecided, about{api.KindTaxSettings, t.Meta}, &t.Meta.UpdatedAt, says("no invoices are issued: price books had different taxes before the upgrade"),
				"set the countries of customers, and save the tax settings")
		}
	}
}

// payments adds alerts for the payment provider: while it is unreachable, payments are
// unknown.
func (l *list) payments(s State) {
	for _, p := range s.Payments {
		if st := p.Status; st.Attempts >= failing {
			l.warning(api.AlertPaymentsFailing, about{kind: api.KindCheckout}, st.Since, says(fmt.Sprintf("the payment provider could not be asked %d times what was paid", st.Attempts)).because(st.LastError).with(api.AlertParams{Count: st.Attempts}),
				"see to the payment settings; what was paid is recorded once the provider can be asked")
		}
	}
	for _, d := range s.Disputes {
		l.dispute(d)
	}
}

// lastDays is how long before the end of the time for a response to a dispute the alert is
// critical.
const lastDays = 48 * time.Hour

// dispute adds an alert for a dispute that waits for a response.
func (l *list) dispute(d api.Dispute) {
	if d.Status.State != api.DisputeInquiry && d.Status.State != api.DisputeNeedsResponse {
		return
	}
	how, until := api.AlertWarning, ""
	if by := d.Status.RespondBy; by != nil {
		until = ", until " + by.UTC().Format("2006-01-02 15:04") + " UTC"
		if by.Sub(l.now) < lastDays {
			how = api.AlertCritical
		}
	}
	l.add(api.AlertPaymentDisputed, how, about{api.KindDispute, d.Meta}, &d.Meta.CreatedAt, says("a payment by card is disputed").because(d.Spec.Reason).with(api.AlertParams{Until: d.Status.RespondBy}),
		"respond to it at the payment provider"+until+"; basalt dispute get "+d.Meta.ID+" shows the payment")
}
