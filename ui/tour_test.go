package ui_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/api/server"
	"github.com/basalt-gpu/basalt/api/server/auth"
	"github.com/basalt-gpu/basalt/api/server/servertest"
	"github.com/basalt-gpu/basalt/appliance/controlplane/forecast"
	"github.com/basalt-gpu/basalt/appliance/controlplane/invoicing"
	"github.com/basalt-gpu/basalt/appliance/controlplane/offers"
	"github.com/basalt-gpu/basalt/appliance/controlplane/payment"
	"github.com/basalt-gpu/basalt/appliance/controlplane/plan"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store"
	"github.com/basalt-gpu/basalt/appliance/controlplane/watchcache"
	"github.com/basalt-gpu/basalt/appliance/test/kit/portaltest"
	"github.com/basalt-gpu/basalt/billing/pricebook"
	"github.com/basalt-gpu/basalt/ui"
)

const (
	tourNodes     = 6
	tourInstances = 500
)

// tour is a service provider's cluster for e2e/tour.mjs: the real store, offers, forecast and
// invoices, and nodes whose status this test writes.
type tour struct {
	t     *testing.T
	store *store.Store
	op    *client.API
	url   string
	now   time.Time // of the API: the cluster is older than a month

	image     string
	customers []customer
}

// customer is an organization that has instances, and its project.
type customer struct{ org, project string }

// startTour starts the cluster and fills it.
func startTour(t *testing.T) *tour {
	t.Helper()
	s, err := store.Open(store.Options{Dir: t.TempDir(), NodeID: "node-a"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	w := &tour{t: t, store: s, now: time.Now().AddDate(0, 0, -45)}
	prices := invoicing.Billing{Store: s}
	cache := watchcache.New(s, slog.New(slog.DiscardHandler), plan.Kinds...)
	w.background(func(ctx context.Context) { _ = cache.Run(ctx) })
	available := offers.New(offers.Options{Cache: cache, Prices: prices, Networking: true})
	t.Cleanup(available.Close)
	env := servertest.StartWith(t, func(o *server.Options) {
		o.Store, o.Billing, o.Offers, o.Networking = s, prices, available, true
		o.Capacity = forecast.New(s, time.Now)
		o.Payments = payment.New(payment.Options{Store: s})
		o.Refusals = func(context.Context, string) ([]api.RefusedSignIn, bool) { return refusedSignIns(w.now), false }
		o.Now = func() time.Time { return w.now }
	})
	web := httptest.NewServer(ui.Handler(env.Server))
	t.Cleanup(web.Close)
	w.url = web.URL
	key, token := auth.NewAPIKey(api.Meta{Name: "operator"}, api.APIKeySpec{Role: api.RoleOperator})
	w.apply(key)
	if w.op, err = client.New(client.Options{Server: w.url, Token: token}); err != nil {
		t.Fatal(err)
	}
	w.hardware()
	w.sellers()
	w.machines()
	w.now = time.Now()
	w.money(prices)
	w.rest()
	return w
}

// background runs f until the test ends.
func (w *tour) background(f func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); f(ctx) }()
	w.t.Cleanup(func() { cancel(); <-done })
}

// apply writes to the store directly, as nodes and the leader do.
func (w *tour) apply(cmds ...api.Command) {
	w.t.Helper()
	if _, err := w.store.Apply(w.t.Context(), api.Batch{At: w.now, Commands: cmds}); err != nil {
		w.t.Fatal(err)
	}
}

func report(kind api.Kind, id string, status any) api.Command {
	return api.Command{Op: api.OpReport, Kind: kind, ID: id, Expect: api.AnyRevision, Data: api.Encode(status)}
}

func named(c api.Command, name string) api.Command {
	c.Name = name
	return c
}

// create creates an object as the operator.
func create[T any](w *tour, x T) T {
	w.t.Helper()
	out, err := client.Of[T](w.op).Create(w.t.Context(), x)
	if err != nil {
		w.t.Fatalf("create %+v: %v", x, err)
	}
	return out
}

var tourModels = []struct {
	name  string
	vram  int64
	count int
}{{"NVIDIA H100 80GB HBM3", 80 << 30, 8}, {"NVIDIA L40S", 48 << 30, 8}, {"NVIDIA L4", 24 << 30, 16}}

func nodeID(n int) string { return fmt.Sprintf("nod-%012x", n+1) }

func gpuID(n, g int) string { return fmt.Sprintf("gpu-%06x%06x", n+1, g+1) }

// tourGPUs are all GPUs.
var tourGPUs = func() (all []struct{ node, gpu int }) {
	for n := range tourNodes {
		for g := range tourModels[n%len(tourModels)].count {
			all = append(all, struct{ node, gpu int }{n, g})
		}
	}
	return all
}()

// hardware reports nodes with 64 GPUs: 8, 8 and 16 in a node, twice.
func (w *tour) hardware() {
	for n := range tourNodes {
		m := tourModels[n%len(tourModels)]
		w.apply(named(report(api.KindNode, nodeID(n), api.NodeStatus{Version: "1.0.0", Vcpus: 384, MemoryBytes: 1 << 40, Hypervisor: "QEMU 10.0.2", Accelerator: "kvm",
			StorageBytes: 20 << 40, StorageFreeBytes: int64(12-n) << 40, SeenAt: time.Now(), NetworkMtu: 9000, Chassis: true,
			Pools:      []api.StoragePool{{Name: "local", SizeBytes: 20 << 40, FreeBytes: int64(12-n) << 40}},
			Conditions: []api.Condition{{Type: "Ready", Status: true, Since: w.now}},
			Hardware:   []api.HardwareCheck{{ID: "kvm", State: "ok", Found: "KVM is available"}}}), fmt.Sprintf("gpu-node-%d", n+1)))
		for g := range m.count {
			w.apply(named(report(api.KindGPU, gpuID(n, g), api.GPUStatus{Node: api.NodeID(nodeID(n)), Model: m.name, VramBytes: m.vram, UUID: fmt.Sprintf("GPU-%08x-0000-0000-0000-%012x", n+1, g+1),
				Driver: "580.95.05", Multiprocessors: 132, BusyPercent: int64((n*31 + g*17) % 100), TemperatureCelsius: int64(38 + (n*7+g*5)%45), PowerMilliwatts: 300_000,
				VramUsedBytes: m.vram / 100 * int64((n*13+g*29)%100), Vgpus: int64(g % 5), SeenAt: time.Now()}), fmt.Sprintf("gpu-node-%d-gpu-%d", n+1, g)))
		}
	}
}

// sellers creates a reseller with two customers, and a customer of the operator; in each
// organization a project and a user.
func (w *tour) sellers() {
	create(w, api.PriceBook{Meta: api.Meta{Name: "default"}, Spec: pricebook.Default()})
	create(w, api.GPUPool{Meta: api.Meta{Name: api.DefaultPool}})
	create(w, api.Flavor{Meta: api.Meta{Name: "small"}, Spec: api.FlavorSpec{Vcpus: 4, MemoryBytes: 16 << 30, RootBytes: 40 << 30}})
	create(w, api.Flavor{Meta: api.Meta{Name: "large"}, Spec: api.FlavorSpec{Vcpus: 16, MemoryBytes: 128 << 30, RootBytes: 200 << 30}})
	image := create(w, api.Image{Meta: api.Meta{Name: "debian-13"}, Spec: api.ImageSpec{Format: "raw", Public: true}})
	w.image = image.Meta.ID
	w.apply(report(api.KindImage, image.Meta.ID, api.ImageStatus{Phase: api.ImageReady, SizeBytes: 400 << 20, VirtualBytes: 3 << 30}))
	create(w, api.App{Meta: api.Meta{Name: "jupyter"}, Spec: api.AppSpec{DisplayName: "JupyterLab", Version: "4", Image: "debian-13", Category: "Notebooks",
		Description: "Notebooks in the browser.", Ports: []api.AppPort{{Port: 8888, Name: "Web"}}}})
	w.user("op@example.com", "", api.RoleOperator)
	north := w.organization(api.Organization{Meta: api.Meta{Name: "north"}, Spec: api.OrganizationSpec{DisplayName: "North Cloud"}})
	w.user("reseller@example.com", north, api.RoleReseller)
	for _, c := range []struct{ name, title, parent, user string }{{"acme", "Acme Ltd", "", "ann@example.com"}, {"blue", "Blue Labs", north, "ben@example.com"}, {"coral", "Coral Films", north, "cleo@example.com"}} {
		org := w.organization(api.Organization{Meta: api.Meta{Name: c.name}, Spec: api.OrganizationSpec{DisplayName: c.title, Parent: api.OrganizationID(c.parent)}})
		p := create(w, api.Project{Meta: api.Meta{Name: "research", Organization: org}})
		w.customers = append(w.customers, customer{org, p.Meta.ID})
		w.user(c.user, org, api.RoleAdmin)
	}
}

// organization creates an organization that pays after the month, and returns its ID.
func (w *tour) organization(o api.Organization) string {
	o.Spec.Billing = &api.OrganizationBilling{Mode: api.BillingInvoice, Country: "DE", Address: []string{"Hafenstr. 1", "20457 Hamburg"}}
	return create(w, o).Meta.ID
}

func (w *tour) user(email, org string, role api.Role) {
	u := create(w, api.User{Meta: api.Meta{Name: email, Organization: org}, Spec: api.UserSpec{DisplayName: email[:3], Grants: []api.Grant{{Role: role, Organization: org}}}})
	portaltest.SetPassword(w.t, w.url, u.Link.Token)
}

// machines writes the instances, most of which have a share of a GPU.
func (w *tour) machines() {
	phases := []api.InstancePhase{api.InstanceRunning, api.InstanceRunning, api.InstanceRunning, api.InstanceRunning, api.InstanceStopped, api.InstanceFailed, api.InstancePending}
	var batch []api.Command
	for i := range tourInstances {
		c, at := w.customers[i%len(w.customers)], tourGPUs[i%len(tourGPUs)]
		id, root := fmt.Sprintf("ins-%012x", i+1), fmt.Sprintf("vol-%012x", i+1)
		m := tourModels[at.node%len(tourModels)]
		status := api.InstanceStatus{Phase: phases[i%len(phases)]}
		if status.Phase == api.InstanceFailed {
			status.LastError, status.Cause = "qemu exited: guest memory cannot be allocated", api.Cause{Code: api.CauseFailed}
		}
		meta := func(c api.Command, of customer) api.Command {
			c.Organization, c.Project = of.org, of.project
			return c
		}
		cmds := []api.Command{
			meta(api.Command{Op: api.OpPutSpec, Kind: api.KindVolume, ID: root, Name: fmt.Sprintf("train-%03d-root", i),
				Data: api.Encode(api.VolumeSpec{Pool: "local", SizeBytes: 40 << 30, Root: true, Instance: api.InstanceID(id), Image: api.ImageID(w.image)})}, c),
			report(api.KindVolume, root, api.VolumeStatus{Phase: api.VolumeReady, SizeBytes: 40 << 30, AllocatedBytes: 11 << 30, Attached: api.InstanceID(id)}),
			meta(api.Command{Op: api.OpPutSpec, Kind: api.KindInstance, ID: id, Name: fmt.Sprintf("train-%03d", i), Labels: map[string]string{"team": []string{"vision", "speech", "search"}[i%3]},
				Data: api.Encode(api.InstanceSpec{Flavor: "small", Image: api.ImageID(w.image), Vgpu: &api.VGPUSpec{VramBytes: m.vram / 8, SharePercent: 12, Model: m.name}})}, c),
		}
		if status.Phase != api.InstancePending {
			status.Node = api.NodeID(nodeID(at.node))
			cmds = append(cmds, api.Command{Op: api.OpAssign, Kind: api.KindInstance, ID: id, Expect: api.AnyRevision,
				Data: api.Encode(api.InstanceAssignment{Node: status.Node, Vcpus: 4, MemoryBytes: 16 << 30, Gpu: api.GPUID(gpuID(at.node, at.gpu)), VgpuVramBytes: m.vram / 8, VgpuSharePercent: 12,
					VgpuTier: api.TierStandard, RootVolume: api.VolumeID(root)})})
		}
		batch = append(append(batch, cmds...), report(api.KindInstance, id, status))
		if i%50 == 49 {
			w.apply(batch...)
			batch = nil
		}
	}
}

// money meters a month of the first instances, and lets the leader's job invoice it.
func (w *tour) money(billing invoicing.Billing) {
	last := w.now.UTC().Truncate(24*time.Hour).AddDate(0, 0, -40)
	for d := range 40 {
		start := last.AddDate(0, 0, d)
		var cmds []api.Command
		for i := range 12 {
			c, m := w.customers[i%len(w.customers)], tourModels[i%len(tourModels)]
			for _, u := range []api.UsageRecordSpec{{Meter: api.MeterVCPU, Quantity: 4 * 3600}, {Meter: api.MeterGPUShare, Quantity: 12 * 36, Model: m.name}, {Meter: api.MeterGPU, Quantity: int64(9+i) * 100e9, Model: m.name}} {
				u.Resource, u.ResourceName, u.Start, u.End = fmt.Sprintf("ins-%012x", i+1), fmt.Sprintf("train-%03d", i), start, start.Add(time.Hour)
				cmds = append(cmds, api.Command{Op: api.OpRecord, Kind: api.KindUsageRecord, ID: fmt.Sprintf("use-%04x%04x%04x", d, i, len(cmds)), Organization: c.org, Project: c.project, Data: api.Encode(u)})
			}
		}
		w.apply(cmds...)
	}
	job := invoicing.Job{Billing: billing, Store: w.store, Changes: w.store, Log: slog.New(slog.DiscardHandler)}
	job.Step(w.t.Context(), w.now)
}

// rest creates one object at least of the other kinds that have pages.
func (w *tour) rest() {
	c := w.customers[0]
	in := api.Meta{Organization: c.org, Project: c.project}
	meta := func(name string) api.Meta { m := in; m.Name = name; return m }
	create(w, api.Network{Meta: meta("training"), Spec: api.NetworkSpec{Cidr4: "10.20.0.0/24"}})
	create(w, api.SecurityGroup{Meta: meta("web"), Spec: api.SecurityGroupSpec{}})
	create(w, api.Volume{Meta: meta("data"), Spec: api.VolumeSpec{SizeBytes: 500 << 30}})
	create(w, api.Snapshot{Meta: meta("before-upgrade"), Spec: api.SnapshotSpec{Volume: "vol-000000000001"}})
	create(w, api.Payment{Meta: api.Meta{Name: "sepa-2026-11-02", Organization: c.org}, Spec: api.PaymentSpec{AmountMicros: 250_000_000, Currency: "EUR", Reference: "SEPA 2026-11-02"}})
	create(w, api.Budget{Meta: api.Meta{Name: "research", Organization: c.org}, Spec: api.BudgetSpec{AmountMicros: 500_000_000, AlertPercents: []int64{50, 90}}})
	create(w, api.Voucher{Meta: api.Meta{Name: "welcome"}, Spec: api.VoucherSpec{AmountMicros: 10_000_000, Currency: "EUR", Redemptions: 5}})
	create(w, api.Webhook{Meta: api.Meta{Name: "billing", Organization: c.org}, Spec: api.WebhookSpec{URL: "https://hooks.example.com/basalt"}})
	w.cards(c)
	create(w, api.IdentityProvider{Meta: api.Meta{Name: "acme"}, Spec: api.IdentityProviderSpec{Organization: c.org, Issuer: "https://login.example.com", ClientID: "basalt", ClientSecret: "a secret"}})
}

// cards lets a customer pay with a card that is charged for each invoice.
func (w *tour) cards(c customer) {
	card, by := "card-000000000001", api.AutoPayID(api.OrganizationID(c.org))
	put := func(kind api.Kind, id string, spec any) api.Command {
		return api.Command{Op: api.OpPutSpec, Kind: kind, ID: id, Name: id, Data: api.Encode(spec)}
	}
	of := func(cmd api.Command) api.Command { cmd.Organization = c.org; return cmd }
	w.apply(put(api.KindPaymentSettings, api.PaymentSettingsID, api.PaymentSettingsSpec{Enabled: true, MinMicros: 5_000_000, MaxMicros: 5_000_000_000, SecretKey: "sk", WebhookSecret: "wh", PortalURL: "https://cloud.example.com"}),
		of(put(api.KindCard, card, api.CardSpec{})),
		report(api.KindCard, card, api.CardStatus{State: api.CardSaved, Brand: "visa", LastDigits: "4242", ExpiryMonth: 4, ExpiryYear: 2031, Default: true, PaymentMethod: "pm_1", Customer: "cus_1"}),
		of(put(api.KindAutoPay, by, api.AutoPaySpec{Enabled: true, Card: api.CardID(card), ConsentBy: "ann@example.com", ConsentAt: &w.now})))
}

// refusedSignIns are what other nodes have refused of the sign-ins with an identity provider.
func refusedSignIns(now time.Time) []api.RefusedSignIn {
	return []api.RefusedSignIn{
		{At: now.Add(-3 * time.Minute), Confirmed: true, Email: "zoe@example.org", Count: 4, Reason: `the e-mail address "zoe@example.org" is not of a domain of the provider: want one of example.com`},
		{At: now.Add(-2 * time.Hour), Count: 17, Reason: "the ID token was issued for audience \"other\", want \"basalt\""},
	}
}
