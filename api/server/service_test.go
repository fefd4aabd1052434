package server_test

import (
	"context"
	"iter"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/api/server"
	"github.com/basalt-gpu/basalt/api/server/servertest"
	"github.com/basalt-gpu/basalt/appliance/controlplane/offboarding"
	"github.com/basalt-gpu/basalt/billing/report"
)

// shop is a world with a public image and a reseller.
type shop struct {
	*world
	reseller string
	sells    *client.API
}

func newShop(t *testing.T, change func(*server.Options)) *shop {
	t.Helper()
	w := worldOf(t, servertest.StartWith(t, func(o *server.Options) {
		o.Networking = true
		if change != nil {
			change(o)
		}
	}))
	must(t, ret(client.Of[api.Image](w.op).Create(t.Context(), api.Image{Meta: api.Meta{Name: "public"}, Spec: api.ImageSpec{Format: "qcow2", Public: true}})))
	must(t, ret(client.Of[api.Flavor](w.op).Create(t.Context(), api.Flavor{Meta: api.Meta{Name: "large"}, Spec: api.FlavorSpec{Vcpus: 8, MemoryBytes: 8 << 30, RootBytes: 4 << 30}})))
	org := must(t, ret(client.Of[api.Organization](w.op).Create(t.Context(), api.Organization{Meta: api.Meta{Name: "seller"},
		Spec: api.OrganizationSpec{Quota: api.Amounts{api.QuotaVCPUs: 12}}}))).v.Meta.ID
	return &shop{w, org, connect(t, w.Env, w.Key(t, api.Meta{Name: "sells", Organization: org}, api.RoleReseller))}
}

func machine(name, email, flavor string) api.Service {
	return api.Service{Meta: api.Meta{Name: name}, Spec: api.ServiceSpec{Type: api.ServiceIsMachine, Email: email, DisplayName: "Ann", Machine: &api.ServiceMachine{
		Flavor: api.FlavorID(flavor), Image: "public", Vgpu: &api.VGPUSpec{VramBytes: 1 << 30, SharePercent: 25}}}}
}

func (s *shop) count(kind api.Kind, org string) int {
	p, err := s.Store.List(s.t.Context(), api.ListQuery{Kind: kind, Organization: org, Limit: 1000})
	if err != nil {
		s.t.Fatal(err)
	}
	return len(p.Items)
}

// TestServiceIsMadeOnce checks that one order, sent once, repeatedly and concurrently,
// creates one service with one object of each kind, separate from another seller's
// service of the same name.
func TestServiceIsMadeOnce(t *testing.T) {
	s := newShop(t, nil)
	var wg sync.WaitGroup
	var mu sync.Mutex
	ids := map[string]bool{}
	for range 8 {
		wg.Go(func() {
			got, err := client.Of[api.Service](s.sells).Create(t.Context(), machine("whmcs:17", "Ann@Example.com", "small"))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			ids[got.Meta.ID] = true
		})
	}
	wg.Wait()
	if len(ids) != 1 {
		t.Fatalf("IDs of the service = %v, want a single one", ids)
	}
	before := s.Store.Revision()
	got := must(t, ret(client.Of[api.Service](s.sells).Create(t.Context(), machine("whmcs:17", "ann@example.com", "small")))).v
	if s.Store.Revision() != before {
		t.Error("repeating an order changed the store, want no change")
	}
	org := string(got.Spec.Organization)
	for kind, want := range map[api.Kind]int{api.KindProject: 1, api.KindInstance: 1, api.KindVolume: 1, api.KindNetwork: 1, api.KindSecurityGroup: 1} {
		if n := s.count(kind, org); n != want {
			t.Errorf("the service has %d objects of kind %s, want %d", n, kind, want)
		}
	}
	in := must(t, ret(client.Of[api.Instance](s.sells).Get(t.Context(), string(got.Spec.Instance), client.Query{}))).v
	if got.Status.Phase != "Pending" || len(in.Spec.Networks) != 1 || in.Spec.Vgpu.SharePercent != 25 || in.Meta.Finalizers[0] != api.FinalizerAgent {
		t.Errorf("service status = %+v, machine = %+v; want a pending machine as ordered", got.Status, in)
	}
	q := must(t, ret(s.sells.OrganizationQuota(t.Context(), org))).v
	if q.Limits[api.QuotaVCPUs] != 2 || q.Uses[api.QuotaVCPUs] != 2 || q.Limits[api.QuotaVolumes] != 2<<30 || q.Limits[api.QuotaInstances] != 1 {
		t.Errorf("quota of the service = %+v, want limits equal to its use", q)
	}
	theirs := must(t, ret(client.Of[api.Service](s.op).Create(t.Context(), machine("whmcs:17", "bob@example.com", "small")))).v
	if theirs.Meta.ID == got.Meta.ID || theirs.Spec.Organization == got.Spec.Organization {
		t.Error("two sellers have the same service or organization, want separate ones")
	}
	// A second service of the same customer belongs to the same user.
	second := must(t, ret(client.Of[api.Service](s.sells).Create(t.Context(), machine("whmcs:18", "ann@example.com", "small")))).v
	if second.Spec.User != got.Spec.User || second.Spec.Organization == got.Spec.Organization {
		t.Errorf("second service = %+v, want user %s and a new organization", second.Spec, got.Spec.User)
	}
	// Other users are not shared: neither the other seller's, whose existence is not
	// revealed, nor another billing system's.
	third := must(t, ret(client.Of[api.Service](s.sells).Create(t.Context(), machine("whmcs:19", "bob@example.com", "small")))).v
	if third.Spec.User == theirs.Spec.User {
		t.Error("two sellers share a user, want separate ones")
	}
	_, err := client.Of[api.Service](s.sells).Create(t.Context(), machine("other:1", "ann@example.com", "small"))
	wantErr(t, err, api.CodeExists, "spec.email")
	if s.count(api.KindService, s.reseller) != 3 {
		t.Errorf("the reseller has %d services after a failed order, want 3", s.count(api.KindService, s.reseller))
	}
}

// TestServiceChanges checks that a change is made completely or not at all, and that a
// refusal names the reason.
func TestServiceChanges(t *testing.T) {
	s := newShop(t, nil)
	first := must(t, ret(client.Of[api.Service](s.sells).Create(t.Context(), machine("whmcs:1", "ann@example.com", "small")))).v
	org := string(first.Spec.Organization)
	larger := must(t, ret(client.Of[api.Service](s.sells).Create(t.Context(), machine("whmcs:1", "ann@example.com", "large")))).v
	q := must(t, ret(s.sells.OrganizationQuota(t.Context(), org))).v
	if larger.Meta.ID != first.Meta.ID || q.Uses[api.QuotaVCPUs] != 8 || q.Limits[api.QuotaVCPUs] != 8 || q.Uses[api.QuotaVolumes] != 4<<30 {
		t.Errorf("quota after the upgrade = %+v, want the larger machine's", q)
	}
	// The reseller's limit is 12 vCPUs: a second large machine exceeds it, and nothing
	// is created.
	users, orgs := s.count(api.KindUser, ""), s.count(api.KindOrganization, "")
	_, err := client.Of[api.Service](s.sells).Create(t.Context(), machine("whmcs:2", "eve@example.com", "large"))
	wantErr(t, err, api.CodeQuota, "quota.vcpus")
	if s.count(api.KindUser, "") != users || s.count(api.KindOrganization, "") != orgs {
		t.Error("an order over the quota left a user or an organization, want none")
	}
	must(t, ret(client.Of[api.Service](s.sells).Create(t.Context(), machine("whmcs:2", "eve@example.com", "small"))))
	before := must(t, ret(s.Store.Get(t.Context(), api.KindInstance, string(first.Spec.Instance)))).v
	second := machine("whmcs:2", "eve@example.com", "large")
	_, err = client.Of[api.Service](s.sells).Create(t.Context(), second)
	wantErr(t, err, api.CodeQuota, "quota.vcpus")
	if got := must(t, ret(client.Of[api.Service](s.sells).Get(t.Context(), "whmcs:2", client.Query{}))).v; got.Spec.Machine.Flavor == larger.Spec.Machine.Flavor {
		t.Error("a change over the quota was made in part, want no change")
	}
	for field, change := range map[string]func(*api.Service){
		"spec.machine.rootBytes": func(x *api.Service) { x.Spec.Machine.RootBytes = 1 << 30 },
		"spec.machine.flavor":    func(x *api.Service) { x.Spec.Machine.Flavor = "none" },
		"spec.machine.image":     func(x *api.Service) { x.Spec.Machine.Image = "none" },
		"spec.type":              func(x *api.Service) { x.Spec.Type, x.Spec.Machine = api.ServiceIsAccount, nil },
		"spec.quota.vcpus":       func(x *api.Service) { x.Spec.Quota = api.Amounts{api.QuotaVCPUs: 1} },
		"spec.email":             func(x *api.Service) { x.Spec.Email = "<script>" },
		"spec.machine":           func(x *api.Service) { x.Spec.Machine = nil },
	} {
		bad := machine("whmcs:1", "ann@example.com", "large")
		change(&bad)
		_, err := client.Of[api.Service](s.sells).Create(t.Context(), bad)
		if e := err; e == nil {
			t.Errorf("invalid %s: no error, want one", field)
		} else if code := api.CodeOf(e); code == api.CodeQuota {
			wantErr(t, err, api.CodeQuota, field)
		} else {
			wantErr(t, err, api.CodeInvalid, field)
		}
	}
	if after := must(t, ret(s.Store.Get(t.Context(), api.KindInstance, string(first.Spec.Instance)))).v; after.Meta.Revision != before.Meta.Revision {
		t.Error("a refused change changed the machine, want no change")
	}
	// A new e-mail address renames the user, who has only one service.
	renamed := must(t, ret(client.Of[api.Service](s.sells).Create(t.Context(), machine("whmcs:2", "eve@example.org", "small")))).v
	if u := must(t, ret(client.Of[api.User](s.sells).Get(t.Context(), string(renamed.Spec.User), client.Query{}))).v; u.Meta.Name != "eve@example.org" {
		t.Errorf("user after the address changed = %s, want eve@example.org", u.Meta.Name)
	}
	// The user still belongs to the reseller after a change by an operator.
	again := must(t, ret(client.Of[api.Service](s.op).Update(t.Context(), renamed.Meta.ID, machine("", "eva@example.org", "small")))).v
	if u := must(t, ret(client.Of[api.User](s.sells).Get(t.Context(), "eva@example.org", client.Query{}))).v; u.Meta.Organization != s.reseller || again.Spec.User != renamed.Spec.User {
		t.Errorf("user after an operator's change = %+v, want it in the reseller's organization", u.Meta)
	}
	// The address of an existing user moves the service to that user.
	moved := must(t, ret(client.Of[api.Service](s.sells).Create(t.Context(), machine("whmcs:2", "ann@example.com", "small")))).v
	if moved.Spec.User != first.Spec.User {
		t.Errorf("user of the moved service = %s, want %s", moved.Spec.User, first.Spec.User)
	}
	if _, err := client.Of[api.User](s.sells).Get(t.Context(), string(renamed.Spec.User), client.Query{}); api.CodeOf(err) != api.CodeNotFound {
		t.Errorf("get the user without services: %v, want %s", err, api.CodeNotFound)
	}
}

// TestServiceEnds checks that a service can be suspended and ended repeatedly, and then
// created again.
func TestServiceEnds(t *testing.T) {
	s := newShop(t, nil)
	order := machine("whmcs:1", "ann@example.com", "small")
	first := must(t, ret(client.Of[api.Service](s.sells).Create(t.Context(), order))).v
	for range 2 {
		if got := must(t, ret(s.sells.SuspendService(t.Context(), "whmcs:1", "unpaid"))).v; got.Status.Phase != api.ServiceSuspended || !strings.Contains(got.Status.Reason, "unpaid") {
			t.Errorf("status after suspending = %+v, want %s", got.Status, api.ServiceSuspended)
		}
	}
	if _, err := s.sells.StartInstance(t.Context(), string(first.Spec.Instance)); api.CodeOf(err) != api.CodeForbidden {
		t.Errorf("start a suspended machine: %v, want %s", err, api.CodeForbidden)
	}
	must(t, ret(client.Of[api.Service](s.sells).Create(t.Context(), order))) // the same order changes nothing
	_, err := client.Of[api.Service](s.sells).Create(t.Context(), machine("whmcs:1", "ann@example.com", "large"))
	if api.CodeOf(err) != api.CodeForbidden {
		t.Errorf("change a suspended service: %v, want %s", err, api.CodeForbidden)
	}
	for range 2 {
		if got := must(t, ret(s.sells.ResumeService(t.Context(), "whmcs:1"))).v; got.Status.Phase != "Pending" {
			t.Errorf("status after resuming = %+v, want Pending", got.Status)
		}
	}
	must(t, ret(s.op.SuspendService(t.Context(), first.Meta.ID, "fraud")))
	if _, err := s.sells.ResumeService(t.Context(), "whmcs:1"); api.CodeOf(err) != api.CodeForbidden {
		t.Errorf("a reseller lifts an operator's suspension: %v, want %s", err, api.CodeForbidden)
	}
	must(t, ret(s.op.ResumeService(t.Context(), first.Meta.ID)))

	link := must(t, ret(s.sells.ServiceLoginLink(t.Context(), "whmcs:1"))).v
	session := must(t, ret(connect(t, s.Env, "").LoginWithLink(t.Context(), link.Token))).v
	for range 2 {
		if got := must(t, ret(client.Of[api.Service](s.sells).Delete(t.Context(), "whmcs:1"))).v; got.Status.Phase != api.ServiceTerminating {
			t.Errorf("status after ending = %+v, want a phase of ending", got.Status)
		}
	}
	if _, err := connect(t, s.Env, session.Token).Whoami(t.Context()); api.CodeOf(err) != api.CodeUnauthenticated {
		t.Errorf("session after the service ended: %v, want %s", err, api.CodeUnauthenticated)
	}
	_, err = client.Of[api.Service](s.sells).Create(t.Context(), order)
	if api.CodeOf(err) != api.CodeState {
		t.Errorf("create the service again while it is being deleted: %v, want %s", err, api.CodeState)
	}
	for i := 0; ; i++ {
		if err := offboarding.Sweep(t.Context(), s.Store, time.Now()); err != nil || i > 20 {
			t.Fatalf("sweep %d: error %v; want the service gone within 20 sweeps", i, err)
		}
		for _, kind := range []api.Kind{api.KindInstance, api.KindVolume} {
			p := must(t, ret(s.Store.List(t.Context(), api.ListQuery{Kind: kind, Organization: string(first.Spec.Organization), Limit: 10}))).v
			for _, o := range p.Items {
				if o.Meta.DeletedAt != nil {
					s.Apply(t, api.Command{Op: api.OpForget, Kind: kind, ID: o.Meta.ID, Expect: api.AnyRevision, Finalizer: api.FinalizerAgent})
				}
			}
		}
		if got := must(t, ret(client.Of[api.Service](s.sells).Delete(t.Context(), "whmcs:1"))).v; got.Status.Phase == api.ServiceTerminated {
			break
		}
	}
	if got := must(t, ret(client.Of[api.Service](s.sells).Delete(t.Context(), "whmcs:never"))).v; got.Status.Phase != api.ServiceTerminated {
		t.Errorf("end a service that never existed = %+v, want phase %s", got, api.ServiceTerminated)
	}
	anew := must(t, ret(client.Of[api.Service](s.sells).Create(t.Context(), order))).v
	if anew.Meta.ID != first.Meta.ID || anew.Spec.Organization != first.Spec.Organization || anew.Spec.Instance == first.Spec.Instance ||
		anew.Status.Phase != "Pending" || anew.Spec.TerminatedAt != nil {
		t.Errorf("service created again = %+v, want the same ID and organization, and a new pending machine", anew)
	}
	// A project that belongs to a service cannot be deleted separately.
	if _, err := client.Of[api.Project](s.op).Delete(t.Context(), string(anew.Spec.Project)); api.CodeOf(err) != api.CodeInUse {
		t.Errorf("delete the project of a service: %v, want %s", err, api.CodeInUse)
	}
}

// TestLoginLinks checks that a login link is valid once, for a minute, and not after
// the password was changed.
func TestLoginLinks(t *testing.T) {
	clock := servertest.NewClock(time.Now())
	s := newShop(t, func(o *server.Options) { o.Now = clock.Now })
	must(t, ret(client.Of[api.Service](s.sells).Create(t.Context(), machine("whmcs:1", "ann@example.com", "small"))))
	guest := connect(t, s.Env, "")
	link := func() string { return must(t, ret(s.sells.ServiceLoginLink(t.Context(), "whmcs:1"))).v.Token }
	token := link()
	var won atomic.Int32
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			if _, err := guest.LoginWithLink(t.Context(), token); err == nil {
				won.Add(1)
			}
		})
	}
	wg.Wait()
	if n := won.Load(); n != 1 {
		t.Errorf("one link opened %d sessions, want 1", n)
	}
	late := link()
	clock.Advance(time.Minute)
	_, err := guest.LoginWithLink(t.Context(), late)
	wantErr(t, err, api.CodeInvalid, "token")
	voided := link()
	must(t, ret(s.sells.SetServicePassword(t.Context(), "whmcs:1", "correct horse battery")))
	_, err = guest.LoginWithLink(t.Context(), voided)
	wantErr(t, err, api.CodeInvalid, "token")
	if _, err := guest.Login(t.Context(), api.Credentials{Email: "ann@example.com", Password: "correct horse battery", Organization: s.reseller}); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", "bslt_link-000000000000_" + strings.Repeat("0", 64), token[:len(token)-1] + "0", s.Token} {
		if _, err := guest.LoginWithLink(t.Context(), bad); api.CodeOf(err) != api.CodeInvalid {
			t.Errorf("sign in with link token %q: %v, want %s", bad, err, api.CodeInvalid)
		}
	}
	p := must(t, ret(s.Store.List(t.Context(), api.ListQuery{Kind: api.KindLoginLink, Limit: 100}))).v
	for _, o := range p.Items {
		if strings.Contains(string(o.Spec), token[len(token)-64:]) {
			t.Error("the store contains a link's token, want only its hash")
		}
	}
	// Links for other users: only for those whom the caller manages.
	must(t, ret(client.Of[api.User](s.sells).Create(t.Context(), api.User{Meta: api.Meta{Name: "boss@example.com", Organization: s.reseller},
		Spec: api.UserSpec{Grants: []api.Grant{{Role: api.RoleReseller, Organization: s.reseller}}}})))
	admin := must(t, ret(s.sells.UserLoginLink(t.Context(), "boss@example.com", "", ""))).v
	session := must(t, ret(guest.LoginWithLink(t.Context(), admin.Token))).v
	if session.Spec.Grant.Role != api.RoleReseller {
		t.Errorf("grant of the session = %+v, want role %s", session.Spec.Grant, api.RoleReseller)
	}
	must(t, ret(client.Of[api.User](s.op).Create(t.Context(), api.User{Meta: api.Meta{Name: "root@example.com"}, Spec: api.UserSpec{Grants: []api.Grant{{Role: api.RoleOperator}}}})))
	if _, err := s.sells.UserLoginLink(t.Context(), "root@example.com", "", ""); api.CodeOf(err) != api.CodeNotFound {
		t.Errorf("a reseller creates a link for an operator: %v, want %s", err, api.CodeNotFound)
	}
}

// month is a Billing with usage by the hour.
type month struct {
	servertest.Bill
	mu  sync.Mutex
	use map[string][]api.Use
}

func (m *month) Usage(_ context.Context, q api.UsageQuery) (api.UsagePage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return report.Usage(q, func(from time.Time) iter.Seq2[api.Use, error] {
		return func(yield func(api.Use, error) bool) {
			for _, u := range m.use[q.Organization] {
				if !u.Hour.Before(from) && u.Hour.Before(q.To) && !yield(u, nil) {
					return
				}
			}
		}
	})
}

// TestServiceUsage checks that months are those of the time zone's calendar, that each
// hour is in exactly one month, and that usage stays in the total when its machine and
// service are deleted.
func TestServiceUsage(t *testing.T) {
	books := &month{use: map[string][]api.Use{}}
	s := newShop(t, func(o *server.Options) { o.Billing = books })
	a := must(t, ret(client.Of[api.Service](s.sells).Create(t.Context(), machine("whmcs:1", "ann@example.com", "small")))).v
	b := must(t, ret(client.Of[api.Service](s.sells).Create(t.Context(), machine("whmcs:2", "ann@example.com", "small")))).v
	must(t, ret(client.Of[api.Service](s.op).Create(t.Context(), machine("whmcs:1", "bob@example.com", "small")))) // another seller's
	hours := func(org api.OrganizationID, resource string, from time.Time, n int) {
		for i := range n {
			books.use[string(org)] = append(books.use[string(org)], api.Use{Hour: from.Add(time.Duration(i) * time.Hour), Meter: api.MeterGPU,
				Project: "p", Resource: resource, Quantity: 1})
		}
	}
	// All hours of October and November 2026 and some more, of service a.
	hours(a.Spec.Organization, "gone", time.Date(2026, 9, 30, 0, 0, 0, 0, time.UTC), 24*63)
	total := func(zone, month, service string) (int, api.ServiceUsagePage) {
		t.Helper()
		p := must(t, ret(s.sells.ServiceUsage(t.Context(), api.ListServiceUsageParams{Installation: "whmcs", TimeZone: zone, Month: month, Service: service}))).v
		sum := 0
		for _, x := range p.Items {
			for _, m := range x.Totals {
				n, err := strconv.Atoi(m.Quantity.String())
				sum += n
				if err != nil || m.Meter != api.MeterGPU {
					t.Errorf("total %+v has error %v, want one of meter %s", m, err, api.MeterGPU)
				}
			}
		}
		return sum, p
	}
	for _, c := range []struct {
		zone, month string
		hours       int
		from        string
	}{
		{"UTC", "2026-10", 744, "2026-10-01T00:00:00Z"},
		{"", "2026-11", 720, "2026-11-01T00:00:00Z"},
		{"Europe/Berlin", "2026-10", 745, "2026-09-30T22:00:00Z"}, // end of daylight saving time
		{"Europe/Berlin", "2026-11", 720, "2026-10-31T23:00:00Z"},
		{"America/New_York", "2026-11", 721, "2026-11-01T04:00:00Z"}, // daylight saving time ends a month later here
		{"Asia/Kolkata", "2026-10", 744, "2026-09-30T18:30:00Z"},
		{"Asia/Kolkata", "2026-11", 720, "2026-10-31T18:30:00Z"},
		{"Asia/Kathmandu", "2026-10", 744, "2026-09-30T18:15:00Z"},
	} {
		n, p := total(c.zone, c.month, "")
		if n != c.hours || p.From.Format(time.RFC3339) != c.from || len(p.Items) != 2 {
			t.Errorf("%s %s: %d hours from %s of %d services, want %d from %s", c.zone, c.month, n, p.From, len(p.Items), c.hours, c.from)
		}
	}
	// With the last three days of each month carried into the next, no hour counts
	// twice or never.
	for month, want := range map[string]int{"2026-10": 696, "2026-11": 720, "2026-12": 96} {
		p := must(t, ret(s.sells.ServiceUsage(t.Context(), api.ListServiceUsageParams{Installation: "whmcs", Month: month, Service: "whmcs:1", CarryHours: 72}))).v
		if got := p.Items[0].Totals[0].Quantity.String(); got != strconv.Itoa(want) || !p.UseFrom.Equal(p.From.Add(-72*time.Hour)) || !p.UseTo.Equal(p.To.Add(-72*time.Hour)) {
			t.Errorf("usage of %s: %s hours from %s to %s, want %d", month, got, p.UseFrom, p.UseTo, want)
		}
	}
	must(t, ret(client.Of[api.Service](s.sells).Delete(t.Context(), "whmcs:1")))
	if n, p := total("UTC", "2026-10", "whmcs:1"); n != 744 || p.Items[0].ID != a.Meta.ID {
		t.Errorf("usage of an ended service: %d hours of %+v, want 744 of %s", n, p.Items, a.Meta.ID)
	}
	must(t, ret(client.Of[api.Service](s.sells).Delete(t.Context(), "whmcs:2")))
	if _, p := total("UTC", "2026-10", ""); len(p.Items) != 1 {
		t.Errorf("usage of all services = %+v, want %s left out since it ended without usage", p.Items, b.Meta.Name)
	}
	for field, p := range map[string]api.ListServiceUsageParams{
		"carryHours":   {Installation: "whmcs", CarryHours: 73},
		"timeZone":     {Installation: "whmcs", TimeZone: "Mars/Olympus"},
		"month":        {Installation: "whmcs", Month: "2026-13"},
		"installation": {Installation: "Who?"},
		"limit":        {Installation: "whmcs", Limit: 5000},
	} {
		_, err := s.sells.ServiceUsage(t.Context(), p)
		wantErr(t, err, api.CodeInvalid, field)
	}
	// Pages with one service each contain every service once.
	c := must(t, ret(client.Of[api.Service](s.sells).Create(t.Context(), machine("whmcs:3", "ann@example.com", "small")))).v
	seen, p := map[string]int{}, api.ListServiceUsageParams{Installation: "whmcs", Month: "2026-10", Limit: 1}
	for {
		page := must(t, ret(s.sells.ServiceUsage(t.Context(), p))).v
		for _, x := range page.Items {
			seen[x.ID]++
		}
		if p.Continue = page.Continue; p.Continue == "" {
			break
		}
	}
	if len(seen) != 2 || seen[a.Meta.ID] != 1 || seen[c.Meta.ID] != 1 {
		t.Errorf("services on pages of one = %v, want each once", seen)
	}
}

// TestServicesOfOthers checks that another seller's service is not found, and that an
// organization that is not a reseller cannot sell, not even to itself.
func TestServicesOfOthers(t *testing.T) {
	s := newShop(t, nil)
	mine := must(t, ret(client.Of[api.Service](s.sells).Create(t.Context(), machine("whmcs:1", "ann@example.com", "small")))).v
	other := connect(t, s.Env, s.Key(t, api.Meta{Name: "o", Organization: s.other}, api.RoleReseller))
	ctx, id := t.Context(), mine.Meta.ID
	for what, err := range map[string]error{
		"get":      ret(client.Of[api.Service](other).Get(ctx, id, client.Query{})).err,
		"by name":  ret(client.Of[api.Service](other).Get(ctx, "whmcs:1", client.Query{})).err,
		"put":      ret(client.Of[api.Service](other).Update(ctx, id, machine("whmcs:1", "ann@example.com", "large"))).err,
		"delete":   ret(client.Of[api.Service](other).Delete(ctx, id)).err,
		"suspend":  ret(other.SuspendService(ctx, id, "")).err,
		"resume":   ret(other.ResumeService(ctx, id)).err,
		"password": ret(other.SetServicePassword(ctx, id, "correct horse battery")).err,
		"login":    ret(other.ServiceLoginLink(ctx, id)).err,
		"user":     ret(other.UserLoginLink(ctx, string(mine.Spec.User), "", "")).err,
		"usage":    ret(other.ServiceUsage(ctx, api.ListServiceUsageParams{Installation: "whmcs", Service: id})).err,
	} {
		if api.CodeOf(err) != api.CodeNotFound {
			t.Errorf("%s: error %v, want %s", what, err, api.CodeNotFound)
		}
	}
	must(t, ret(client.Of[api.Service](other).Delete(ctx, "whmcs:1"))) // it has no service of that name
	if got := must(t, ret(client.Of[api.Service](s.sells).Get(ctx, id, client.Query{}))).v; got.Spec.TerminatedAt != nil {
		t.Error("the service was ended by another seller's name, want it unchanged")
	}
	for page, err := range client.Of[api.Service](other).All(ctx, client.Query{}) {
		t.Errorf("another seller lists service %+v, error %v; want none", page, err)
	}
	// The customer's admin sees its organization, but not the service.
	session := must(t, ret(connect(t, s.Env, "").LoginWithLink(ctx, must(t, ret(s.sells.ServiceLoginLink(ctx, id))).v.Token))).v
	customer := connect(t, s.Env, session.Token)
	if o := must(t, ret(client.Of[api.Organization](customer).Get(ctx, string(mine.Spec.Organization), client.Query{}))).v; o.Spec.Parent != api.OrganizationID(s.reseller) {
		t.Errorf("organization as its admin sees it = %+v, want parent %s", o, s.reseller)
	}
	_, err := client.Of[api.Service](customer).Get(ctx, id, client.Query{})
	wantErr(t, err, api.CodeForbidden, "")
	_, err = client.Of[api.Service](customer).Create(ctx, machine("whmcs:2", "ann@example.com", "small"))
	wantErr(t, err, api.CodeForbidden, "")
}
