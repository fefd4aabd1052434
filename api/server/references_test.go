package server_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/basalt-gpu/basalt/api"
)

// TestReferencesAreDeclared checks that every field of a spec with another object's ID
// is in the table of references (api/references.go), or in the exceptions here.
func TestReferencesAreDeclared(t *testing.T) {
	const document = "a document says what was, and outlives it"
	except := map[string]string{
		"Organization.parent": "meta.organization is the same, and is checked",
		"Instance.app":        "what the instance was begun with; all of it is in its spec",
		"Checkout.invoice":    document, "Checkout.card": document, "Refund.payment": document, "Dispute.payment": document, "CreditNote.seller": document, "CreditNote.invoice": document, "Invoice.priceBook": document, "Invoice.seller": document,
		"Invoice.editions.[].priceBook":              document,
		"Organization.priceBookHistory.[].priceBook": "its versions stay when a book is deleted",
		"Invoice.lines.[].invoice":                   document, "Invoice.lines.[].project": document,
		"UsageRecord.node":         "a record is no object",
		"Volume.rollback.snapshot": "while the count is above what was done: ReferencesOfKinds",
		"Router.externalNetwork":   "the planner makes routers, and follows what is there",
		"Instance.rootVolume":      "a reinstall makes it in the same batch, and it refers to its instance",
		"Service.user":             "made and deleted with it", "Service.instance": "made and deleted with it",
		"Service.machine.flavor": "its instance refers to it", "Service.machine.image": "its instance refers to it",
		"Disk.dbDisk":       "both disks belong to one node and go with it",
		"Session.group":     "a session ends with its group",
		"Service.priceBook": "its organization refers to it",
	}
	doc := contract(t)
	found := 0
	for name, schema := range doc.Components.Schemas {
		spec := schema.Value.Properties["spec"]
		if spec == nil || schema.Value.Properties["meta"] == nil {
			continue
		}
		for _, path := range idFields(spec.Value, nil) {
			at, typed := strings.Join(path[1:], "."), path[0]
			field := name + "." + at
			if except[field] != "" {
				continue
			}
			o := api.Object{Kind: api.Kind(name), Meta: api.Meta{ID: "self"}, Spec: api.Encode(nested(path[1:]))}
			found++
			if !slices.ContainsFunc(api.References(o), func(r api.Reference) bool {
				return r.Target == api.Target{Kind: api.Kind(typed), ID: "id-1"}
			}) {
				t.Errorf("field %s contains the ID of a %s, which api/references.go does not declare", field, typed)
			}
		}
	}
	if found < 15 {
		t.Errorf("found %d references, want at least 15", found)
	}
}

// idFields returns the paths of ID fields below a schema, each preceded by the kind
// that the ID is of.
func idFields(s *openapi3.Schema, path []string) (all [][]string) {
	for name, p := range s.Properties {
		at := append(slices.Clone(path), name)
		v := p.Value
		if v.Type.Is("array") {
			v, at = v.Items.Value, append(at, "[]")
		}
		typed, _ := v.Extensions["x-go-type"].(string)
		if kind, ok := strings.CutSuffix(typed, "ID"); ok && kind != "" {
			all = append(all, append([]string{kind}, at...))
		} else {
			all = append(all, idFields(v, at)...)
		}
	}
	return all
}

// nested returns a value that contains only an ID, at the path.
func nested(path []string) any {
	switch {
	case len(path) == 0:
		return "id-1"
	case path[0] == "[]":
		return []any{nested(path[1:])}
	}
	return map[string]any{path[0]: nested(path[1:])}
}
