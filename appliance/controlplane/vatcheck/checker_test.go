package vatcheck

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/memstore"
	"github.com/basalt-gpu/basalt/appliance/controlplane/vatcheck/viestest"
)

type fixture struct {
	*testing.T
	store *memstore.Store
	vies  *viestest.VIES
	now   time.Time
}

func newFixture(t *testing.T) *fixture {
	known := map[string]viestest.Business{}
	for number, b := range businesses {
		known[number] = b
	}
	f := &fixture{T: t, store: memstore.New(), vies: viestest.New(t, known), now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	f.settings("", api.TaxSettings{Country: "DE", TaxID: seller, ReverseCharge: true, VerifyNumbers: true})
	return f
}

func (f *fixture) put(cmds ...api.Command) {
	f.Helper()
	if _, err := f.store.Apply(f.Context(), api.Batch{At: f.now, Commands: cmds}); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) settings(seller api.OrganizationID, s api.TaxSettings) {
	id := api.TaxSettingsID(seller)
	f.put(api.Command{Op: api.OpPutSpec, Kind: api.KindTaxSettings, ID: id, Name: id, Organization: string(seller), Expect: api.AnyRevision, Data: api.Encode(s)})
}

func (f *fixture) customer(name string, parent api.OrganizationID, country, number string) {
	f.put(api.Command{Op: api.OpPutSpec, Kind: api.KindOrganization, ID: "org-" + name, Name: name, Expect: api.AnyRevision,
		Data: api.Encode(api.OrganizationSpec{Parent: parent, Billing: &api.OrganizationBilling{Mode: api.BillingInvoice, Country: country, TaxID: number}})})
}

func (f *fixture) checker() *Checker {
	return New(Options{Store: f.store, Service: service(f.vies), Now: func() time.Time { return f.now }})
}

// steps runs steps until nothing is due, with a new checker for each as after a restart.
func (f *fixture) steps() {
	f.Helper()
	for range 3 {
		if err := f.checker().Step(f.Context()); err != nil {
			f.Fatal(err)
		}
	}
}

// checks returns the states by number.
func (f *fixture) checks() map[string]api.VATCheck {
	f.Helper()
	all, err := api.All[api.VATCheck](f.Context(), f.store, api.ListQuery{Kind: api.KindVATCheck})
	if err != nil {
		f.Fatal(err)
	}
	out := map[string]api.VATCheck{}
	for _, c := range all {
		out[c.Spec.Number] = c
	}
	return out
}

func (f *fixture) asked() (numbers []string) {
	for _, a := range f.vies.Asked() {
		numbers = append(numbers, a.Number())
	}
	slices.Sort(numbers)
	return numbers
}

// Only numbers are verified with which the reverse charge would apply.
func TestWhichNumbersAreVerified(t *testing.T) {
	f := newFixture(t)
	f.settings("org-shop", api.TaxSettings{Country: "FR", TaxID: french, ReverseCharge: true, VerifyNumbers: true})
	f.settings("org-lax", api.TaxSettings{Country: "DE", TaxID: seller, ReverseCharge: true})
	for name, c := range map[string][3]string{
		"acme": {"", "FR", french}, "greek": {"", "GR", greek}, "monaco": {"", "MC", "FR53000004605"}, "unknown": {"", "AT", "ATU13585627"},
		"home": {"", "DE", seller}, "british": {"", "GB", "GB980780684"}, "swiss": {"", "CH", "CHE-116.281.710 MWST"}, "american": {"", "US", "12-3456789"},
		"without": {"", "IT", ""}, "wrong": {"", "FR", "FR40303265046"}, "nowhere": {"", "", french},
		"of-shop": {"org-shop", "DE", seller}, "of-lax": {"org-lax", "FR", french}, "of-nobody": {"org-none", "FR", french},
	} {
		f.customer(name, api.OrganizationID(c[0]), c[1], c[2])
	}
	f.steps()
	got := map[string]string{}
	for number, c := range f.checks() {
		got[number] = fmt.Sprintf("%s %s by %s", c.Meta.Organization, c.Status.State, c.Spec.Requester)
	}
	want := map[string]string{
		french: "org-acme Valid by " + seller, greek: "org-greek Valid by " + seller, "FR53000004605": "org-monaco Invalid by " + seller,
		"ATU13585627": "org-unknown Invalid by " + seller, seller: "org-of-shop Invalid by " + french,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("verifications: mismatch (-want +got):\n%s", d)
	}
	if got, want := f.asked(), []string{"ATU13585627", seller, greek, french, "FR53000004605"}; !slices.Equal(got, want) {
		t.Errorf("asked about %v, want each of %v once", got, want)
	}
}

// A number is verified again after a week, and one that is not valid after a day; the
// evidence is that of the last answer.
func TestNumbersAreVerifiedAgain(t *testing.T) {
	f := newFixture(t)
	f.customer("acme", "", "FR", french)
	f.customer("unknown", "", "AT", "ATU13585627")
	f.steps()
	first := f.checks()[french]
	if st := first.Status; st.Consultation == "" || st.Name != "ACME SA" || st.Address == "" || !st.CheckedAt.Equal(f.now) {
		t.Errorf("evidence = %+v, want consultation number, name, address and time", st)
	}
	f.asked()
	f.now = f.now.Add(18 * time.Hour)
	f.steps()
	if got := f.asked(); len(got) != 0 {
		t.Errorf("asked after 18 hours about %v, want nothing", got)
	}
	f.now = f.now.Add(12 * time.Hour)
	f.vies.Know("ATU13585627", viestest.Business{Name: "BETA"})
	f.steps()
	if got := f.asked(); !slices.Equal(got, []string{"ATU13585627"}) || f.checks()["ATU13585627"].Status.State != api.VATValid {
		t.Errorf("asked after 30 hours about %v, state %s; want only the invalid one, and Valid", got, f.checks()["ATU13585627"].Status.State)
	}
	f.now = f.now.Add(9 * 24 * time.Hour)
	f.vies.Know(french, viestest.Business{})
	f.steps()
	if st := f.checks()[french].Status; st.State != api.VATInvalid || st.Consultation == first.Status.Consultation || st.Name != "" {
		t.Errorf("after the number was withdrawn = %+v, want Invalid with a new consultation", st)
	}
}

// While VIES gives no result, the last answer stays, and the delays grow.
func TestVIESIsAway(t *testing.T) {
	f := newFixture(t)
	f.customer("acme", "", "FR", french)
	f.steps()
	f.customer("greek", "", "GR", greek)
	f.now = f.now.Add(9 * 24 * time.Hour)
	f.vies.Fail(func(viestest.Ask) string { return viestest.Down })
	f.asked()
	began, tries := f.now, 0
	for f.now.Sub(began) < 24*time.Hour {
		f.steps()
		tries += len(f.asked())
		f.now = f.now.Add(time.Minute)
	}
	if tries < 8 || tries > 30 {
		t.Errorf("asked %d times in a day, want 8 to 30", tries)
	}
	if st := f.checks()[french].Status; st.State != api.VATValid || st.Name != "ACME SA" || st.Attempts < 5 || st.LastError != "status 503" {
		t.Errorf("verified number = %+v, want Valid as before, attempts and the reason", st)
	}
	if st := f.checks()[greek].Status; st.State != api.VATPending || st.CheckedAt != nil || st.Attempts < 5 {
		t.Errorf("new number = %+v, want Pending with attempts", st)
	}
	f.vies.Fail(nil)
	f.now = f.now.Add(8 * time.Hour)
	f.steps()
	for _, number := range []string{french, greek} {
		if st := f.checks()[number].Status; st.State != api.VATValid || st.Attempts != 0 || st.LastError != "" || !st.CheckedAt.Equal(f.now) {
			t.Errorf("%s once VIES answers = %+v, want Valid now", number, st)
		}
	}
}

// If a country, a seller or all of VIES gives no result, the others of a step are not
// asked about; numbers of other countries are.
func TestFailuresHoldForOthers(t *testing.T) {
	for fault, want := range map[string]int{viestest.Busy: 1, "MS_UNAVAILABLE": 2, "INVALID_REQUESTER_INFO": 1, "INVALID_INPUT": 3} {
		f := newFixture(t)
		f.customer("acme", "", "FR", french)
		f.customer("monaco", "", "MC", "FR53000004605")
		f.customer("greek", "", "GR", greek)
		f.vies.Fail(func(viestest.Ask) string { return fault })
		f.steps()
		if got := f.asked(); len(got) != want {
			t.Errorf("%s: asked about %v, want %d requests", fault, got, want)
		}
		for number, c := range f.checks() {
			if c.Status.Attempts != 1 || c.Status.LastError == "" || c.Status.State != api.VATPending {
				t.Errorf("%s: %s = %+v, want one attempt", fault, number, c.Status)
			}
		}
	}
}

// A number that is changed, no longer needed, or another seller's is followed.
func TestChangesAreFollowed(t *testing.T) {
	f := newFixture(t)
	f.customer("acme", "", "FR", french)
	f.steps()
	f.customer("acme", "", "GR", greek)
	if err := f.checker().Step(t.Context()); err != nil { // replaces it
		t.Fatal(err)
	}
	if c := f.checks()[greek]; c.Status.State != "" || c.Status.Consultation != "" || len(f.checks()) != 1 {
		t.Errorf("after the number was changed = %+v, want nothing known of the new one", c.Status)
	}
	f.steps()
	if c := f.checks()[greek]; c.Status.State != api.VATValid {
		t.Errorf("new number = %+v, want Valid", c.Status)
	}
	f.asked()
	f.settings("", api.TaxSettings{Country: "AT", TaxID: "ATU13585627", ReverseCharge: true, VerifyNumbers: true})
	f.steps()
	if c := f.checks()[greek]; c.Spec.Requester != "ATU13585627" || c.Status.State != api.VATValid || !slices.Equal(f.asked(), []string{greek}) {
		t.Errorf("with another seller's number = %+v, want one request by it", c)
	}
	f.settings("", api.TaxSettings{Country: "AT", TaxID: "ATU13585627", ReverseCharge: true})
	f.steps()
	if got := f.checks(); len(got) != 0 {
		t.Errorf("verifications after they were disabled = %v, want none", got)
	}
}

// changing is a service that changes the number of a customer while it answers.
type changing struct {
	f *fixture
	Service
}

func (c changing) Check(ctx context.Context, number, requester string) (Answer, error) {
	a, err := c.Service.Check(ctx, number, requester)
	c.f.customer("acme", "", "AT", "ATU13585627")
	if err := c.f.checker().Step(ctx); err != nil {
		c.f.Fatal(err)
	}
	return a, err
}

// The answer about a number does not become that about the next one.
func TestANumberChangesWhileItIsVerified(t *testing.T) {
	f := newFixture(t)
	f.customer("acme", "", "FR", french)
	if err := f.checker().Step(t.Context()); err != nil { // creates it
		t.Fatal(err)
	}
	slow := New(Options{Store: f.store, Service: changing{f, service(f.vies)}, Now: func() time.Time { return f.now }})
	if err := slow.Step(t.Context()); err != nil {
		t.Fatalf("Step = %v, want nil: the next one sees the change", err)
	}
	if c := f.checks()["ATU13585627"]; c.Status.State == api.VATValid || len(f.checks()) != 1 {
		t.Errorf("verification = %+v, want nothing of the former number", c)
	}
	f.steps()
	if c := f.checks()["ATU13585627"]; c.Status.State != api.VATInvalid {
		t.Errorf("verification = %+v, want Invalid", c)
	}
}

// broken is a store whose writes fail.
type broken struct {
	*memstore.Store
	err error
}

func (b broken) Apply(context.Context, api.Batch) ([]api.Object, error) { return nil, b.err }

func TestAStoreThatFails(t *testing.T) {
	f := newFixture(t)
	f.customer("acme", "", "FR", french)
	gone := errors.New("not the leader")
	c := New(Options{Store: broken{f.store, gone}, Service: service(f.vies), Now: func() time.Time { return f.now }})
	if err := c.Step(t.Context()); !errors.Is(err, gone) || !strings.Contains(err.Error(), "VAT numbers") {
		t.Errorf("Step = %v, want %v and what was being done", err, gone)
	}
	if got := f.asked(); len(got) != 0 {
		t.Errorf("asked about %v, want nothing before the verification is stored", got)
	}
}

// More numbers than one step takes are verified in several, the longest overdue first.
func TestManyNumbers(t *testing.T) {
	f := newFixture(t)
	var cmds []api.Command
	for i := range 250 {
		cmds = append(cmds, api.Command{Op: api.OpPutSpec, Kind: api.KindOrganization, ID: fmt.Sprintf("org-%03d", i), Name: fmt.Sprintf("c%03d", i), Expect: api.AnyRevision,
			Data: api.Encode(api.OrganizationSpec{Billing: &api.OrganizationBilling{Mode: api.BillingInvoice, Country: "FR", TaxID: french}})})
	}
	f.put(cmds...)
	for step := 1; ; step++ {
		if err := f.checker().Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := len(f.asked()); n > perStep {
			t.Fatalf("step %d asked %d times, want at most %d", step, n, perStep)
		}
		all, err := api.All[api.VATCheck](t.Context(), f.store, api.ListQuery{Kind: api.KindVATCheck})
		if err != nil {
			t.Fatal(err)
		}
		if len(all) == 250 && !slices.ContainsFunc(all, func(c api.VATCheck) bool { return c.Status.State != api.VATValid }) {
			return
		}
		if step == 40 {
			t.Fatal("not all numbers were verified in 40 steps")
		}
	}
}

// A clock that is set back by years does not stop the verification.
func TestClockSetBack(t *testing.T) {
	f := newFixture(t)
	f.customer("acme", "", "FR", french)
	f.steps()
	f.asked()
	f.now = f.now.AddDate(-2, 0, 0)
	f.steps()
	if got := f.asked(); len(got) != 1 {
		t.Errorf("asked about %v, want the number again", got)
	}
}

// The name that VIES returns is compared with the customer's, and again when the customer
// has another name. The number stays valid.
func TestNamesAreCompared(t *testing.T) {
	f := newFixture(t)
	rename := func(name string) api.VATCheckStatus {
		f.put(api.Command{Op: api.OpPutSpec, Kind: api.KindOrganization, ID: "org-1", Name: "customer", Expect: api.AnyRevision,
			Data: api.Encode(api.OrganizationSpec{DisplayName: name, Billing: &api.OrganizationBilling{Mode: api.BillingInvoice, Country: "FR", TaxID: french}})})
		f.steps()
		return f.checks()[french].Status
	}
	for _, c := range []struct {
		name string
		want bool
	}{{"Zenith GmbH", true}, {"Acme", false}, {"", true}} {
		if st := rename(c.name); st.State != api.VATValid || st.Name != "ACME SA" || st.NameDiffers != c.want {
			t.Errorf("check of a customer named %q = %s, name %q, differs = %v; want %s with ACME SA, %v", c.name, st.State, st.Name, st.NameDiffers, api.VATValid, c.want)
		}
	}
	if c := f.checks()[french]; c.Spec.Customer != "customer" {
		t.Errorf("customer of the check = %q, want its name, as it has no display name", c.Spec.Customer)
	}
}
