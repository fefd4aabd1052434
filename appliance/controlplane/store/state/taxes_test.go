package state

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/basalt-gpu/basalt/api"
)

const noTaxes = `[]`

// taxCluster returns tables at the level before taxes, with price books by name, which
// have taxes in JSON, and organizations; and the index of the last entry.
func taxCluster(t *testing.T, books map[string]string, organizations map[string]api.OrganizationSpec) (*tables, uint64) {
	t.Helper()
	tb := bare(t)
	raw, err := EncodeSettlement(Settlement{Level: TaxLevel - 1, ID: "one", AuditKey: []byte("key")})
	if err != nil {
		t.Fatal(err)
	}
	var b api.Batch
	for name, taxes := range books {
		b.Commands = append(b.Commands, api.Command{Op: api.OpPutSpec, Kind: api.KindPriceBook, ID: "pb-" + name, Name: name,
			Data: json.RawMessage(`{"currency":"EUR","prices":[],"taxes":` + taxes + `,"version":3}`)})
	}
	for name, spec := range organizations {
		b.Commands = append(b.Commands, api.Command{Op: api.OpPutSpec, Kind: api.KindOrganization, ID: "org-" + name, Name: name, Data: api.Encode(spec)})
	}
	mustApply(t, tb, Entry{1, raw}, logEntry(t, 2, b))
	return tb, 2
}

func raise(t *testing.T, tb *tables, index uint64) {
	t.Helper()
	raw, err := EncodeSettlement(Settlement{Level: Level, ID: "one"})
	if err != nil {
		t.Fatal(err)
	}
	mustApply(t, tb, Entry{index, raw})
}

func TestTaxesMoveToSettings(t *testing.T) {
	const vat, both = `[{"name":"VAT","basisPoints":1900}]`, `[{"name":"VAT","basisPoints":1900},{"name":"city","basisPoints":50}]`
	billed := func(book api.PriceBookID, parent api.OrganizationID) api.OrganizationSpec {
		return api.OrganizationSpec{PriceBook: book, Parent: parent, Billing: &api.OrganizationBilling{Mode: api.BillingInvoice}}
	}
	sum := api.TaxSettings{Other: api.Tax{Name: "VAT", BasisPoints: 1900}}
	for name, c := range map[string]struct {
		books         map[string]string
		organizations map[string]api.OrganizationSpec
		want          map[api.OrganizationID]api.TaxSettings
	}{
		"no taxes":          {map[string]string{"default": noTaxes}, map[string]api.OrganizationSpec{"a": billed("", "")}, nil},
		"no price books":    {nil, map[string]api.OrganizationSpec{"a": billed("", "")}, nil},
		"one tax":           {map[string]string{"default": vat, "eu": vat}, map[string]api.OrganizationSpec{"a": billed("", ""), "b": billed("pb-eu", "")}, map[api.OrganizationID]api.TaxSettings{"": sum}},
		"no customers yet":  {map[string]string{"default": vat, "us": noTaxes}, nil, map[api.OrganizationID]api.TaxSettings{"": sum}},
		"two taxes as one":  {map[string]string{"default": both}, nil, map[api.OrganizationID]api.TaxSettings{"": {Other: api.Tax{Name: "VAT + city", BasisPoints: 1950}}}},
		"not billed":        {map[string]string{"default": vat, "us": noTaxes}, map[string]api.OrganizationSpec{"a": billed("", ""), "b": {PriceBook: "pb-us"}}, map[api.OrganizationID]api.TaxSettings{"": sum}},
		"different taxes":   {map[string]string{"default": vat, "us": noTaxes}, map[string]api.OrganizationSpec{"a": billed("", ""), "b": billed("pb-us", "")}, map[api.OrganizationID]api.TaxSettings{"": {Undecided: true}}},
		"more than all":     {map[string]string{"default": `[{"name":"a","basisPoints":9000},{"name":"b","basisPoints":9000}]`}, nil, map[api.OrganizationID]api.TaxSettings{"": {Undecided: true}}},
		"unused, different": {map[string]string{"default": noTaxes, "eu": vat}, map[string]api.OrganizationSpec{"a": billed("pb-eu", "")}, map[api.OrganizationID]api.TaxSettings{"": sum}},
		"of a reseller":     {map[string]string{"default": noTaxes, "eu": vat}, map[string]api.OrganizationSpec{"a": billed("", ""), "shop": billed("", ""), "b": billed("pb-eu", "org-shop")}, map[api.OrganizationID]api.TaxSettings{"org-shop": sum}},
	} {
		t.Run(name, func(t *testing.T) {
			tb, last := taxCluster(t, c.books, c.organizations)
			raise(t, tb, last+1)
			got := map[api.OrganizationID]api.TaxSettings{}
			if err := tb.read(func(v View) error {
				return v.Each([]api.Kind{api.KindTaxSettings, api.KindPriceBook}, func(o api.Object) bool {
					if o.Kind == api.KindPriceBook {
						if string(o.Spec) != `{"currency":"EUR","prices":[],"version":3}` {
							t.Errorf("spec of price book %s = %s, want it without taxes", o.Meta.Name, o.Spec)
						}
						return true
					}
					s, err := api.Decode[api.StoredTaxSettings](o)
					if err != nil || o.Meta.ID != api.TaxSettingsID(api.OrganizationID(o.Meta.Organization)) {
						t.Errorf("tax settings %s of %q: %v, want ID %s", o.Meta.ID, o.Meta.Organization, err, api.TaxSettingsID(api.OrganizationID(o.Meta.Organization)))
					}
					got[api.OrganizationID(o.Meta.Organization)] = s.Spec
					return true
				})
			}); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); d != "" {
				t.Errorf("tax settings: mismatch (-want +got):\n%s", d)
			}
		})
	}
}

// The step happens once: settings that were changed since are kept, and each node has the
// same tables after it.
func TestTaxesMoveOnce(t *testing.T) {
	digests := map[string]bool{}
	for range 3 {
		tb, last := taxCluster(t, map[string]string{"default": `[{"name":"VAT","basisPoints":1900}]`}, nil)
		raise(t, tb, last+1)
		mustApply(t, tb, logEntry(t, last+2, api.Batch{Commands: []api.Command{{Op: api.OpPutSpec, Kind: api.KindTaxSettings, ID: api.TaxSettingsID(""), Expect: api.AnyRevision, Data: []byte(`{}`)}}}))
		raise(t, tb, last+3)
		if err := tb.read(func(v View) error {
			o, err := v.Get(api.KindTaxSettings, api.TaxSettingsID(""))
			if string(o.Spec) != `{}` {
				t.Errorf("settings after a second step = %s, want them unchanged", o.Spec)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		sum, err := tb.sum()
		if err != nil {
			t.Fatal(err)
		}
		digests[sum] = true
	}
	if len(digests) != 1 {
		t.Errorf("digests of the tables of three nodes = %v, want one", digests)
	}
}
