package storetest

import (
	"encoding/json"

	"github.com/basalt-gpu/basalt/api"
)

func testAssignReport(t *tester) {
	o := t.must(1, flavor("flv-1", "a", 1, 0))
	o2 := t.must(2, api.Command{Op: api.OpAssign, Kind: api.KindFlavor, ID: "flv-1", Expect: o.Meta.Revision, Data: json.RawMessage(`{"node":"n1"}`)})
	if string(o2.Assignment) != `{"node":"n1"}` || string(o2.Spec) != string(o.Spec) || o2.Meta.Generation != 1 || o2.Meta.Revision <= o.Meta.Revision {
		t.Errorf("assigned object = %s, want only assignment and revision changed", mustJSON(t, o2))
	}
	o3 := t.must(3, api.Command{Op: api.OpReport, Kind: api.KindFlavor, ID: "flv-1", Expect: o2.Meta.Revision, Data: json.RawMessage(`{"phase":"Up"}`)})
	if string(o3.Status) != `{"phase":"Up"}` || string(o3.Assignment) != `{"node":"n1"}` || o3.Meta.Generation != 1 || !o3.Meta.UpdatedAt.Equal(at(3)) {
		t.Errorf("reported object = %s, want only status and revision changed", mustJSON(t, o3))
	}
	o4 := t.must(4, flavor("flv-1", "", 2, o3.Meta.Revision))
	if string(o4.Status) != `{"phase":"Up"}` || string(o4.Assignment) != `{"node":"n1"}` {
		t.Errorf("object with a new spec = %s, want the same assignment and status", mustJSON(t, o4))
	}
	same(t, "get", t.get(api.KindFlavor, "flv-1"), o4)
}

func testReportMakes(t *tester) {
	report := func(kind api.Kind, id string, expect int64, status string) api.Command {
		return api.Command{Op: api.OpReport, Kind: kind, ID: id, Name: id + "-name", Expect: expect,
			Labels: map[string]string{"k": "v"}, Finalizers: []string{"f"}, Data: json.RawMessage(status)}
	}
	for _, kind := range []api.Kind{api.KindNode, api.KindGPU} {
		o := t.must(1, report(kind, "x-1", 0, `{"a":1}`))
		if string(o.Spec) != `{}` || string(o.Status) != `{"a":1}` || o.Meta.Generation != 1 || o.Meta.Name != "x-1-name" ||
			o.Meta.Labels["k"] != "v" || len(o.Meta.Finalizers) != 1 {
			t.Errorf("object created by a report = %s, want an empty spec and the given meta", mustJSON(t, o))
		}
		t.fails(api.CodeExists, report(kind, "x-1", 0, `{"a":2}`))
		t.fails(api.CodeNotFound, report(kind, "x-2", 5, `{"a":2}`))
		o = t.must(2, report(kind, "x-1", api.AnyRevision, `{"a":3}`))
		if string(o.Status) != `{"a":3}` || o.Meta.Generation != 1 {
			t.Errorf("reported object = %s, want status {\"a\":3} and generation 1", mustJSON(t, o))
		}
		t.must(3, report(kind, "x-3", api.AnyRevision, `{}`))
	}
	t.fails(api.CodeNotFound, report(api.KindInstance, "ins-1", 0, `{}`))
	t.fails(api.CodeNotFound, report(api.KindInstance, "ins-1", api.AnyRevision, `{}`))
}

func testDelete(t *tester) {
	o := t.must(1, flavor("flv-1", "a", 1, 0))
	t.fails(api.CodeConflict, api.Command{Op: api.OpDelete, Kind: api.KindFlavor, ID: "flv-1"}) // Expect 0
	out := t.must(2, api.Command{Op: api.OpDelete, Kind: api.KindFlavor, ID: "flv-1", Expect: o.Meta.Revision})
	if out.Meta.DeletedAt == nil || !out.Meta.DeletedAt.Equal(at(2)) || string(out.Spec) != string(o.Spec) {
		t.Errorf("deleted object = %s, want its last state with deletedAt", mustJSON(t, out))
	}
	if r := t.s.Revision(); r <= o.Meta.Revision {
		t.Errorf("revision after a removal = %d, want more than %d", r, o.Meta.Revision)
	}
	t.gone(api.KindFlavor, "flv-1")
	o = t.must(3, flavor("flv-1", "a", 1, 0))
	if o.Meta.Generation != 1 || o.Meta.DeletedAt != nil {
		t.Errorf("object created again = %s, want generation 1 and no deletedAt", mustJSON(t, o))
	}
}

func testFinalizers(t *tester) {
	c := flavor("flv-1", "a", 1, 0)
	c.Finalizers = []string{"x", "y"}
	o := t.must(1, c)
	forget := func(f string) api.Command {
		return api.Command{Op: api.OpForget, Kind: api.KindFlavor, ID: "flv-1", Expect: api.AnyRevision, Finalizer: f}
	}
	o = t.must(2, api.Command{Op: api.OpDelete, Kind: api.KindFlavor, ID: "flv-1", Expect: o.Meta.Revision})
	if o.Meta.DeletedAt == nil || !o.Meta.DeletedAt.Equal(at(2)) || len(o.Meta.Finalizers) != 2 || o.Meta.Generation != 1 {
		t.Errorf("object marked deleted has meta %+v, want deletedAt, both finalizers and generation 1", o.Meta)
	}
	same(t, "still there", t.get(api.KindFlavor, "flv-1"), o)
	t.fails(api.CodeState, flavor("flv-1", "a", 2, o.Meta.Revision))
	t.must(3, api.Command{Op: api.OpReport, Kind: api.KindFlavor, ID: "flv-1", Expect: o.Meta.Revision, Data: json.RawMessage(`{"phase":"Deleting"}`)})
	o = t.must(4, forget("x"))
	if len(o.Meta.Finalizers) != 1 || o.Meta.Finalizers[0] != "y" || !o.Meta.DeletedAt.Equal(at(2)) {
		t.Errorf("meta after one finalizer was removed = %+v, want y only and the same deletedAt", o.Meta)
	}
	o = t.must(5, forget("y"))
	if len(o.Meta.Finalizers) != 0 {
		t.Errorf("meta after both finalizers were removed = %+v, want none", o.Meta)
	}
	t.gone(api.KindFlavor, "flv-1")

	// An object whose finalizers were removed first stays until it is deleted.
	c.Finalizers = []string{"x"}
	t.must(6, c)
	t.must(7, forget("x"))
	o = t.get(api.KindFlavor, "flv-1")
	t.must(8, api.Command{Op: api.OpDelete, Kind: api.KindFlavor, ID: "flv-1", Expect: o.Meta.Revision})
	t.gone(api.KindFlavor, "flv-1")
}

func testBadCommands(t *tester) {
	good := flavor("flv-1", "a", 1, 0)
	for name, spoil := range map[string]func(*api.Command){
		"no kind":     func(c *api.Command) { c.Kind = "" },
		"no id":       func(c *api.Command) { c.ID = "" },
		"op 0":        func(c *api.Command) { c.Op = 0 },
		"op 99":       func(c *api.Command) { c.Op, c.Expect = 99, api.AnyRevision },
		"no data":     func(c *api.Command) { c.Data = nil },
		"broken data": func(c *api.Command) { c.Data = json.RawMessage(`{"a":`) },
		"two values":  func(c *api.Command) { c.Data = json.RawMessage(`{} {}`) },
		"recorded":    func(c *api.Command) { c.Op = api.OpRecord },
		"expires":     func(c *api.Command) { c.Op = api.OpExpire },
		"no object":   func(c *api.Command) { c.Kind = api.KindUsageRecord },
	} {
		c := good
		spoil(&c)
		_, err := t.apply(1, c)
		if code := api.CodeOf(err); err == nil || code != api.CodeInvalid {
			t.Errorf("%s: error %v, want %s", name, err, api.CodeInvalid)
		}
	}
	if r := t.s.Revision(); r != 0 {
		t.Errorf("revision after invalid commands = %d, want 0", r)
	}
}
