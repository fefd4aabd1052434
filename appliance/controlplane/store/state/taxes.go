package state

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// convertTaxes moves the taxes of price books to the tax settings of their sellers.
func (v View) convertTaxes() error {
	var organizations, books []api.Object
	var at time.Time // nothing else of the tables tells the time
	if err := v.Each([]api.Kind{api.KindOrganization, api.KindPriceBook}, func(o api.Object) bool {
		if o.Kind == api.KindOrganization {
			organizations = append(organizations, o)
			return true
		}
		books = append(books, o)
		if o.Meta.UpdatedAt.After(at) {
			at = o.Meta.UpdatedAt
		}
		return true
	}); err != nil {
		return err
	}
	t := newTxn(v, v.Revision(), at)
	t.counts = v.Level() >= countsLevel
	settings := api.TaxesOfBooks(organizations, books)
	for _, seller := range slices.Sorted(maps.Keys(settings)) {
		id := api.TaxSettingsID(seller)
		if _, err := t.command(api.Command{Op: api.OpPutSpec, Kind: api.KindTaxSettings, ID: id, Name: id, Expect: api.AnyRevision,
			Organization: string(seller), Data: api.Encode(settings[seller])}); err != nil {
			return err
		}
	}
	for _, o := range books {
		spec := map[string]json.RawMessage{}
		if json.Unmarshal(o.Spec, &spec) != nil || spec["taxes"] == nil {
			continue
		}
		delete(spec, "taxes")
		raw, err := EncodeJSON(spec)
		if err != nil {
			return err
		}
		o.Spec = raw
		if _, err := t.put(o); err != nil {
			return err
		}
	}
	if len(t.events) == 0 {
		return nil
	}
	return v.commit("", t, nil)
}
