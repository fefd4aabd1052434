// Package api holds Basalt's kinds: what an operator or tenant asks for
// (Spec), where the planner puts it (Assignment) and what the node's agent saw
// (Status). Every field has exactly one writer. The package imports only the
// standard library; types.gen.go comes from openapi.yaml.
package api

import (
	"encoding/json"
	"fmt"
)

// Kind names a type of object.
type Kind string

// The kinds.
const (
	KindOrganization Kind = "Organization"
	KindProject      Kind = "Project"
	KindAPIKey       Kind = "APIKey"
	KindNode         Kind = "Node"
	KindGPU          Kind = "GPU"
	KindGPUPool      Kind = "GPUPool"
	KindFlavor       Kind = "Flavor"
	KindImage        Kind = "Image"
	KindVolume       Kind = "Volume"
	KindInstance     Kind = "Instance"
	KindUsageRecord  Kind = "UsageRecord"
	KindAccount      Kind = "Account"
	KindPriceBook    Kind = "PriceBook"
	KindMigration    Kind = "Migration"
	KindJoinToken    Kind = "JoinToken"
	// KindClusterCA is internal: what the cluster signs certificates with. The
	// API neither shows nor takes it.
	KindClusterCA Kind = "ClusterCA"
)

// Object is an object of any kind as the store keeps it. What the store
// returns is read-only.
type Object struct {
	Kind       Kind            `json:"kind"`
	Meta       Meta            `json:"meta"`
	Spec       json.RawMessage `json:"spec,omitempty"`
	Assignment json.RawMessage `json:"assignment,omitempty"`
	Status     json.RawMessage `json:"status,omitempty"`
}

// Decode turns a stored object into its typed form (Instance, Volume, …).
func Decode[T any](o Object) (T, error) {
	var t T
	raw, err := json.Marshal(o)
	if err == nil {
		err = json.Unmarshal(raw, &t)
	}
	if err != nil {
		return t, fmt.Errorf("decode %s %s: %w", o.Kind, o.Meta.ID, err)
	}
	return t, nil
}

// Encode is the stored form of a Spec, Assignment or Status.
func Encode(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("api: %T cannot be encoded: %v", v, err)) // only our own plain structs come here
	}
	return raw
}
