package server_test

import (
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

// TestTaxSettingsAreTheSellers checks who may read and change which tax settings, that bad
// ones are refused, and that those of a reseller are deleted with it.
func TestTaxSettingsAreTheSellers(t *testing.T) {
	b := newBazaar(t)
	put := func(key, organization string, s api.TaxSettings) (api.TaxSettings, *api.Error) {
		return ask[api.TaxSettings](b.people, key, "PUT", "/v1/tax-settings?organization="+organization, s)
	}
	german := api.TaxSettings{Country: "DE", TaxID: "de 136 695 976", ReverseCharge: true, Rates: []api.TaxRate{{Country: "DE", Name: "VAT", BasisPoints: 1900}}}
	for what, c := range map[string]struct {
		key, organization string
		to                api.TaxSettings
		code              api.Code
		of                string // whose settings they are
	}{
		"the cluster's":            {b.Token, "", german, "", ""},
		"a reseller's, by itself":  {b.midKey, "", german, "", b.mid},
		"a reseller's, from above": {b.Token, b.rival, german, "", b.rival},
		"its reseller's":           {b.midKey, b.top, german, api.CodeNotFound, ""},
		"another's":                {b.rivalKey, b.top, german, api.CodeNotFound, ""},
		"of one without customers": {b.topKey, b.low, german, api.CodeInvalid, ""},
		"by an admin":              {b.adminKey, b.top, german, api.CodeForbidden, ""},
		"of no organization":       {b.Token, "org-000000000000", german, api.CodeNotFound, ""},
		"with a wrong number":      {b.topKey, b.top, api.TaxSettings{Country: "DE", TaxID: "DE136695977"}, api.CodeInvalid, ""},
		"with a negative rate":     {b.topKey, b.top, api.TaxSettings{Rates: []api.TaxRate{{Country: "DE", Name: "VAT", BasisPoints: -1}}}, api.CodeInvalid, ""},
		"at another revision":      {b.topKey, b.top, api.TaxSettings{Revision: 99}, api.CodeConflict, ""},
	} {
		got, err := put(c.key, c.organization, c.to)
		if code := codeOf(err); code != c.code {
			t.Errorf("change tax settings, %s: %v, want %q", what, err, c.code)
		}
		if c.code == "" && (string(got.Organization) != c.of || got.TaxID != "DE136695976" || got.Revision == 0) {
			t.Errorf("tax settings, %s = %+v, want those of %q with DE136695976", what, got, c.of)
		}
	}
	mid, err := ask[api.TaxSettings](b.people, b.topKey, "GET", "/v1/tax-settings?organization="+b.mid, nil)
	wanted(t, "read a customer's settings", err, "")
	if mid.Country != "DE" {
		t.Errorf("settings of a customer that is a reseller = %+v, want country DE", mid)
	}
	patched, err := ask[api.TaxSettings](b.people, b.midKey, "PATCH", "/v1/tax-settings", map[string]any{"reverseCharge": false})
	wanted(t, "patch", err, "")
	if patched.ReverseCharge || len(patched.Rates) != 1 {
		t.Errorf("patched settings = %+v, want no reverse charge and the same rate", patched)
	}
	shop := organization(t, b.op, "shop", api.OrganizationSpec{}).Meta.ID
	_, err = put(b.Token, shop, german)
	wanted(t, "set the taxes of another reseller", err, "")
	_, err = ask[api.Organization](b.people, b.Token, "DELETE", "/v1/organizations/"+shop, nil)
	wanted(t, "delete a reseller", err, "")
	if _, gone := b.Store.Get(t.Context(), api.KindTaxSettings, api.TaxSettingsID(api.OrganizationID(shop))); api.CodeOf(gone) != api.CodeNotFound {
		t.Errorf("tax settings of a deleted reseller: %v, want %s", gone, api.CodeNotFound)
	}
}
