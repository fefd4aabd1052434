package api

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"
)

func someInstance() Object {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	return Object{Kind: KindInstance,
		Meta: Meta{ID: "ins-1", Name: "web", Organization: "org-1", Project: "prj-1", CreatedAt: at, DeletedAt: &at, Revision: 7, Generation: 2,
			Finalizers: []string{FinalizerAgent}, Labels: map[string]string{"tier": "front"}},
		Spec:       Encode(InstanceSpec{Flavor: "flv-1", Image: "img-1", Power: PowerRunning, Priority: 50, UserData: "#cloud-config\n"}),
		Assignment: Encode(InstanceAssignment{Node: "node-1", Epoch: 3, Generation: 2, Vcpus: 2, MemoryBytes: 1 << 30, RootVolume: "vol-1"}),
		Status:     Encode(InstanceStatus{Phase: InstanceRunning, Node: "node-1", Epoch: 3, StartedAt: &at, BootID: "b", Step: ""})}
}

// TestDecode checks that the result is what the JSON contains, and that it shares no
// memory with the object.
func TestDecode(t *testing.T) {
	for name, change := range map[string]func(*Object){
		"whole": func(*Object) {}, "without a status": func(o *Object) { o.Status = nil }, "bare": func(o *Object) { *o = Object{Kind: KindInstance} },
		"null": func(o *Object) { o.Spec = json.RawMessage("null") },
	} {
		o := someInstance()
		change(&o)
		raw, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		var want Instance
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatal(err)
		}
		got, err := Decode[Instance](o)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("Decode of an object that is %s = %+v, %v; want %+v", name, got, err, want)
		}
	}
	o := someInstance()
	got, err := Decode[Instance](o)
	if err != nil {
		t.Fatal(err)
	}
	got.Meta.Labels["tier"], got.Meta.Finalizers[0], *got.Meta.DeletedAt = "back", "other", time.Time{}
	if !reflect.DeepEqual(o, someInstance()) {
		t.Errorf("object after its decoded form was changed = %+v, want it unchanged", o)
	}
	o.Status = json.RawMessage(`{"phase":7}`)
	if _, err := Decode[Instance](o); err == nil {
		t.Error("Decode of a status whose phase is a number succeeded, want an error")
	}
	if key, err := Decode[APIKey](Object{Kind: KindAPIKey, Meta: Meta{ID: "key-1"}, Spec: Encode(APIKeySpec{})}); err != nil || key.Meta.ID != "key-1" {
		t.Errorf("Decode of an API key = %+v, %v; want ID key-1", key, err)
	}
}

func BenchmarkDecode(b *testing.B) {
	o := someInstance()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Decode[Instance](o); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDecodeTwice measures the former implementation, which went through the JSON
// of the whole object.
func BenchmarkDecodeTwice(b *testing.B) {
	o := someInstance()
	b.ReportAllocs()
	for b.Loop() {
		var in Instance
		raw, err := json.Marshal(o)
		if err == nil {
			err = json.Unmarshal(raw, &in)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
