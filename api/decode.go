package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Decode turns a stored object into its typed form (Instance, Volume, …), which
// shares nothing with it. Every object of a long list goes through here, and
// every change that the planner hears of: each document is read once, into its
// place.
func Decode[T any](o Object) (T, error) {
	var t T
	if err := decodeInto(reflect.ValueOf(&t).Elem(), o); err != nil {
		return t, fmt.Errorf("decode %s %s: %w", o.Kind, o.Meta.ID, err)
	}
	return t, nil
}

// decodeInto a kind's struct. What else it has (a secret that is shown once) is
// not stored.
func decodeInto(t reflect.Value, o Object) error {
	for i := range t.NumField() {
		var raw json.RawMessage
		switch t.Type().Field(i).Name {
		case "Kind":
			t.Field(i).Set(reflect.ValueOf(o.Kind))
		case "Meta":
			t.Field(i).Set(reflect.ValueOf(copyMeta(o.Meta)))
		case "Spec":
			raw = o.Spec
		case "Assignment":
			raw = o.Assignment
		case "Status":
			raw = o.Status
		}
		if len(raw) == 0 {
			continue
		}
		if err := json.Unmarshal(raw, t.Field(i).Addr().Interface()); err != nil {
			return fmt.Errorf("decode %s of %s: %w", strings.ToLower(t.Type().Field(i).Name), o.Kind, err)
		}
	}
	return nil
}

// copyMeta is what reading it from its stored form gives.
func copyMeta(m Meta) Meta {
	plain := func(t time.Time) time.Time { return t.Round(0) } // without the monotonic clock
	m.CreatedAt = plain(m.CreatedAt)
	if m.DeletedAt != nil {
		at := plain(*m.DeletedAt)
		m.DeletedAt = &at
	}
	m.Finalizers, m.Labels = slices.Clone(m.Finalizers), maps.Clone(m.Labels)
	return m
}
