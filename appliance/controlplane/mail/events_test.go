package mail

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// organization creates an organization with a user of each role, some with a confirmed
// address.
func (h *fixture) organization() {
	h.Helper()
	h.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindOrganization, ID: "org-1", Name: "acme", Expect: api.AnyRevision, Data: api.Encode(api.OrganizationSpec{})})
	for i, u := range []struct {
		name     string
		role     api.Role
		project  string
		verified bool
		disabled bool
	}{{"admin", api.RoleAdmin, "", true, false}, {"billing", api.RoleBilling, "", true, false}, {"member", api.RoleMember, "prj-1", true, false},
		{"stranger", api.RoleAdmin, "", false, false}, {"gone", api.RoleAdmin, "", true, true}} {
		name := u.name + "@example.com"
		c := api.Command{Op: api.OpPutSpec, Kind: api.KindUser, ID: fmt.Sprint("usr-", i), Name: name, Expect: api.AnyRevision,
			Data: api.Encode(api.UserSpec{Disabled: u.disabled, Grants: []api.Grant{{Role: u.role, Organization: "org-1", Project: u.project}}})}
		if u.verified {
			c.Claims = api.LoginClaim(name)
		}
		h.apply(c)
	}
}

// raise raises an event of the organization.
func (h *fixture) raise(what string, data any) {
	h.Helper()
	h.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindFlavor, ID: "flv-1", Expect: api.AnyRevision, Data: api.Encode(map[string]any{"at": h.clock(), "revision": h.store.Revision()}),
		Event: &api.CommandEvent{Type: what, Organization: "org-1", Data: api.Encode(data)}})
}

// The message about an invoice that is too small to be charged by itself says that it is
// charged with others, and one that is not paid automatically says neither.
func TestSmallInvoiceIsMailed(t *testing.T) {
	for name, c := range map[string]struct {
		enabled bool
		micros  int64
		want    string
		not     string
	}{
		"small":                  {true, 490_000, "together with other invoices", "nothing"},
		"rounded up, the least":  {true, 490_001, "The amount is charged to your payment card", "together with"},
		"not paid automatically": {false, 490_000, "is attached as a PDF", "charged"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newFixture(t)
			h.organization()
			p := newPost(t, nil)
			h.configure(p.at, func(s *api.MailSettingsSpec) { s.EventsAfter = 2*h.store.Revision() + 1 })
			h.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindAutoPay, ID: api.AutoPayID("org-1"), Name: "autopay-1", Organization: "org-1", Expect: api.AnyRevision, Data: api.Encode(api.AutoPaySpec{Enabled: c.enabled})})
			h.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindInvoice, ID: "inv-1", Name: "b-1", Organization: "org-1", Expect: api.AnyRevision,
				Data: api.Encode(api.InvoiceSpec{Number: "B-1", Currency: "EUR", TotalMicros: c.micros})})
			stop := h.run(h.store, nil)
			defer stop()
			h.until("the messages are sent", func() bool { return len(p.taken()) == 2 })
			for _, d := range p.taken() {
				text := strings.Join(strings.Fields(parse(t, d.raw).parts[0]), " ")
				if !strings.Contains(text, c.want) || strings.Contains(text, c.not) {
					t.Errorf("message = %q, want %q and not %q", text, c.want, c.not)
				}
			}
		})
	}
}

// Messages about invoices, budgets and unpaid invoices go to the users who handle the
// bills and have confirmed their addresses; events from before mail was enabled cause
// none.
func TestEventsAreMailed(t *testing.T) {
	h := newFixture(t)
	h.organization()
	h.raise("billing.warn", api.BillingStatus{State: api.BillingWarn})
	p := newPost(t, nil)
	h.configure(p.at, func(s *api.MailSettingsSpec) { s.EventsAfter = 2*h.store.Revision() + 1 })
	h.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindAutoPay, ID: api.AutoPayID("org-1"), Name: "autopay-1", Organization: "org-1", Expect: api.AnyRevision, Data: api.Encode(api.AutoPaySpec{Enabled: true})})
	due := time.Date(2026, 3, 15, 0, 0, 0, 0, time.UTC)
	h.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindInvoice, ID: "inv-1", Name: "b-1", Organization: "org-1", Expect: api.AnyRevision,
		Data: api.Encode(api.InvoiceSpec{Number: "B-1", DueAt: due, Currency: "EUR", TotalMicros: 12_345_000})})
	h.raise("budget.alert", map[string]any{"name": "web", "status": api.BudgetStatus{Month: "2026-03", Alerts: []api.BudgetAlert{{Percent: 50}, {Percent: 80}}}})
	h.raise("billing.delete_warning", api.BillingStatus{State: api.BillingSuspended, DeleteAt: &due})
	h.raise(api.EventTopUpFailed, api.TopUpFailure{Checkout: "chk-1", Currency: "EUR", AmountMicros: 50_000_000, Error: "Your card was declined.", AuthenticationRequired: true, NextAt: &due})
	h.raise(api.EventAutoPayFailed, api.AutoPayFailure{Invoice: "inv-1", Number: "B-1", Currency: "EUR", AmountMicros: 12_350_000, Error: "there is no default card on file"})
	notice := api.RefundNotice{Refund: "ref-1", Currency: "EUR", AmountMicros: 20_000_000, Reason: "An outage.", ByCard: true}
	h.raise(api.EventRefunded, notice)
	h.raise(api.EventRefundFailed, notice)
	h.raise("billing.suspended", "not what it should be")
	h.raise("thing.happened", 1)
	h.run(h.store, nil)
	h.until("all are sent", func() bool { return len(p.taken()) >= 14 })
	var got []string
	for _, d := range p.taken() {
		m := parse(t, d.raw)
		got = append(got, d.to+": "+m.Header.Get("Subject")+": "+strings.SplitN(m.parts[0], "\r\n", 2)[0])
	}
	for _, d := range p.taken() {
		if m := parse(t, d.raw); strings.HasPrefix(m.Header.Get("Subject"), "Please confirm") {
			for _, text := range []string{"Your bank wants you to confirm", "tried again at 2026-03-15 00:00 UTC", "/#/checkouts/chk-1"} {
				if !strings.Contains(m.parts[0], text) {
					t.Errorf("message about a top-up = %q, want %q in it", m.parts[0], text)
				}
			}
		}
	}
	for _, d := range p.taken() {
		m := parse(t, d.raw)
		if subject := m.Header.Get("Subject"); subject == "Payment failed: invoice B-1" && !strings.Contains(m.parts[0], "/#/invoices/inv-1") || subject == "Invoice B-1" && !strings.Contains(m.parts[0], "need not do anything") {
			t.Errorf("message %q = %q, want a link to the invoice, or that it is charged", subject, m.parts[0])
		}
	}
	slices.Sort(got)
	var want []string
	for _, to := range []string{"admin", "billing"} {
		want = append(want, to+"@example.com: Budget web: 80 % used: acme has used 80 % of the budget web of 2026-03.",
			to+"@example.com: Invoice B-1: Invoice B-1 of acme was issued: 12.35 EUR, due on 2026-03-15.",
			to+"@example.com: Your data will be deleted: acme: acme is behind with a payment. If it does not arrive, instances, volumes, backups and addresses are deleted for good on 2026-03-15.",
			to+"@example.com: Payment failed: invoice B-1: Invoice B-1 of acme could not be charged to your payment card: 12.35 EUR. Nothing was charged. The reason: there is no default card on file",
			to+"@example.com: Refund of 20.00 EUR: acme: A payment of acme was refunded: 20.00 EUR. The reason: An outage.",
			to+"@example.com: A refund of 20.00 EUR failed: acme: The bank did not accept a refund to acme of 20.00 EUR, whose reason was: An outage. The amount is credit of acme again. Please ask us to return it another way.",
			to+"@example.com: Please confirm a payment: acme: The automatic top-up of acme by 50.00 EUR has failed. Nothing was charged. The reason: Your card was declined.")
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("messages =\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A leader that is killed at any moment queues no message twice and omits none.
func TestEventsAreMailedOnce(t *testing.T) {
	h := newFixture(t)
	h.organization()
	p := newPost(t, nil)
	h.configure(p.at, nil)
	const events = 150
	n := 0
	for i := range events {
		h.raise("budget.alert", map[string]any{"name": fmt.Sprint("b", i), "status": api.BudgetStatus{Month: "2026-03", Alerts: []api.BudgetAlert{{Percent: 50}}}})
	}
	var stop func()
	for range 5 {
		stop = h.run(flaky{h.store, func() bool { n++; return n%3 == 0 }}, nil)
		was := len(p.taken())
		h.until("some are sent", func() bool { got := len(p.taken()); return got >= was+20 || got >= 2*events })
		stop()
	}
	h.run(h.store, nil)
	ids := map[string]bool{}
	h.until("all are sent", func() bool {
		for _, d := range p.taken() {
			ids[parse(t, d.raw).Header.Get("Message-Id")] = true
		}
		return len(ids) >= 2*events
	})
	if len(ids) != 2*events {
		t.Errorf("messages = %d, want %d", len(ids), 2*events)
	}
}

// queued raises an event about an instance that was in the queue.
func (h *fixture) queued(what, instance, project string, waited time.Duration) {
	h.Helper()
	until := h.clock()
	e := api.QueueEvent{EventObject: api.EventObject{Name: instance, Project: project}, QueuedAt: until.Add(-waited), QueueUntil: &until}
	h.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindFlavor, ID: "flv-1", Expect: api.AnyRevision, Data: api.Encode(map[string]any{"revision": h.store.Revision()}),
		Event: &api.CommandEvent{Type: what, Organization: "org-1", Project: project, Data: api.Encode(e)}})
}

// The members of a project, or the admins where it has none, are told once that an
// instance that was in the queue starts or was deleted at its deadline, also when
// another node sends mail in between.
func TestQueueIsTold(t *testing.T) {
	h := newFixture(t)
	h.organization()
	h.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindProject, ID: "prj-1", Name: "render", Organization: "org-1", Expect: api.AnyRevision, Data: api.Encode(api.ProjectSpec{})})
	p := newPost(t, nil)
	h.configure(p.at, nil)
	h.queued(api.EventInstancePlaced, "train", "prj-1", 2*time.Hour)
	h.queued(api.EventInstancePlaced, "short", "prj-1", 10*time.Second) // nobody has waited for it
	h.queued(api.EventQueueExpired, "late", "prj-1", time.Hour)
	stop := h.run(h.store, nil)
	h.until("both are sent", func() bool { return len(p.taken()) >= 2 })
	stop()
	h.run(h.store, nil)
	h.queued(api.EventInstanceResized, "brief", "prj-1", 10*time.Second) // nobody has waited for it
	h.queued(api.EventInstanceResized, "grown", "prj-1", 2*time.Hour)
	h.queued(api.EventQueueExpired, "other", "prj-2", 10*time.Second)
	h.until("two are sent after a change of the leader", func() bool { return len(p.taken()) >= 4 })
	var got []string
	for _, d := range p.taken() {
		m := parse(t, d.raw)
		got = append(got, d.to+": "+m.Header.Get("Subject")+": "+strings.SplitN(m.parts[0], "\r\n", 2)[0])
	}
	want := []string{
		"member@example.com: Instance train starts: Instance train in project render of acme has been in the queue since 2026-03-01 10:00 UTC. A node has room for it now, and it starts.",
		"member@example.com: Instance late was not started in time: Instance late in project render of acme was in the queue until its deadline, 2026-03-01 12:00 UTC. No node had room for it, so it was deleted.",
		"member@example.com: Instance grown has its new size: Instance grown in project render of acme has been in the queue for its new size since 2026-03-01 10:00 UTC. There is room for it now: the instance has the new size, which is in effect when it is started.",
		"admin@example.com: Instance other was not started in time: Instance other of acme was in the queue until its deadline, ",
	}
	if len(got) != len(want) {
		t.Fatalf("messages =\n%s\nwant %d", strings.Join(got, "\n"), len(want))
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("message %d = %s, want %s", i, got[i], want[i])
		}
	}
}

func TestAmount(t *testing.T) {
	for micros, want := range map[int64]string{0: "0.00", 4_999: "0.00", 5_000: "0.01", 12_345_000: "12.35", -5_000: "-0.01", 1_000_000_000_000: "1000000.00"} {
		if got := amount(micros); got != want {
			t.Errorf("amount(%d) = %s, want %s", micros, got, want)
		}
	}
}
