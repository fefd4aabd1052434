// Package api holds Basalt's kinds: what an operator or tenant asks for
// (Spec), where the planner puts it (Assignment) and what the node's agent saw
// (Status). Every field has exactly one writer. The package imports only the
// standard library and rawjson; types.gen.go comes from openapi.yaml.
package api

import (
	"encoding/json"
	"fmt"
)

// Object is an object of any kind in the form that the store keeps. Objects that the
// store returns are read-only.
type Object struct {
	Kind       Kind            `json:"kind"`
	Meta       Meta            `json:"meta"`
	Spec       json.RawMessage `json:"spec,omitempty"`
	Assignment json.RawMessage `json:"assignment,omitempty"`
	Status     json.RawMessage `json:"status,omitempty"`
	// Claims are the names that no other object may hold while this one exists, sorted.
	// The API does not show them.
	Claims []string `json:"claims,omitempty"`
	// Uses and Limits are the object's part in quotas. The API shows them elsewhere,
	// where they have a meaning.
	Uses   Amounts `json:"uses,omitempty"`
	Limits Amounts `json:"limits,omitempty"`
}

// Encode returns the stored form of a Spec, Assignment or Status.
func Encode(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("api: %T cannot be encoded: %v", v, err)) // only plain structs of this package are encoded
	}
	return raw
}
