package invoicing

import (
	"fmt"
	"log/slog"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store"
	"github.com/basalt-gpu/basalt/billing/pricebook"
)

// cpu returns the processor time that this process has used.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkStep measures the processor time of the leader's steps, on the real store:
// an organization has a project, a day's use of one machine, a wallet or invoices, and
// every fourth a budget.
//
//	first   the first step of a term, which processes all organizations
//	hour    a step each minute, on average over an hour in which nothing changes
//	used    a step after a fifth of them were metered, as all are in 5 minutes
//	list    baseline: one listing of the same organizations
func BenchmarkStep(b *testing.B) {
	for _, n := range []int{2_000, 20_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for range b.N {
				benchmarkStep(b, n)
			}
		})
	}
}

func benchmarkStep(b *testing.B, n int) {
	s, err := store.Open(store.Options{Dir: b.TempDir(), NodeID: "node-a"})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	var cmds []api.Command
	put := func(last bool, more ...api.Command) {
		if cmds = append(cmds, more...); len(cmds) < 500 && !last || len(cmds) == 0 {
			return
		}
		if _, err := s.Apply(b.Context(), api.Batch{At: march, Commands: cmds}); err != nil {
			b.Fatal(err)
		}
		cmds = cmds[:0]
	}
	id := func(kind string, i int) string { return fmt.Sprintf("%s-%012d", kind, i) }
	seen := 0
	use := func(i int, end time.Time) {
		for _, m := range []api.Meter{api.MeterMemory, api.MeterVCPU} {
			seen++
			put(false, api.Command{Op: api.OpRecord, Kind: api.KindUsageRecord, ID: id("use", seen), Organization: id("org", i), Project: id("prj", i),
				Data: api.Encode(api.UsageRecordSpec{Meter: m, Resource: id("ins", i), ResourceName: "web", Start: end.Add(-5 * time.Minute), End: end, Quantity: 300})})
		}
	}
	put(false, api.Command{Op: api.OpPutSpec, Kind: api.KindPriceBook, ID: "pb-1", Name: "default", Data: api.Encode(pricebook.Default())})
	for i := range n {
		terms := &api.OrganizationBilling{Mode: []api.BillingMode{api.BillingInvoice, api.BillingPrepaid}[i%2], Since: march, TimeZone: "Europe/Berlin"}
		put(false, api.Command{Op: api.OpPutSpec, Kind: api.KindOrganization, ID: id("org", i), Name: id("org", i),
			Data: api.Encode(api.OrganizationSpec{Billing: api.DefaultBilling(nil, terms, march)})},
			api.Command{Op: api.OpPutSpec, Kind: api.KindProject, ID: id("prj", i), Name: "web", Organization: id("org", i), Data: []byte(`{}`)},
			api.Command{Op: api.OpPutSpec, Kind: api.KindPayment, ID: id("pay", i), Organization: id("org", i),
				Data: api.Encode(api.PaymentSpec{Type: api.PaymentIn, Currency: "EUR", AmountMicros: 1e9, Reference: id("pay", i)})})
		if i%4 < 2 {
			put(false, api.Command{Op: api.OpPutSpec, Kind: api.KindBudget, ID: id("bud", i), Name: "all", Organization: id("org", i),
				Data: api.Encode(api.BudgetSpec{AmountMicros: 1e9, Cap: api.CapStop})})
		}
		for h := range 24 {
			use(i, march.Add(time.Duration(h+1)*time.Hour))
		}
	}
	put(true)
	j := &Job{Billing: Billing{s}, Store: s, Changes: s, Log: slog.New(slog.DiscardHandler)}
	measure := func(name string, times int, f func()) {
		runtime.GC()
		before, began := cpu(b), time.Now()
		f()
		b.ReportMetric(float64((cpu(b)-before).Microseconds())/1000/float64(times), name+"-cpu-ms")
		b.ReportMetric(float64(time.Since(began).Microseconds())/1000/float64(times), name+"-ms")
	}
	measure("list", 1, func() {
		if all, err := api.All[api.Organization](b.Context(), s, api.ListQuery{Kind: api.KindOrganization}); err != nil || len(all) != n {
			b.Fatalf("list organizations: %d, %v; want %d", len(all), err, n)
		}
	})
	now := march.Add(25 * time.Hour)
	measure("first", 1, func() { j.Step(b.Context(), now) })
	for range 2 { // its own writes make organizations due
		now = now.Add(time.Minute)
		j.Step(b.Context(), now)
	}
	measure("hour", 60, func() {
		for range 60 {
			now = now.Add(time.Minute)
			j.Step(b.Context(), now)
		}
	})
	for i := range n / 5 {
		use(i, now)
	}
	put(true)
	measure("used", 1, func() { j.Step(b.Context(), now.Add(time.Second)) })
	if n := len(j.agenda); n == 0 || len(j.running.cached) == 0 {
		b.Fatalf("after the steps: %d due organizations, %d cached ratings; want some of both", n, len(j.running.cached))
	}
}
