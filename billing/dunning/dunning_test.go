package dunning

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/ledger"
)

var (
	october  = time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)
	november = october.AddDate(0, 1, 0)
	december = october.AddDate(0, 2, 0)
)

func TestNextStatus(t *testing.T) {
	now := november
	at := func(d time.Duration) *time.Time { x := now.Add(d); return &x }
	prepaid := api.OrganizationBilling{Mode: api.BillingPrepaid, WarnMicros: api.Setting(100), SuspendAfterDays: api.Setting(2), DeleteAfterDays: 30}
	invoiced := api.OrganizationBilling{Mode: api.BillingInvoice, StopAfterDays: api.Setting(7), SuspendAfterDays: api.Setting(14)}
	grace, credit := prepaid, prepaid
	grace.GraceUntil, credit.CreditMicros = now.Add(day), 50
	due := func(d time.Duration) Balance {
		return Balance{BalanceMicros: -5, Open: []api.OpenInvoice{{Number: "INV-000001", DueAt: now.Add(d), LeftMicros: 5}}}
	}
	for name, c := range map[string]struct {
		terms api.OrganizationBilling
		s     Balance
		was   *time.Time // since when the credit is used up
		want  api.BillingState
	}{
		"full":             {prepaid, Balance{BalanceMicros: 500}, nil, api.BillingOK},
		"little":           {prepaid, Balance{BalanceMicros: 500, UnbilledMicros: 401}, nil, api.BillingWarn},
		"never paid":       {prepaid, Balance{}, nil, api.BillingStop},
		"used up":          {prepaid, Balance{BalanceMicros: 500, UnbilledMicros: 500}, at(-day), api.BillingStop},
		"for two days":     {prepaid, Balance{UnbilledMicros: 1}, at(-2 * day), api.BillingSuspended},
		"for long":         {prepaid, Balance{UnbilledMicros: 1}, at(-32 * day), api.BillingDeleteDue},
		"clock went back":  {prepaid, Balance{UnbilledMicros: 1}, at(day), api.BillingStop},
		"paid again":       {prepaid, Balance{BalanceMicros: 500}, at(-32 * day), api.BillingOK},
		"grace":            {grace, Balance{UnbilledMicros: 1}, at(-32 * day), api.BillingWarn},
		"credit":           {credit, Balance{UnbilledMicros: 49}, nil, api.BillingWarn},
		"credit used":      {credit, Balance{UnbilledMicros: 50}, nil, api.BillingStop},
		"nothing owed":     {invoiced, Balance{UnbilledMicros: 1e12}, nil, api.BillingOK},
		"not due":          {invoiced, due(1), nil, api.BillingOK},
		"due":              {invoiced, due(0), nil, api.BillingWarn},
		"due for a week":   {invoiced, due(-7 * day), nil, api.BillingStop},
		"due for two":      {invoiced, due(-14 * day), nil, api.BillingSuspended},
		"due for a decade": {invoiced, due(-3650 * day), nil, api.BillingSuspended}, // deletion is disabled
	} {
		warned := now.Add(-DeleteNotice)
		got := NextStatus(now, c.terms, c.s, api.BillingStatus{State: api.BillingOK, ExhaustedAt: c.was, DeleteWarnedAt: &warned})
		if got.State != c.want || (got.State != api.BillingOK) != (got.Message != "") {
			t.Errorf("%s: NextStatus = %+v, want state %s with a message unless it is ok", name, got, c.want)
		}
	}
}

// TestPaymentEndsIt checks, for random histories, that paying everything that is owed
// and used restores the organization, lifts the restrictions set by billing, and no
// others.
func TestPaymentEndsIt(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 4))
	for range 2000 {
		terms := *api.DefaultBilling(nil, &api.OrganizationBilling{Mode: []api.BillingMode{api.BillingInvoice, api.BillingPrepaid}[random.IntN(2)], WarnMicros: api.Setting(0), DeleteAfterDays: random.Int64N(9)}, october)
		var operators *api.OrganizationSuspension
		if random.IntN(2) == 0 {
			operators = &api.OrganizationSuspension{Reason: "abuse", By: api.RoleOperator}
		}
		spec, st := api.OrganizationSpec{Billing: &terms, Suspended: operators}, api.BillingStatus{State: api.BillingOK}
		var docs ledger.Documents
		unbilled := int64(0)
		for now := october; now.Before(december); now = now.Add(time.Duration(random.Int64N(int64(10 * day)))) {
			switch unbilled += random.Int64N(1000); random.IntN(3) {
			case 0:
				docs.Invoices = append(docs.Invoices, api.Invoice{Meta: api.Meta{ID: now.String(), Organization: "org-1", CreatedAt: now},
					Spec: api.InvoiceSpec{Currency: "EUR", TotalMicros: unbilled, DueAt: now.Add(day), Lines: []api.InvoiceLine{{Meter: api.MeterGPU, AmountMicros: unbilled}}}})
				unbilled = 0
			case 1:
				docs.Payments = append(docs.Payments, api.Payment{Meta: api.Meta{ID: "pay" + now.String(), Organization: "org-1", CreatedAt: now},
					Spec: api.PaymentSpec{Type: api.PaymentIn, Currency: "EUR", AmountMicros: 1 + random.Int64N(2000)}})
			}
			s, err := BalanceOf("org-1", docs, "EUR", unbilled)
			if err != nil {
				t.Fatal(err)
			}
			open := int64(0)
			for _, o := range s.Open {
				open += o.LeftMicros
			}
			if open != max(0, -s.BalanceMicros) {
				t.Fatalf("open invoices have %d unpaid in total, want %d", open, max(0, -s.BalanceMicros))
			}
			st = NextStatus(now, terms, s, st)
			spec = Restrict(spec, st.State, st.Message)
			if (spec.Restricted != nil) != worse(st.State, api.BillingWarn) || (spec.Suspended != nil) != (operators != nil || worse(st.State, api.BillingStop)) {
				t.Fatalf("state %s: spec %+v, want it restricted and suspended accordingly", st.State, spec)
			}
		}
		s, err := BalanceOf("org-1", docs, "EUR", unbilled)
		if err != nil {
			t.Fatal(err)
		}
		s.BalanceMicros, s.Open = unbilled+1, nil
		st = NextStatus(december, terms, s, st)
		spec = Restrict(spec, st.State, st.Message)
		if st.State != api.BillingOK || spec.Restricted != nil || spec.Suspended != operators {
			t.Fatalf("after the payment: status %+v, spec %+v; want state ok and only the operator's suspension", st, spec)
		}
	}
}

func TestAssess(t *testing.T) {
	b := api.BudgetSpec{AmountMicros: 1000, AlertPercents: []int64{100, 50, 80, 50, 150}, Cap: api.CapStop}
	st := api.BudgetStatus{}
	for i, c := range []struct {
		month  string
		spent  int64
		alerts int
		capped bool
	}{{"2026-10", 499, 0, false}, {"2026-10", 500, 1, false}, {"2026-10", 999, 2, false}, {"2026-10", 1000, 3, true}, {"2026-10", 1000, 3, true},
		{"2026-10", 700, 3, false}, {"2026-10", 1 << 62, 4, true}, {"2026-11", 0, 0, false}, {"2026-11", 500, 1, false}} {
		st = Assess(b, st, c.month, c.spent, october.Add(time.Duration(i)*time.Hour))
		if len(st.Alerts) != c.alerts || (st.CappedAt != nil) != c.capped {
			t.Errorf("step %d: status %+v, want %d alerts and capped %v", i, st, c.alerts, c.capped)
		}
	}
}

// TestDeletionIsAnnounced checks that an organization's resources are deleted only if
// its terms demand it, and never less than a week after the warning, whenever that was
// sent.
func TestDeletionIsAnnounced(t *testing.T) {
	random := rand.New(rand.NewPCG(6, 6))
	deleted := 0
	for range 3000 {
		terms := api.OrganizationBilling{Mode: []api.BillingMode{api.BillingInvoice, api.BillingPrepaid}[random.IntN(2)], SuspendAfterDays: api.Setting(random.Int64N(5)), DeleteAfterDays: random.Int64N(40)}
		s := Balance{Open: []api.OpenInvoice{{Number: "INV-000001", DueAt: november, LeftMicros: 5}}}
		st := api.BillingStatus{State: api.BillingOK}
		var warned time.Time
		for now := november; now.Before(november.Add(90 * day)); now = now.Add(time.Duration(1+random.IntN(72)) * time.Hour) {
			switch random.IntN(30) {
			case 0:
				terms.DeleteAfterDays = random.Int64N(40)
			case 1:
				terms.GraceUntil = now.Add(time.Duration(random.IntN(100)) * time.Hour)
			}
			st = NextStatus(now, terms, s, st)
			switch {
			case st.DeleteWarnedAt == nil:
				warned = time.Time{}
			case warned.IsZero():
				warned = now
			}
			if st.State != api.BillingDeleteDue {
				continue
			}
			deleted++
			if terms.DeleteAfterDays == 0 || warned.IsZero() || now.Sub(warned) < DeleteNotice || now.Before(november.Add(time.Duration(*terms.SuspendAfterDays+terms.DeleteAfterDays)*day)) {
				t.Fatalf("deletion at %s: status %+v, terms %+v, warned at %s; want it enabled and announced in time", now, st, terms, warned)
			}
		}
	}
	if deleted == 0 {
		t.Error("no case reached the deletion, want some")
	}
}

// TestNextChange checks that the result of NextStatus does not change before the time that
// NextChange returns.
func TestNextChange(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 5))
	changed := 0
	for range 5000 {
		now := november
		terms := api.OrganizationBilling{Mode: []api.BillingMode{api.BillingInvoice, api.BillingPrepaid}[random.IntN(2)],
			StopAfterDays: api.Setting(random.Int64N(4)), SuspendAfterDays: api.Setting(random.Int64N(6)), DeleteAfterDays: random.Int64N(4)}
		if random.IntN(2) == 0 {
			terms.GraceUntil = now.Add(time.Duration(random.IntN(20)-5) * day / 2)
		}
		s := Balance{BalanceMicros: random.Int64N(3) - 1}
		was := api.BillingStatus{State: api.BillingOK}
		begun := now.Add(-time.Duration(random.IntN(20)) * day / 3)
		if terms.Mode == api.BillingInvoice {
			s.Open = []api.OpenInvoice{{Number: "INV-000001", DueAt: begun.Add(3 * day), LeftMicros: 5}}
			switch until := now.Add(time.Duration(random.IntN(20)-5) * day / 2); random.IntN(3) {
			case 0:
				s.Collection.ChargingUntil = until
			case 1:
				s.Collection.RetryUntil = until
			}
		} else if random.IntN(2) == 0 {
			was.ExhaustedAt = &begun
		}
		st := NextStatus(now, terms, s, was)
		next := NextChange(now, terms, s, st)
		last := now.Add(30 * day)
		if !next.IsZero() {
			last = next.Add(-1)
		}
		for at := now; ; at = at.Add(day / 6) {
			if at.After(last) {
				at = last
			}
			if got := NextStatus(at, terms, s, st); got.State != st.State || got.Message != st.Message || (got.DeleteAt == nil) != (st.DeleteAt == nil) {
				t.Fatalf("terms %+v, balance %+v: status %+v became %+v at %s, want no change before %s", terms, s, st, got, at, next)
			}
			if at.Equal(last) {
				break
			}
		}
		if !next.IsZero() && NextStatus(next, terms, s, st).State != st.State {
			changed++
		}
	}
	if changed < 1000 {
		t.Errorf("the status changed at %d times, want at least 1000", changed)
	}
}

// TestZeroIsZero checks that zero means at once, or no warning, and that a missing
// setting has its default.
func TestZeroIsZero(t *testing.T) {
	now := november
	zero := api.DefaultBilling(nil, &api.OrganizationBilling{Mode: api.BillingPrepaid, SuspendAfterDays: api.Setting(0), WarnMicros: api.Setting(0), DueDays: api.Setting(0)}, now)
	if *zero.SuspendAfterDays != 0 || *zero.WarnMicros != 0 || *zero.DueDays != 0 {
		t.Errorf("settings of 0 became %d, %d, %d; want 0", *zero.SuspendAfterDays, *zero.WarnMicros, *zero.DueDays)
	}
	silent := api.DefaultBilling(nil, &api.OrganizationBilling{Mode: api.BillingPrepaid}, now)
	if *silent.SuspendAfterDays != 1 || *silent.WarnMicros != api.DefaultWarnMicros || *silent.DueDays != api.DefaultDueDays {
		t.Errorf("defaults = %d, %d, %d; want 1, %d, %d", *silent.SuspendAfterDays, *silent.WarnMicros, *silent.DueDays, api.DefaultWarnMicros, api.DefaultDueDays)
	}
	invoiced := api.DefaultBilling(nil, &api.OrganizationBilling{Mode: api.BillingInvoice, StopAfterDays: api.Setting(0), SuspendAfterDays: api.Setting(0)}, now)
	due := Balance{BalanceMicros: -5, Open: []api.OpenInvoice{{Number: "INV-000001", DueAt: now, LeftMicros: 5}}}
	for name, c := range map[string]struct {
		terms *api.OrganizationBilling
		s     Balance
		want  api.BillingState
	}{
		"used up, at once":      {zero, Balance{BalanceMicros: 5, UnbilledMicros: 5}, api.BillingSuspended},
		"almost, no warning":    {zero, Balance{BalanceMicros: 5, UnbilledMicros: 4}, api.BillingOK},
		"almost, the default":   {silent, Balance{BalanceMicros: 5, UnbilledMicros: 4}, api.BillingWarn},
		"used up, the default":  {silent, Balance{BalanceMicros: 5, UnbilledMicros: 5}, api.BillingStop},
		"an invoice, at once":   {invoiced, due, api.BillingSuspended},
		"stored without a word": {&api.OrganizationBilling{Mode: api.BillingInvoice}, due, api.BillingWarn},
	} {
		if got := NextStatus(now, *c.terms, c.s, api.BillingStatus{}).State; got != c.want {
			t.Errorf("%s: state %s, want %s", name, got, c.want)
		}
	}
}
