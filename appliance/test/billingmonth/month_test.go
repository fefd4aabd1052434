package billingmonth

import (
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

// customer creates an organization with its billing terms, a project, and the API key of a
// member.
func (w *world) customer(name string, terms *api.OrganizationBilling) (org string, c *client.API) {
	w.t.Helper()
	o := must(w.t, client.Of[api.Organization](w.op).Create, api.Organization{Meta: api.Meta{Name: name}, Spec: api.OrganizationSpec{Billing: terms}})
	p := must(w.t, client.Of[api.Project](w.op).Create, api.Project{Meta: api.Meta{Name: name, Organization: o.Meta.ID}})
	k := must(w.t, client.Of[api.APIKey](w.op).Create, api.APIKey{Meta: api.Meta{Name: name, Organization: o.Meta.ID, Project: p.Meta.ID}, Spec: api.APIKeySpec{Role: api.RoleMember}})
	return o.Meta.ID, w.connect(w.url, k.Secret)
}

func machine(name, flavor string, vram int64) api.Instance {
	in := api.Instance{Meta: api.Meta{Name: name}, Spec: api.InstanceSpec{Flavor: api.FlavorID(flavor), Image: "debian", StoragePool: api.PoolShared}}
	if vram > 0 {
		in.Spec.Vgpu = &api.VGPUSpec{VramBytes: vram, SharePercent: 25}
	}
	return in
}

func (w *world) nodeOf(in api.Instance) *testNode {
	w.t.Helper()
	for _, h := range w.nodes {
		if h.id == in.Assignment.Node {
			return h
		}
	}
	w.t.Fatalf("instance %s is assigned to none of the nodes: %+v", in.Meta.Name, in.Assignment)
	return nil
}

// TestMonth runs the month by the API: sign-up, create, resize, crash, loss of a node, a change
// of prices, non-payment and its consequences, payment, the end. It accounts for every micro of
// every invoice.
func TestMonth(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates a month")
	}
	t.Parallel()
	w := newWorld(t, newDisk(t))
	acme, c := w.customer("acme", &api.OrganizationBilling{Mode: api.BillingInvoice, TimeZone: "Europe/Berlin", DueDays: api.Setting(3), StopAfterDays: api.Setting(2), SuspendAfterDays: api.Setting(4)})
	other, d := w.customer("other", &api.OrganizationBilling{Mode: api.BillingPrepaid, WarnMicros: api.Setting(5_000_000), SuspendAfterDays: api.Setting(1)})
	must(t, client.Of[api.Payment](w.op).Create, api.Payment{Meta: api.Meta{Organization: other}, Spec: api.PaymentSpec{Currency: "EUR", AmountMicros: 2_000_000, Reference: "card 1"}})

	w.until(1, 9, 30)
	train := must(t, client.Of[api.Instance](c).Create, machine("train", "small", 1<<30)).Meta.ID
	must(t, client.Of[api.Instance](d).Create, machine("web", "small", 0))
	w.wantPhase(c, train, api.InstanceRunning)
	web := w.wantPhase(d, "web", api.InstanceRunning).Meta.ID

	w.until(3, 11, 20) // resized: stopped, changed, started
	must(t, c.StopInstance, train)
	in := w.wantPhase(c, train, api.InstanceStopped)
	w.until(3, 11, 50)
	large, err := client.Of[api.Flavor](w.op).Get(t.Context(), "large", client.Query{})
	if err != nil {
		t.Fatal(err)
	}
	in = w.instance(c, train)
	in.Spec.Flavor = api.FlavorID(large.Meta.ID)
	if _, err := client.Of[api.Instance](c).Update(t.Context(), train, in); err != nil {
		t.Fatal(err)
	}
	w.settle()
	must(t, c.StartInstance, train)
	w.wantPhase(c, train, api.InstanceRunning)

	w.until(5, 12, 40) // the agent is killed; its instances continue to run
	h := w.nodeOf(w.instance(c, train))
	h.kill()
	w.until(5, 13, 10)
	h.start()
	w.wantPhase(c, train, api.InstanceRunning)

	w.until(8, 4, 0) // a node loses power
	h = w.nodeOf(w.instance(c, train))
	h.powerOff()
	w.until(8, 4, 10)
	if in := w.wantPhase(c, train, api.InstanceRunning); in.Assignment.Node == h.id {
		t.Fatalf("instance %s is assigned to node %s, which has no power, want another one", train, h.id)
	}
	w.until(8, 6, 0)
	h.powerOn()

	w.until(10, 15, 5) // the instance crashes, and is started an hour later
	h = w.nodeOf(w.instance(c, train))
	h.machines.Crash(api.InstanceID(train), "a bug")
	w.wantPhase(c, train, api.InstanceFailed)
	w.until(10, 16, 7)
	must(t, c.StartInstance, train)
	w.wantPhase(c, train, api.InstanceRunning)

	w.until(12, 8, 11) // an instance that exists for minutes
	short := must(t, client.Of[api.Instance](c).Create, machine("short", "large", 0)).Meta.ID
	w.wantPhase(c, short, api.InstanceRunning)
	w.until(12, 8, 48)
	must(t, client.Of[api.Instance](c).Delete, short)

	w.until(14, 23, 20) // SIGKILL to everything but the instances
	w.kill()
	w.wantPhase(c, train, api.InstanceRunning)
	w.until(15, 0, 10)
	w.kill()

	book, err := client.Of[api.PriceBook](w.op).Get(t.Context(), api.DefaultPriceBook, client.Query{})
	if err != nil {
		t.Fatal(err)
	}
	book.Spec.Prices = append(book.Spec.Prices, api.Price{Meter: api.MeterVCPU, PriceMicros: 13_337, Per: 3600, Unit: "vCPU hour", From: begin.AddDate(0, 0, 15)})
	if _, err := client.Of[api.PriceBook](w.op).Update(t.Context(), book.Meta.ID, book); err != nil {
		t.Fatal(err)
	}
	if _, err := w.op.PatchTaxSettings(t.Context(), "", map[string]any{"country": "DE", "rates": []api.TaxRate{{Country: "DE", Name: "VAT", BasisPoints: 1900}}}); err != nil {
		t.Fatal(err)
	}
	snapshot := must(t, client.Of[api.Snapshot](c).Create, api.Snapshot{Meta: api.Meta{Name: "before"}, Spec: api.SnapshotSpec{Volume: w.instance(c, train).Assignment.RootVolume}}).Meta.ID
	w.until(20, 0, 0)
	must(t, client.Of[api.Snapshot](c).Delete, snapshot)

	// The wallet has become empty meanwhile: web is stopped, and runs again after a payment.
	w.wantPhase(d, web, api.InstanceStopped)
	if o, err := client.Of[api.Organization](w.op).Get(t.Context(), other, client.Query{}); err != nil || o.Spec.Suspended == nil || o.Spec.Suspended.By != api.RoleBilling {
		t.Fatalf("organization %s with an empty wallet: %+v (error %v), want it suspended by billing", other, o.Spec, err)
	}
	if _, err := client.Of[api.Instance](d).Create(t.Context(), machine("more", "small", 0)); err == nil {
		t.Error("an organization with an empty wallet created another instance")
	}
	for range 2 { // the same payment twice counts once
		_, _ = client.Of[api.Payment](w.op).Create(t.Context(), api.Payment{Meta: api.Meta{Organization: other}, Spec: api.PaymentSpec{Currency: "EUR", AmountMicros: 500_000_000, Reference: "card 2"}})
	}
	w.pass(time.Hour)
	w.wantPhase(d, web, api.InstanceRunning)

	w.until(31, 20, 30) // a node is cut off over the month's end: its records arrive late
	h = w.nodeOf(w.instance(c, train))
	h.cut = true
	w.until(32, 3, 30)
	if n := len(w.invoices(acme)); n != 1 {
		t.Fatalf("%d invoices of %s at the end of the month, want 1", n, acme)
	}
	h.cut = false
	w.until(33, 0, 0)

	first := w.invoices(acme)[0]
	if want := time.Date(2027, 3, 31, 22, 0, 0, 0, time.UTC); !first.Spec.To.Equal(want) || !first.Spec.From.Equal(begin.Add(-time.Hour)) {
		t.Errorf("first invoice is for %s to %s, want March in Berlin: %s to %s", first.Spec.From, first.Spec.To, begin.Add(-time.Hour), want)
	}
	w.until(32+3+2, 12, 0) // due, and two days: nothing new
	if _, err := client.Of[api.Instance](c).Create(t.Context(), machine("more", "small", 0)); err == nil {
		t.Error("an organization with an overdue invoice created another instance")
	}
	w.wantPhase(c, train, api.InstanceRunning)
	w.until(32+3+4, 12, 0) // four days: stopped
	w.wantPhase(c, train, api.InstanceStopped)
	before := w.metered()[train][api.MeterVCPU]
	w.pass(24 * time.Hour)
	if after := w.metered()[train][api.MeterVCPU]; after != before {
		t.Errorf("instance %s of a suspended organization was metered with %f vCPU seconds, want 0", train, after-before)
	}
	must(t, client.Of[api.Payment](w.op).Create, api.Payment{Meta: api.Meta{Organization: acme}, Spec: api.PaymentSpec{Currency: "EUR", AmountMicros: first.Spec.TotalMicros, Reference: "transfer 1"}})
	w.pass(time.Hour)
	w.wantPhase(c, train, api.InstanceRunning)
	w.pass(90 * time.Minute)
	must(t, client.Of[api.Instance](c).Delete, train)
	must(t, client.Of[api.Instance](d).Delete, web)
	w.until(31+30+2, 0, 0) // past the end of April

	if late := w.checkAccounting(acme); late == 0 {
		t.Error("invoices of the node that was cut off have no late lines, want some")
	}
	w.checkAccounting(other)
	w.compare(train, web, short)
}

func (w *world) invoices(org string) (out []api.Invoice) {
	w.t.Helper()
	for inv, err := range client.Of[api.Invoice](w.op).All(w.t.Context(), client.Query{Organization: org}) {
		if err == nil { // a list does not include the lines
			inv, err = client.Of[api.Invoice](w.op).Get(w.t.Context(), inv.Meta.ID, client.Query{})
		}
		if err != nil {
			w.t.Fatal(err)
		}
		out = append(out, inv)
	}
	return out
}

// checkAccounting compares the invoices of an organization with its usage records and its
// ledger: every line equals the sum of its hours at its price, every record is in exactly one
// line, and the ledger balances. It returns the number of late lines.
func (w *world) checkAccounting(org string) (late int) {
	w.t.Helper()
	invoices := w.invoices(org)
	if len(invoices) != 2 {
		w.t.Fatalf("%d invoices of %s, want 2", len(invoices), org)
	}
	charged := map[api.Meter]*big.Rat{}
	var total, receivable int64
	for _, inv := range invoices {
		var sum int64
		for _, l := range inv.Spec.Lines {
			sum += l.AmountMicros
			if l.Kind == api.LineLate {
				late++
			}
			if l.Meter == "" {
				continue
			}
			if charged[l.Meter] == nil {
				charged[l.Meter] = new(big.Rat)
			}
			charged[l.Meter].Add(charged[l.Meter], rat(w, l.Quantity))
			if l.Kind == api.LineUsage {
				w.checkExplanation(inv, l)
			}
		}
		if sum != inv.Spec.TotalMicros {
			w.t.Errorf("invoice %s: sum of the lines = %d, want the total %d", inv.Spec.Number, sum, inv.Spec.TotalMicros)
		}
		total += inv.Spec.TotalMicros
	}
	used := map[api.Meter]*big.Rat{}
	for _, r := range w.records(org) {
		if used[r.Spec.Meter] == nil {
			used[r.Spec.Meter] = new(big.Rat)
		}
		used[r.Spec.Meter].Add(used[r.Spec.Meter], big.NewRat(r.Spec.Quantity, 1))
	}
	if gpu := used[api.MeterGPU]; gpu != nil {
		gpu.Sub(gpu, w.covered(org))
	}
	for m, n := range used {
		if charged[m] == nil || charged[m].Cmp(n) != 0 {
			w.t.Errorf("meter %s of %s: %s charged, want %s as used", m, org, charged[m], n.FloatString(0))
		}
	}
	ledger, err := w.op.Ledger(w.t.Context(), org)
	if err != nil {
		w.t.Fatal(err)
	}
	var balance, paid int64
	for _, a := range ledger.Accounts {
		balance += a.BalanceMicros
		switch {
		case strings.HasPrefix(a.Account, "receivable/"):
			receivable = a.BalanceMicros
		case a.Account == "cash":
			paid = a.BalanceMicros
		}
	}
	if balance != 0 || receivable != total-paid {
		w.t.Errorf("ledger of %s: %+v; balance %d, want 0; receivable %d, want %d invoiced less %d paid", org, ledger.Accounts, balance, receivable, total, paid)
	}
	w.t.Logf("%s: %d micros on %d invoices, %d late lines, %d paid", org, total, len(invoices), late, paid)
	return late
}

// covered returns the GPU time in nanoseconds that is covered by allocated shares of GPUs,
// computed hour by hour. It is paid with the share.
func (w *world) covered(org string) *big.Rat {
	type key struct {
		resource string
		hour     time.Time
	}
	const nanos = 10_000_000 // GPU nanoseconds of 1 % of a GPU in a second
	share, gpu := map[key]int64{}, map[key]int64{}
	for _, r := range w.records(org) {
		k := key{r.Spec.Resource, r.Spec.End.Add(-1).Truncate(time.Hour)}
		switch r.Spec.Meter {
		case api.MeterGPUShare:
			share[k] += r.Spec.Quantity
		case api.MeterGPU:
			gpu[k] += r.Spec.Quantity
		}
	}
	sum := new(big.Rat)
	for k, n := range gpu {
		sum.Add(sum, big.NewRat(min(n, share[k]*nanos), 1))
	}
	return sum
}

// checkExplanation checks that an invoice line is the sum of its hours, and that its amount is
// that quantity at its price.
func (w *world) checkExplanation(inv api.Invoice, l api.InvoiceLine) {
	w.t.Helper()
	e, err := w.op.ExplainInvoiceLine(w.t.Context(), inv.Meta.ID, "", l.ID, time.Time{})
	if err != nil {
		w.t.Fatal(err)
	}
	sum := new(big.Rat)
	for _, h := range e.Hours {
		sum.Add(sum, rat(w, h.Quantity))
	}
	for _, x := range e.Late {
		sum.Sub(sum, rat(w, x.Quantity))
	}
	if sum.Cmp(rat(w, l.Quantity)) != 0 {
		w.t.Errorf("invoice %s, %s of %s: quantity %s, want the sum of its hours %s", inv.Spec.Number, l.Meter, l.ResourceName, l.Quantity, sum.FloatString(0))
	}
	cost := new(big.Rat).Mul(rat(w, l.Quantity), big.NewRat(l.PriceMicros, l.Per))
	cost.Add(cost, big.NewRat(1, 2))
	if want := new(big.Int).Quo(cost.Num(), cost.Denom()); !want.IsInt64() || want.Int64() != l.AmountMicros {
		w.t.Errorf("invoice %s, %s of %s: %d micros for %s at %d per %d, want %s", inv.Spec.Number, l.Meter, l.ResourceName, l.AmountMicros, l.Quantity, l.PriceMicros, l.Per, want)
	}
}

func rat(w *world, q api.Quantity) *big.Rat {
	r, ok := new(big.Rat).SetString(q.String())
	if !ok {
		w.t.Fatalf("quantity %q is not a number", q)
	}
	return r
}

// compare compares the metered with the actual usage of resources: nothing may be metered that
// was not used, and almost everything that was used must be metered.
func (w *world) compare(ids ...string) {
	w.t.Helper()
	metered := w.metered()
	for _, id := range ids {
		for m, n := range w.truth[id] {
			got := metered[id][m]
			// A run is metered from when its agent has observed its start, so some seconds are
			// missing for each start.
			if got > n*(1+1e-9)+2 || got < n*(1-1e-9)-30*perSecond(m) {
				w.t.Errorf("resource %s: %.0f %s metered, want at most 30 s of usage less than %.0f", id, got, m, n)
			}
		}
	}
}

// perSecond returns the usage of the largest instance in a second.
func perSecond(m api.Meter) float64 {
	switch m {
	case api.MeterVCPU:
		return 4
	case api.MeterMemory:
		return 4 << 30
	}
	return 0
}
