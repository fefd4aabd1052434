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

// Decode converts a stored object to its typed form (Instance, Volume, …), which shares
// no memory with it. It is called for every object of a long list and every change that
// the planner receives, so it parses each part once, directly into its field.
func Decode[T any](o Object) (T, error) {
	var t T
	if err := decodeInto(reflect.ValueOf(&t).Elem(), o); err != nil {
		return t, fmt.Errorf("decode %s %s: %w", o.Kind, o.Meta.ID, err)
	}
	return t, nil
}

// decodeInto fills a kind's struct. Its other fields (a secret that is shown once) are
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

// copyMeta returns a copy equal to one that was decoded from the stored form.
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
