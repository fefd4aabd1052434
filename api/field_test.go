package api

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestFieldsAreScalars checks that every field is a scalar of the kind's objects, so
// that renaming one without its row here is noticed.
func TestFieldsAreScalars(t *testing.T) {
	for _, info := range Kinds() {
		kind := info.Kind
		for _, field := range info.fields {
			if field == "state" {
				continue
			}
			if got := scalarType(info.Type, strings.Split(field, ".")); got == "" {
				t.Errorf("kind %s has no scalar field %s", kind, field)
			} else if want := got == "time.Time"; isTime(field) != want {
				t.Errorf("field %s of %s has type %s, but isTime = %v", field, kind, got, isTime(field))
			}
		}
	}
}

// scalarType returns the type of the value at a path of JSON names, or "" if it is not
// a scalar.
func scalarType(of reflect.Type, path []string) string {
	for _, name := range path {
		var next reflect.Type
		for i := range of.NumField() {
			if tag, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ","); tag == name {
				next = of.Field(i).Type
			}
		}
		if next == nil {
			return ""
		}
		if of = next; of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
	}
	if of == reflect.TypeFor[time.Time]() {
		return of.String()
	}
	switch of.Kind() {
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int64, reflect.Float64:
		return of.String()
	}
	return ""
}

func fieldObject(id, spec, status string) Object {
	return Object{Kind: KindVolume, Meta: Meta{ID: id, Name: "n-" + id, CreatedAt: time.Unix(1_700_000_000, 0)}, Spec: json.RawMessage(spec), Status: json.RawMessage(status)}
}

func TestOrderOfFields(t *testing.T) {
	objects := []Object{
		fieldObject("a", `{"sizeBytes":10,"pool":"b"}`, `{"phase":"Ready"}`),
		fieldObject("b", `{"sizeBytes":9,"pool":"B2"}`, `{"phase":"Failed"}`),
		fieldObject("c", `{}`, ``),
		fieldObject("d", `{"sizeBytes":-3,"pool":"a"}`, `{"phase":"Ready"}`),
		fieldObject("e", `{"sizeBytes":10000000000,"pool":""}`, `{"phase":"Creating"}`),
	}
	for sort, want := range map[ListSort]string{
		"id": "abcde", "-id": "edcba", "spec.sizeBytes": "cdbae", "-spec.sizeBytes": "eabdc", "spec.pool": "cedab", "state": "ebcad", "-createdAt": "edcba",
	} {
		order, err := ParseOrder(KindVolume, sort)
		if err != nil {
			t.Fatal(err)
		}
		by := slices.Clone(objects)
		slices.SortFunc(by, func(a, b Object) int {
			if order.Before(order.Key(a), order.Key(b)) {
				return -1
			}
			return 1
		})
		var got strings.Builder
		for _, o := range by {
			got.WriteString(o.Meta.ID)
		}
		if got.String() != want {
			t.Errorf("order by %q = %s, want %s", sort, got.String(), want)
		}
		if place, err := order.Place(order.Token(order.Key(by[2]))); err != nil || place != order.Key(by[2]) {
			t.Errorf("order by %q: Place(Token(key)) = %q, %v; want the key %q", sort, place, err, order.Key(by[2]))
		}
	}
	for _, sort := range []ListSort{"age", "-", "spec.wrappedKey", "meta.name", "--id", "status.startedAt"} {
		if _, err := ParseOrder(KindVolume, sort); err == nil {
			t.Errorf("ParseOrder(%q) succeeded, want an error", sort)
		}
	}
}

// TestStateOfInstances checks that an instance's state is the one that the command line
// and the portal show.
func TestStateOfInstances(t *testing.T) {
	gone := time.Unix(1_700_000_000, 0)
	for _, i := range []Instance{
		{}, {Meta: Meta{DeletedAt: &gone}}, {Assignment: InstanceAssignment{NodeLost: true}}, {Assignment: InstanceAssignment{Epoch: 2}, Status: InstanceStatus{Phase: InstanceRunning}},
		{Assignment: InstanceAssignment{Node: "node-1", Epoch: 2}, Status: InstanceStatus{Node: "node-2", Epoch: 1, Phase: InstanceRunning}},
		{Assignment: InstanceAssignment{Node: "node-1"}, Status: InstanceStatus{Node: "node-1", Phase: InstanceStopped}},
	} {
		o := Object{Kind: KindInstance, Meta: i.Meta, Assignment: Encode(i.Assignment), Status: Encode(i.Status)}
		if got, want := StateOf(o), string(InstancePhaseOf(i)); got != want {
			t.Errorf("state of %+v is %s, want %s", i, got, want)
		}
	}
}

func TestFieldSelector(t *testing.T) {
	o := fieldObject("a", `{"sizeBytes":10,"pool":"fast","encrypted":true}`, `{"phase":"Ready"}`)
	for text, want := range map[string]bool{
		"": true, "state=Ready": true, "state!=Ready": false, "spec.pool=fast,spec.sizeBytes=10": true, "spec.encrypted=true": true,
		"spec.instance": false, "!spec.instance": true, "spec.instance!=x": true, "createdAt=2023-11-14T22:13:20Z": true, "name=b": false, "project": false,
	} {
		s, err := ParseFieldSelector(KindVolume, text)
		if err != nil || s.Matches(o) != want {
			t.Errorf("selector %q: matches = %v (error %v), want %v", text, !want, err, want)
		}
	}
	for _, text := range []string{"spec.wrappedKey=x", "age=1", "=", strings.Repeat("a", 2000)} {
		var e *Error
		if _, err := ParseFieldSelector(KindVolume, text); !errors.As(err, &e) || e.Field != "fieldSelector" {
			t.Errorf("ParseFieldSelector(%q) = error %v, want one at fieldSelector", text, e)
		}
	}
}

// FuzzFields checks that keys keep their order and that no object or token causes a
// failure.
func FuzzFields(f *testing.F) {
	f.Add(`{"sizeBytes":10,"pool":"b"}`, "spec.sizeBytes=1", "spec.pool", "")
	f.Add(`{"sizeBytes":1e400,"pool":{}}`, "state!=x", "-spec.sizeBytes", "AA")
	f.Add(`[`, "!spec.pool", "state", "?")
	f.Fuzz(func(t *testing.T, spec, selector, sort, token string) {
		o := fieldObject("a", spec, spec)
		if s, err := ParseFieldSelector(KindVolume, selector); err == nil {
			s.Matches(o)
		}
		order, err := ParseOrder(KindVolume, ListSort(sort))
		if err != nil {
			return
		}
		key := order.Key(o)
		if len(key) > 256 {
			t.Errorf("key has %d bytes, want at most 256", len(key))
		}
		if place, err := order.Place(order.Token(key)); err != nil || place != key {
			t.Errorf("Place(Token(key)) = %q, %v; want the key %q", place, err, key)
		}
		if _, err := order.Place(token); err != nil && CodeOf(err) != CodeInvalid {
			t.Errorf("Place(%q) = %v, want no error or one with code %s", token, err, CodeInvalid)
		}
	})
}
