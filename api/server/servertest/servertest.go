// Package servertest runs the API server over a memory store and a fake node, for tests
// of its clients.
package servertest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"net"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/memstore"
	"github.com/basalt-gpu/basalt/api/server"
	"github.com/basalt-gpu/basalt/api/server/auth"
	"github.com/basalt-gpu/basalt/api/server/password"
)

// Env is a running server.
type Env struct {
	URL, Token string // of an operator
	Store      *memstore.Store
	Server     *Server
	Node       *Node
	Packages   *Packages
	Room       *Room
}

// Start runs a server until the test ends. now is its clock; nil: the real one.
func Start(t testing.TB, now func() time.Time) *Env {
	t.Helper()
	return StartWith(t, func(o *server.Options) { o.Now = now })
}

// StartWith is Start with other options.
func StartWith(t testing.TB, change func(*server.Options)) *Env {
	t.Helper()
	store := memstore.New()
	node, packages, room := &Node{store: store, images: map[api.ImageID][]byte{}}, &Packages{}, &Room{}
	o := server.Options{Store: store, Runtime: node, Shells: FakeShells{}, Apps: Apps{}, Billing: Bill{}, Payments: &FakePayments{Store: store}, Offers: FakeOffers{}, Capacity: Forecast{}, Packages: packages, Room: room, Version: "test", KeyRate: 1e6,
		Passwords: password.New(password.Cost{MemoryKiB: 64, Passes: 1, Lanes: 1})}
	change(&o)
	s, err := server.New(o)
	if err != nil {
		t.Fatal(err)
	}
	checked := declaring(t, s)
	http := httptest.NewServer(checked)
	t.Cleanup(func() {
		http.CloseClientConnections()
		http.Close()
	})
	e := &Env{URL: http.URL, Store: store, Server: checked, Node: node, Packages: packages, Room: room}
	e.Token = e.Key(t, api.Meta{Name: "operator"}, api.RoleOperator)
	return e
}

// Key stores an API key and returns its token.
func (e *Env) Key(t testing.TB, m api.Meta, role api.Role) string {
	t.Helper()
	cmd, token := auth.NewAPIKey(m, api.APIKeySpec{Role: role})
	e.Apply(t, cmd)
	return token
}

// Apply writes to the store directly, without the API.
func (e *Env) Apply(t testing.TB, cmds ...api.Command) []api.Object {
	t.Helper()
	out, err := e.Store.Apply(context.Background(), api.Batch{At: time.Now(), Commands: cmds})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Node is a fake node: it stores images, echoes on consoles and, while Play runs,
// carries out what instances request.
type Node struct {
	store *memstore.Store

	mu       sync.Mutex // guards images, consoles
	images   map[api.ImageID][]byte
	consoles []net.Conn
}

// ConsoleLog implements server.Runtime.
func (n *Node) ConsoleLog(_ context.Context, id api.InstanceID, tail int64) ([]byte, error) {
	log := []byte(fmt.Sprintf("boot of %s\r\nlogin: ", id))
	return log[max(0, int64(len(log))-tail):], nil
}

// Samples implements server.Runtime: the CPU use grows, with a gap, and the time is
// fixed.
func (n *Node) Samples(_ context.Context, _ api.Kind, _ string, q api.SampleQuery) (api.Samples, error) {
	if q.Step%(5*time.Second) != 0 {
		return api.Samples{}, api.Errorf(api.CodeInvalid, "a step is a multiple of 5 seconds").At("step")
	}
	step := cmp.Or(q.Step, 5*time.Second)
	return api.Samples{From: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), StepSeconds: int64(step / time.Second), Series: []api.SampleSeries{
		api.NewSampleSeries(api.SampleCPU, []float64{10, math.NaN(), 30}), api.NewSampleSeries(api.SampleMemory, []float64{1 << 30, 2 << 30, 3 << 30}),
		api.NewSampleSeries(api.SampleMemoryLimit, []float64{4 << 30, 4 << 30, 4 << 30}), api.NewSampleSeries(api.SampleReceived, []float64{0, 0, 2048}),
		api.NewSampleSeries(api.SampleGPU, []float64{0, 50, 12.5}), api.NewSampleSeries(api.SampleVRAM, []float64{0, 1 << 30, 1 << 30})}}, nil
}

// GPUTenants implements server.Runtime.
func (n *Node) GPUTenants(context.Context, api.GPUID) ([]api.GPUTenant, error) {
	return []api.GPUTenant{{Instance: "ins-000000000001", SharePercent: 50, VramLimitBytes: 4 << 30, VramResidentBytes: 1 << 30, GpuPercent: 12.5}}, nil
}

// CloseConsoles closes all consoles, as when instances stop.
func (n *Node) CloseConsoles() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.consoles {
		_ = c.Close()
	}
	n.consoles = nil
}

// Console returns a connection that echoes.
func (n *Node) Console(context.Context, api.InstanceID) (io.ReadWriteCloser, error) {
	near, far := net.Pipe()
	n.mu.Lock()
	n.consoles = append(n.consoles, far)
	n.mu.Unlock()
	go func() {
		defer far.Close()
		_, _ = io.Copy(far, far)
	}()
	return near, nil
}

// Screen returns a connection that sends QEMU's greeting, and echoes.
func (n *Node) Screen(context.Context, api.InstanceID) (io.ReadWriteCloser, error) {
	near, far := net.Pipe()
	n.mu.Lock()
	n.consoles = append(n.consoles, far)
	n.mu.Unlock()
	go func() {
		defer far.Close()
		_, _ = io.WriteString(far, "RFB 003.008\n")
		_, _ = io.Copy(far, far)
	}()
	return near, nil
}

// Exec prints the arguments; "false" fails.
func (n *Node) Exec(_ context.Context, _ api.InstanceID, req api.ExecRequest) (api.ExecResult, error) {
	if req.Argv[0] == "false" {
		return api.ExecResult{ExitCode: 1, Stderr: []byte("no\n")}, nil
	}
	return api.ExecResult{Stdout: append(fmt.Appendf(nil, "%q\n", req.Argv), req.Stdin...)}, nil
}

// Leaks returns one volume.
func (n *Node) Leaks(context.Context, api.NodeID) ([]api.Leak, error) {
	return []api.Leak{{Kind: string(api.KindVolume), ID: "vol-left", What: "in pool local"}}, nil
}

// PutImage stores the bytes and reports the image ready, or failed if its checksum does
// not match.
func (n *Node) PutImage(ctx context.Context, id api.ImageID, r io.Reader, _ int64) error {
	data, err := io.ReadAll(io.LimitReader(r, 64<<20))
	if err != nil {
		return err
	}
	o, err := n.store.Get(ctx, api.KindImage, string(id))
	if err != nil {
		return err
	}
	image, err := api.Decode[api.Image](o)
	if err != nil {
		return err
	}
	sum := fmt.Sprintf("%x", sha256.Sum256(data))
	if image.Spec.Sha256 != "" && image.Spec.Sha256 != sum {
		return api.Errorf(api.CodeInvalid, "the image's checksum is %s", sum).At("spec.sha256")
	}
	n.mu.Lock()
	n.images[id] = data
	n.mu.Unlock()
	return n.report(ctx, api.KindImage, string(id), api.ImageStatus{Phase: api.ImageReady, Node: "node-1",
		SizeBytes: int64(len(data)), VirtualBytes: 1 << 30, Sha256: sum})
}

// Image returns the bytes that were stored.
func (n *Node) Image(id string) []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.images[api.ImageID(id)]
}

func (n *Node) report(ctx context.Context, kind api.Kind, id string, status any) error {
	_, err := n.store.Apply(ctx, api.Batch{At: time.Now(), Commands: []api.Command{{
		Op: api.OpReport, Kind: kind, ID: id, Expect: api.AnyRevision, Data: api.Encode(status)}}})
	return err
}

// Play starts, stops and deletes instances, and imports images, until ctx ends.
func (n *Node) Play(ctx context.Context) error {
	events, err := n.store.Watch(ctx, 0)
	if err != nil {
		return err
	}
	for e := range events {
		if e.Type != api.EventPut {
			continue
		}
		if err := n.play(ctx, e.Object); err != nil && api.CodeOf(err) != api.CodeNotFound {
			return err
		}
	}
	return nil
}

func (n *Node) play(ctx context.Context, o api.Object) error {
	if o.Meta.DeletedAt != nil {
		for _, f := range o.Meta.Finalizers {
			if _, err := n.store.Apply(ctx, api.Batch{At: time.Now(), Commands: []api.Command{{
				Op: api.OpForget, Kind: o.Kind, ID: o.Meta.ID, Expect: api.AnyRevision, Finalizer: f}}}); err != nil {
				return err
			}
		}
		return nil
	}
	switch o.Kind {
	case api.KindImage:
		image, err := api.Decode[api.Image](o)
		if err != nil || image.Spec.URL == "" || image.Status.Phase != "" {
			return err
		}
		return n.report(ctx, o.Kind, o.Meta.ID, api.ImageStatus{Phase: api.ImageReady, Node: "node-1", VirtualBytes: 1 << 30})
	case api.KindVolume:
		v, err := api.Decode[api.Volume](o)
		if err != nil {
			return err
		}
		return n.report(ctx, o.Kind, o.Meta.ID, api.VolumeStatus{Phase: api.VolumeReady, SizeBytes: v.Spec.SizeBytes, ObservedGeneration: o.Meta.Generation})
	case api.KindInstance:
		in, err := api.Decode[api.Instance](o)
		if err != nil {
			return err
		}
		st := api.InstanceStatus{Phase: api.InstanceRunning, Restarts: in.Spec.Restarts, ObservedGeneration: o.Meta.Generation}
		if in.Spec.Power == api.PowerStopped {
			st.Phase = api.InstanceStopped
		}
		return n.report(ctx, o.Kind, o.Meta.ID, st)
	}
	return nil
}

// Bill is a billing with one invoice line.
type Bill struct{}

// InvoicePreview implements server.Billing.
func (Bill) InvoicePreview(_ context.Context, org api.OrganizationID, from, to time.Time) (api.InvoicePreview, error) {
	line := api.InvoiceLine{ID: "line-000000000001", Kind: api.LineUsage, Meter: api.MeterVCPU, Resource: "ins-000000000001", ResourceName: "demo",
		Quantity: api.Units(7200), Per: 3600, PriceMicros: 10000, Unit: "vCPU hour", AmountMicros: 20000}
	return api.InvoicePreview{Organization: org, Currency: "EUR", From: from, To: to, Lines: []api.InvoiceLine{line}, TotalMicros: 20000}, nil
}

// InstanceCost implements server.Billing.
func (Bill) InstanceCost(_ context.Context, _ api.Instance, now time.Time) (api.InstanceCost, error) {
	return api.InstanceCost{Currency: "EUR", ReservedMicros: 400_000, FullUseMicros: 900_000, SpentMicros: 12_340_000, From: now.UTC().Truncate(24 * time.Hour), Until: now.UTC()}, nil
}

// Usage implements server.Billing.
func (Bill) Usage(_ context.Context, q api.UsageQuery) (api.UsagePage, error) {
	sum := api.UsageSum{From: q.From, To: q.To, Project: api.ProjectID(q.Project), Meter: api.MeterVCPU, Resource: "ins-000000000001", ResourceName: "demo", Quantity: api.Units(7200)}
	return api.UsagePage{Items: []api.UsageSum{sum}}, nil
}

// Export implements server.Billing.
func (Bill) Export(_ context.Context, org api.OrganizationID, _, _ time.Time, format api.ExportFormat, w io.Writer) error {
	_, err := fmt.Fprintf(w, "format,organization\n%s,%s\n", format, org)
	return err
}

// Explain implements server.Billing.
func (b Bill) Explain(ctx context.Context, q api.InvoiceQuestion) (api.InvoiceExplanation, error) {
	p, err := b.InvoicePreview(ctx, q.Organization, q.From, q.To)
	if err != nil || q.Line != p.Lines[0].ID {
		return api.InvoiceExplanation{}, api.Errorf(api.CodeNotFound, "the invoice has no line %s", q.Line).At("line")
	}
	return api.InvoiceExplanation{Line: p.Lines[0], Hours: []api.InvoiceHour{{Hour: q.From, Quantity: api.Units(3600)}, {Hour: q.From.Add(time.Hour), Quantity: api.Units(3600)}}}, nil
}

// ExplainIssued implements server.Billing.
func (Bill) ExplainIssued(_ context.Context, inv api.Invoice, line string, _ time.Time) (api.InvoiceExplanation, error) {
	return api.InvoiceExplanation{Line: api.InvoiceLine{ID: line}, Hours: []api.InvoiceHour{{Hour: inv.Spec.From, Quantity: api.Units(7200)}}}, nil
}

// DraftCreditNote implements server.Billing.
func (Bill) DraftCreditNote(_ context.Context, id string, asked api.CreditNoteSpec, inv api.Invoice) ([]api.Command, error) {
	asked.Number = "CN-000001"
	return []api.Command{{Op: api.OpPutSpec, Kind: api.KindCreditNote, ID: id, Name: "cn-000001", Organization: inv.Meta.Organization, Data: api.Encode(asked)}}, nil
}

// DraftFinalInvoices implements server.Billing: an invoice of the current hour.
func (Bill) DraftFinalInvoices(_ context.Context, org api.OrganizationID, now time.Time) ([]api.Command, []api.Invoice, error) {
	from := now.UTC().Truncate(time.Hour)
	inv := api.Invoice{Kind: api.KindInvoice, Meta: api.Meta{ID: "inv-00000000f1a1", Name: "inv-000007", Organization: string(org)},
		Spec: api.InvoiceSpec{Number: "INV-000007", From: from, To: from.Add(time.Hour), Currency: "EUR", TotalMicros: 20_000}}
	return []api.Command{
		{Op: api.OpPutSpec, Kind: api.KindSeries, ID: "ser-000000000001", Expect: api.AnyRevision, Data: api.Encode(api.SeriesSpec{Invoices: 7})},
		{Op: api.OpPutSpec, Kind: api.KindInvoice, ID: inv.Meta.ID, Name: inv.Meta.Name, Organization: string(org), Expect: api.AnyRevision, Data: api.Encode(inv.Spec)},
	}, []api.Invoice{inv}, nil
}

// Ledger implements server.Billing.
func (Bill) Ledger(_ context.Context, org api.OrganizationID) (api.Ledger, error) {
	return api.Ledger{Organization: org, Accounts: []api.LedgerAccount{}, Transactions: []api.LedgerTransaction{}}, nil
}

// Simulate implements server.Billing.
func (Bill) Simulate(_ context.Context, q api.SimulationQuery) (api.Simulation, error) {
	item := api.SimulatedInvoice{Organization: q.Organization, Name: "acme", TotalMicros: 30_000, OwnMicros: 20_000, OwnCurrency: "EUR"}
	return api.Simulation{Currency: q.Book.Spec.Currency, Items: []api.SimulatedInvoice{item}, TotalMicros: 30_000}, nil
}

// Quote implements server.Billing: 1 EUR for each hour, by changed prices 2 EUR.
func (Bill) Quote(_ context.Context, q api.PriceQuoteQuery) (api.PriceQuote, error) {
	month := func(each int64) api.QuotedMonth {
		same := func(micros int64) api.QuotedEnds {
			return api.QuotedEnds{ReservedMicros: micros, FullUseMicros: micros}
		}
		return api.QuotedMonth{TotalMicros: each * q.Request.Hours, Meters: []api.QuotedMeter{{Meter: api.MeterVCPU, AmountMicros: each * q.Request.Hours}}, Hour: same(each), Month: same(each * q.Request.Hours)}
	}
	out := api.PriceQuote{Currency: q.Book.Spec.Currency, Vcpus: q.Flavor.Spec.Vcpus, MemoryBytes: q.Flavor.Spec.MemoryBytes, RootBytes: q.Request.RootBytes, Current: month(1_000_000)}
	if q.Request.Prices != nil {
		changed := month(2_000_000)
		out.Changed = &changed
	}
	return out, nil
}

// Revenue implements server.Billing.
func (Bill) Revenue(_ context.Context, q api.RevenueQuery) (api.RevenuePage, error) {
	if err := q.Check(); err != nil {
		return api.RevenuePage{}, err
	}
	return api.RevenuePage{Items: []api.Revenue{{Key: string(q.Seller), Currency: "EUR", NetMicros: 1}}, Totals: []api.Revenue{}}, nil
}

// Costs implements server.Billing.
func (Bill) Costs(_ context.Context, q api.CostQuery) (api.CostPage, error) {
	if err := q.Check(); err != nil {
		return api.CostPage{}, err
	}
	return api.CostPage{Currency: "EUR", Items: []api.Cost{{From: q.From, To: q.To, Key: string(q.Organization), AmountMicros: 1}}, UsageMicros: 1, TotalMicros: 1}, nil
}

// InvoicePDF implements server.Billing.
func (Bill) InvoicePDF(context.Context, api.Invoice) ([]byte, error) { return []byte("%PDF-"), nil }

// CreditNotePDF implements server.Billing.
func (Bill) CreditNotePDF(context.Context, api.CreditNote) ([]byte, error) {
	return []byte("%PDF-"), nil
}

// Wallet implements server.Billing.
func (Bill) Wallet(_ context.Context, org api.OrganizationID, now time.Time) (api.Wallet, error) {
	open := []api.OpenInvoice{{Invoice: "inv-000000000001", Number: "INV-000001", DueAt: now.Truncate(24 * time.Hour), LeftMicros: 1_500_000}}
	return api.Wallet{Organization: org, Currency: "EUR", BalanceMicros: -1_500_000, UnbilledMicros: 20_000, State: api.BillingWarn, Message: "invoice INV-000001 is due", Open: open}, nil
}

// UninvoicedWholesale implements server.Billing.
func (Bill) UninvoicedWholesale(context.Context, api.OrganizationID, time.Time) (api.Uninvoiced, error) {
	return api.Uninvoiced{}, nil
}

// Uninvoiced implements server.Billing.
func (Bill) Uninvoiced(context.Context, api.OrganizationID, time.Time) (api.Uninvoiced, error) {
	return api.Uninvoiced{Micros: 20_000, Currency: "EUR"}, nil
}

// Currency implements server.Billing.
func (Bill) Currency(context.Context, api.OrganizationID) (string, error) { return "EUR", nil }

// Sum returns the SHA-256 of data in hexadecimal.
func Sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}
