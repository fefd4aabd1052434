package mail

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

const (
	eventsPerPage = 100
	// maxRecipients is the most recipients of one event.
	maxRecipients = 16
)

// mailTypes maps the types of events that cause messages to the types of those messages.
var mailTypes = map[string]api.MailType{
	"invoice.created": api.MailTypeInvoice, "budget.alert": api.MailTypeBudget, api.EventTopUpFailed: api.MailTypeTopUp, api.EventAutoPayFailed: api.MailTypeAutoPay,
	api.EventRefunded: api.MailTypeRefund, api.EventRefundFailed: api.MailTypeRefund,
	"billing.warn": api.MailTypeBilling, "billing.stop": api.MailTypeBilling, "billing.suspended": api.MailTypeBilling,
	"billing.delete_warning": api.MailTypeBilling, "billing.delete_due": api.MailTypeBilling, "billing.ok": api.MailTypeBilling,
	api.EventInstancePlaced: api.MailTypeQueue, api.EventInstanceResized: api.MailTypeQueue, api.EventQueueExpired: api.MailTypeQueue,
}

// leastWait is how long an instance must have waited in the queue for a message that it
// starts.
const leastWait = time.Minute

// queueEvents queues messages about the events since the cursor, in the batch that
// moves the cursor. made reports whether there are new messages.
func (m *Mailer) queueEvents(ctx context.Context, s *state) (made bool, err error) {
	m.cursor = max(m.cursor, s.status.Cursor, s.settings.Spec.EventsAfter)
	for ctx.Err() == nil {
		p, err := m.o.Store.Events(ctx, api.EventQuery{After: m.cursor, Limit: eventsPerPage})
		if err != nil {
			return false, fmt.Errorf("read the events after %d: %w", m.cursor, err)
		}
		cmds, err := m.messages(ctx, p.Items)
		if err != nil {
			return false, err
		}
		if n := len(p.Items); n > 0 {
			m.cursor = p.Items[n-1].Seq
		}
		if len(cmds) > 0 {
			s.status.Cursor = m.cursor
			return true, m.apply(ctx, m.o.Now().UTC(), append(cmds, reported(s.status))...)
		}
		if !p.More {
			return false, nil
		}
	}
	return false, ctx.Err()
}

// messages returns the commands that queue messages about events.
func (m *Mailer) messages(ctx context.Context, events []api.WebhookEvent) ([]api.Command, error) {
	var cmds []api.Command
	var all *people
	for _, e := range events {
		typ, ok := mailTypes[e.Type]
		if !ok || e.Organization == "" || e.Webhook != "" {
			continue
		}
		data, ok, err := m.dataOf(ctx, e)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		if all == nil {
			if all, err = m.people(ctx); err != nil {
				return nil, err
			}
		}
		end := m.o.Now().UTC().Add(24 * time.Hour).Truncate(time.Second)
		for n, to := range all.about(typ, e) {
			cmds = append(cmds, api.QueueMail(api.MailIDOf(e.ID, n), api.MailMessageSpec{Type: typ, To: to, Language: all.languages[to],
				Organization: e.Organization, Event: e.ID, Data: data, ExpiresAt: &end}))
		}
	}
	return cmds, nil
}

// people are the addresses of users that receive messages about events. An address that
// its user has not confirmed gets only what the user has requested: an admin could have
// created a user with anybody's address.
type people struct {
	payers  map[string][]string // by organization: who handle its bills
	admins  map[string][]string // by organization
	members map[string][]string // by project: who create its instances

	languages map[string]api.MailLanguage // by address; none: the cluster's
}

// about returns the recipients of a message of a type about an event. The owners of an
// instance are the members of its project or, if it has none, the admins of its
// organization.
func (p *people) about(typ api.MailType, e api.WebhookEvent) []string {
	to := p.payers[e.Organization]
	if typ == api.MailTypeQueue {
		if to = p.members[e.Project]; e.Project == "" || len(to) == 0 {
			to = p.admins[e.Organization]
		}
	}
	return to[:min(len(to), maxRecipients)]
}

// add adds a user by one of its grants.
func (p *people) add(g api.Grant, name string) {
	add := func(to map[string][]string, key string) {
		if !slices.Contains(to[key], name) {
			to[key] = append(to[key], name)
		}
	}
	switch {
	case g.Project != "" && g.Role == api.RoleMember:
		add(p.members, g.Project)
	case g.Project != "":
	case g.Role == api.RoleAdmin:
		add(p.admins, g.Organization)
		add(p.payers, g.Organization)
	case g.Role == api.RoleBilling || g.Role == api.RoleReseller:
		add(p.payers, g.Organization)
	}
}

// byGroups adds the users of names by the grants of their groups.
func (m *Mailer) byGroups(ctx context.Context, p *people, names map[api.UserID]string) error {
	return api.Each(ctx, m.o.Store, api.ListQuery{Kind: api.KindGroup}, func(o api.Object) error {
		group, err := api.Decode[api.Group](o)
		for _, member := range group.Spec.Members {
			for _, g := range group.Spec.Grants {
				if names[member] != "" && group.Gives(member, g) {
					p.add(g, names[member])
				}
			}
		}
		return err
	})
}

// people reads the users and groups.
func (m *Mailer) people(ctx context.Context) (*people, error) {
	p := &people{map[string][]string{}, map[string][]string{}, map[string][]string{}, map[string]api.MailLanguage{}}
	names := map[api.UserID]string{}
	err := api.Each(ctx, m.o.Store, api.ListQuery{Kind: api.KindUser}, func(o api.Object) error {
		if len(o.Claims) == 0 || o.Meta.DeletedAt != nil {
			return nil
		}
		u, err := api.Decode[api.User](o)
		if err != nil || u.Spec.Disabled {
			return err
		}
		if u.Spec.Language != "" {
			p.languages[u.Meta.Name] = u.Spec.Language
		}
		names[api.UserID(u.Meta.ID)] = u.Meta.Name
		for _, g := range u.Spec.Grants {
			p.add(g, u.Meta.Name)
		}
		return nil
	})
	if err == nil {
		err = m.byGroups(ctx, p, names)
	}
	for _, all := range []map[string][]string{p.payers, p.admins, p.members} {
		for _, to := range all {
			slices.Sort(to)
		}
	}
	return p, err
}

// dataOf returns the data of a message about an event; ok is false if there is nothing
// to report any more.
func (m *Mailer) dataOf(ctx context.Context, e api.WebhookEvent) (data map[string]string, ok bool, err error) {
	o, err := m.o.Store.Get(ctx, api.KindOrganization, e.Organization)
	if err != nil {
		return nil, false, ignoreNotFound(err)
	}
	data = map[string]string{"organization": o.Meta.Name}
	switch mailTypes[e.Type] {
	case api.MailTypeInvoice:
		var about api.EventObject
		if json.Unmarshal(e.Data, &about) != nil {
			return nil, false, nil
		}
		inv, found, err := m.invoice(ctx, about.ID)
		if err != nil || !found {
			return nil, false, err
		}
		data[invoiceID] = about.ID
		if err := m.addAutoPay(ctx, data, inv); err != nil {
			return nil, false, err
		}
		data["number"], data["total"], data["due"] = inv.Spec.Number, amount(inv.Spec.TotalMicros)+" "+inv.Spec.Currency, day(&inv.Spec.DueAt)
	case api.MailTypeBudget:
		var about struct {
			Name   string           `json:"name"`
			Status api.BudgetStatus `json:"status"`
		}
		if json.Unmarshal(e.Data, &about) != nil || len(about.Status.Alerts) == 0 {
			return nil, false, nil
		}
		reached := slices.MaxFunc(about.Status.Alerts, func(a, b api.BudgetAlert) int { return cmp.Compare(a.Percent, b.Percent) })
		data["budget"], data["month"], data["percent"] = about.Name, about.Status.Month, strconv.FormatInt(reached.Percent, 10)
	case api.MailTypeTopUp:
		var about api.TopUpFailure
		if json.Unmarshal(e.Data, &about) != nil {
			return nil, false, nil
		}
		addCharge(data, about.Checkout, "/invoices", about.AuthenticationRequired)
		data["amount"], data["error"], data["next"] = amount(about.AmountMicros)+" "+about.Currency, about.Error, minute(about.NextAt)
	case api.MailTypeAutoPay:
		var about api.AutoPayFailure
		if json.Unmarshal(e.Data, &about) != nil {
			return nil, false, nil
		}
		addCharge(data, about.Checkout, "/invoices/"+string(about.Invoice), about.AuthenticationRequired)
		data["number"], data["amount"], data["error"], data["next"] = about.Number, amount(about.AmountMicros)+" "+about.Currency, about.Error, minute(about.NextAt)
	case api.MailTypeRefund:
		var about api.RefundNotice
		if json.Unmarshal(e.Data, &about) != nil {
			return nil, false, nil
		}
		data["state"], data["amount"], data["reason"] = strings.TrimPrefix(e.Type, "billing."), amount(about.AmountMicros)+" "+about.Currency, about.Reason
		if about.ByCard {
			data["byCard"] = "yes"
		}
	case api.MailTypeBilling:
		var about api.BillingStatus
		if json.Unmarshal(e.Data, &about) != nil {
			return nil, false, nil
		}
		data["state"], data["deleteAt"] = strings.TrimPrefix(e.Type, "billing."), day(about.DeleteAt)
	case api.MailTypeQueue:
		var about api.QueueEvent
		if json.Unmarshal(e.Data, &about) != nil || e.Type != api.EventQueueExpired && e.Timestamp.Sub(about.QueuedAt) < leastWait {
			return nil, false, nil
		}
		data["instance"], data["state"] = about.Name, strings.TrimPrefix(e.Type, "instance.")
		data["since"], data["until"] = minute(&about.QueuedAt), minute(about.QueueUntil)
		if o, err := m.o.Store.Get(ctx, api.KindProject, about.Project); err == nil {
			data["project"] = o.Meta.Name
		} else if ignoreNotFound(err) != nil {
			return nil, false, fmt.Errorf("read project %s of event %d: %w", about.Project, e.Seq, err)
		}
	}
	return data, true, nil
}

// addAutoPay adds whether an invoice is paid automatically.
func (m *Mailer) addAutoPay(ctx context.Context, data map[string]string, inv api.Invoice) error {
	t, err := api.Settings[api.StoredAutoPay](ctx, m.o.Store, api.KindAutoPay, api.AutoPayID(api.OrganizationID(inv.Meta.Organization)))
	if t.Spec.Enabled {
		data["autoPay"] = "yes"
		if api.Chargeable(inv.Spec.Currency, inv.Spec.TotalMicros) < api.LeastCharge(inv.Spec.Currency) {
			data["autoPay"] = "later"
		}
	}
	return err
}

// addCharge adds the page on which the amount of a charge that failed can be paid, which
// is another one if nothing was tried, and whether the bank wants a confirmation.
func addCharge(data map[string]string, checkout api.CheckoutID, other string, authentication bool) {
	if data["path"] = other; checkout != "" {
		data["path"] = "/checkouts/" + string(checkout)
	}
	if authentication {
		data["authentication"] = "yes"
	}
}

// ignoreNotFound returns the error, unless it means that an object does not exist.
func ignoreNotFound(err error) error {
	if api.CodeOf(err) == api.CodeNotFound {
		return nil
	}
	return err
}

// amount formats an amount in units of a currency, rounded to hundredths half away from
// zero, as on an invoice.
func amount(micros int64) string {
	const perCent = 10_000
	sign := ""
	if micros < 0 {
		sign, micros = "-", -micros
	}
	cents := micros / perCent
	if micros%perCent >= perCent/2 {
		cents++
	}
	return sign + strconv.FormatInt(cents/100, 10) + "." + strconv.FormatInt(cents%100+100, 10)[1:]
}

func minute(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04") + " UTC"
}

func day(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.DateOnly)
}
