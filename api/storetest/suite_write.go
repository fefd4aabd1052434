package storetest

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/basalt-gpu/basalt/api"
)

func testPutSpec(t *tester) {
	if r := t.s.Revision(); r != 0 {
		t.Fatalf("empty store has revision %d, want 0", r)
	}
	c := flavor("flv-1", "small", 1, 0)
	c.Organization, c.Project, c.Labels, c.Finalizers = "org-1", "prj-1", map[string]string{"a": "b"}, []string{"x"}
	o := t.must(1, c)
	m := o.Meta
	if m.ID != "flv-1" || m.Name != "small" || m.Organization != "org-1" || m.Project != "prj-1" ||
		m.Labels["a"] != "b" || len(m.Finalizers) != 1 || m.Generation != 1 || m.Revision != t.s.Revision() || m.Revision < 1 {
		t.Errorf("new object has meta %+v at revision %d, want the given one at the store's revision", m, t.s.Revision())
	}
	if !m.CreatedAt.Equal(at(1)) || !m.UpdatedAt.Equal(at(1)) {
		t.Errorf("new object was created at %v and updated at %v, want %v", m.CreatedAt, m.UpdatedAt, at(1))
	}
	same(t, "get after make", t.get(api.KindFlavor, "flv-1"), o)

	o = t.must(2, flavor("flv-1", "large", 2, m.Revision))
	if o.Meta.Name != "large" || len(o.Meta.Labels) != 0 || o.Meta.Generation != 2 || o.Meta.Revision <= m.Revision {
		t.Errorf("changed object has meta %+v, want name large, no labels and generation 2", o.Meta)
	}
	if o.Meta.Organization != "org-1" || o.Meta.Project != "prj-1" || len(o.Meta.Finalizers) != 1 {
		t.Errorf("changed object has meta %+v, want organization, project and finalizers kept", o.Meta)
	}
	if !o.Meta.CreatedAt.Equal(at(1)) || !o.Meta.UpdatedAt.Equal(at(2)) {
		t.Errorf("changed object was created at %v and updated at %v, want %v and %v", o.Meta.CreatedAt, o.Meta.UpdatedAt, at(1), at(2))
	}
	same(t, "get after change", t.get(api.KindFlavor, "flv-1"), o)

	// Other labels are a change, but not one of the spec.
	c = flavor("flv-1", "", 2, api.AnyRevision)
	c.Labels = map[string]string{"c": "d"}
	o = t.must(3, c)
	if o.Meta.Generation != 2 || o.Meta.Name != "large" || o.Meta.Labels["c"] != "d" {
		t.Errorf("object with other labels has meta %+v, want generation 2 and the new labels", o.Meta)
	}
}

func testExpect(t *tester) {
	t.fails(api.CodeNotFound, flavor("flv-1", "a", 1, 7))
	o := t.must(1, flavor("flv-1", "a", 1, api.AnyRevision)) // creates it
	rev := o.Meta.Revision
	t.fails(api.CodeExists, flavor("flv-1", "a", 2, 0))
	t.fails(api.CodeConflict, flavor("flv-1", "a", 2, rev+1))
	for _, op := range []api.Op{api.OpAssign, api.OpReport, api.OpDelete, api.OpForget} {
		c := api.Command{Op: op, Kind: api.KindFlavor, ID: "flv-1", Finalizer: "x", Expect: rev + 1, Data: json.RawMessage(`{}`)}
		t.fails(api.CodeConflict, c)
		c.ID, c.Expect = "flv-none", api.AnyRevision
		t.fails(api.CodeNotFound, c)
	}
	same(t, "after all that failed", t.get(api.KindFlavor, "flv-1"), o)
}

func testNames(t *tester) {
	put := func(id, name, org, project string, expect int64) api.Command {
		c := flavor(id, name, 1, expect)
		c.Organization, c.Project = org, project
		return c
	}
	o := t.must(1, put("flv-1", "a", "org-1", "prj-1", 0))
	t.fails(api.CodeExists, put("flv-2", "a", "org-1", "prj-1", 0))
	t.must(2, put("flv-2", "a", "org-1", "prj-2", 0))
	t.must(3, put("flv-3", "a", "org-2", "", 0))
	t.must(4, put("flv-4", "b", "org-1", "prj-1", 0))
	t.fails(api.CodeExists, put("flv-4", "a", "org-1", "prj-1", api.AnyRevision)) // the name of another object
	image := put("img-1", "a", "org-1", "prj-1", 0)
	image.Kind = api.KindImage
	t.must(5, image) // a different kind

	o = t.must(6, put("flv-1", "c", "org-1", "prj-1", o.Meta.Revision)) // releases its old name
	t.must(7, put("flv-5", "a", "org-1", "prj-1", 0))
	t.must(8, api.Command{Op: api.OpDelete, Kind: api.KindFlavor, ID: "flv-1", Expect: o.Meta.Revision})
	t.must(9, put("flv-6", "c", "org-1", "prj-1", 0))

	held := put("flv-7", "held", "org-1", "prj-1", 0)
	held.Finalizers = []string{"x"}
	t.must(10, held)
	t.must(11, api.Command{Op: api.OpDelete, Kind: api.KindFlavor, ID: "flv-7", Expect: api.AnyRevision})
	t.fails(api.CodeExists, put("flv-8", "held", "org-1", "prj-1", 0)) // not removed yet
	t.must(12, api.Command{Op: api.OpForget, Kind: api.KindFlavor, ID: "flv-7", Expect: api.AnyRevision, Finalizer: "x"})
	t.must(13, put("flv-8", "held", "org-1", "prj-1", 0))

	// Two objects of one batch cannot have the same name.
	_, err := t.apply(14, put("flv-9", "twin", "", "", 0), put("flv-10", "twin", "", "", 0))
	t.wantCode(api.CodeExists, err)
	t.gone(api.KindFlavor, "flv-9")
}

func testNoChange(t *tester) {
	c := flavor("flv-1", "a", 1, 0)
	c.Labels, c.Finalizers = map[string]string{"k": "v"}, []string{"x"}
	t.must(1, c)
	assign := api.Command{Op: api.OpAssign, Kind: api.KindFlavor, ID: "flv-1", Expect: api.AnyRevision, Data: json.RawMessage(`{"node":"n","x":[1]}`)}
	report := api.Command{Op: api.OpReport, Kind: api.KindFlavor, ID: "flv-1", Expect: api.AnyRevision, Data: json.RawMessage(`{"phase":"<p>"}`)}
	remove := api.Command{Op: api.OpDelete, Kind: api.KindFlavor, ID: "flv-1", Expect: api.AnyRevision}
	t.must(2, assign)
	o := t.must(3, report)

	again := c
	again.Expect = o.Meta.Revision
	same(t, "the same spec", t.must(4, again), o)
	assign.Data = json.RawMessage("{\"node\": \"n\",\n \"x\": [1] }")
	same(t, "the same assignment", t.must(5, assign), o)
	same(t, "the same status", t.must(6, report), o)
	same(t, "a finalizer that it has not", t.must(7, api.Command{Op: api.OpForget, Kind: api.KindFlavor, ID: "flv-1", Expect: api.AnyRevision, Finalizer: "y"}), o)
	if r := t.s.Revision(); r != o.Meta.Revision {
		t.Errorf("revision after commands without effect = %d, want %d", r, o.Meta.Revision)
	}
	deleted := t.must(8, remove)
	same(t, "a second delete", t.must(9, remove), deleted)
	if r := t.s.Revision(); r != deleted.Meta.Revision {
		t.Errorf("revision after a second delete = %d, want %d", r, deleted.Meta.Revision)
	}
	if out, err := t.apply(10); err != nil || len(out) != 0 {
		t.Errorf("answer to an empty batch = %v, error %v; want none", out, err)
	}
}

func testTimes(t *tester) {
	c := flavor("flv-1", "a", 1, 0)
	c.Finalizers = []string{"x"}
	t.must(10, c)
	o := t.must(5, flavor("flv-1", "a", 2, api.AnyRevision))
	if !o.Meta.UpdatedAt.Equal(at(10)) || !o.Meta.CreatedAt.Equal(at(10)) {
		t.Errorf("object was created at %v and changed at %v, want %v", o.Meta.CreatedAt, o.Meta.UpdatedAt, at(10))
	}
	o = t.must(6, api.Command{Op: api.OpDelete, Kind: api.KindFlavor, ID: "flv-1", Expect: api.AnyRevision})
	if !o.Meta.DeletedAt.Equal(at(10)) || !o.Meta.UpdatedAt.Equal(at(10)) {
		t.Errorf("object was deleted at %v and changed at %v, want %v", o.Meta.DeletedAt, o.Meta.UpdatedAt, at(10))
	}
	t.must(12, flavor("flv-2", "b", 1, 0))
	o = t.must(7, api.Command{Op: api.OpDelete, Kind: api.KindFlavor, ID: "flv-2", Expect: api.AnyRevision})
	if !o.Meta.DeletedAt.Equal(at(12)) {
		t.Errorf("object was removed at %v, want %v", o.Meta.DeletedAt, at(12))
	}
	if o = t.must(8, flavor("flv-3", "c", 1, 0)); !o.Meta.CreatedAt.Equal(at(8)) {
		t.Errorf("another object was created at %v, want %v", o.Meta.CreatedAt, at(8))
	}
}

func testAllOrNothing(t *tester) {
	before := t.must(1, flavor("flv-1", "a", 1, 0))
	_, err := t.apply(2,
		flavor("flv-2", "b", 1, 0),
		flavor("flv-1", "a", 9, before.Meta.Revision),
		recordOf("use-1", "org-1", "ins-1", api.MeterVCPU, at(1), 5),
		api.Command{Op: api.OpDelete, Kind: api.KindFlavor, ID: "flv-none", Expect: api.AnyRevision})
	t.wantCode(api.CodeNotFound, err)
	same(t, "what a failed batch changed", t.get(api.KindFlavor, "flv-1"), before)
	t.gone(api.KindFlavor, "flv-2")
	if all := t.recorded(api.RecordQuery{}); len(all) != 0 {
		t.Errorf("records after a failed batch = %v, want none", all)
	}
	if r := t.s.Revision(); r != before.Meta.Revision {
		t.Errorf("revision after a failed batch = %d, want %d", r, before.Meta.Revision)
	}
	t.must(3, flavor("flv-3", "b", 1, 0)) // the failed batch did not reserve the name
}

func testBatchSeesItself(t *tester) {
	remove := api.Command{Op: api.OpDelete, Kind: api.KindFlavor, ID: "flv-1", Expect: api.AnyRevision}
	out, err := t.apply(1, flavor("flv-1", "a", 1, 0), flavor("flv-1", "a", 2, api.AnyRevision), remove, flavor("flv-2", "a", 1, 0))
	if err != nil {
		t.Fatal(err)
	}
	for i := 1; i < len(out); i++ {
		if i != 2 && out[i].Meta.Revision <= out[i-1].Meta.Revision {
			t.Errorf("revision %d follows %d, want an ascending order", out[i].Meta.Revision, out[i-1].Meta.Revision)
		}
	}
	if out[1].Meta.Generation != 2 || out[2].Meta.DeletedAt == nil {
		t.Errorf("answers = %s, want generation 2 and then a deleted object", mustJSON(t, out))
	}
	t.gone(api.KindFlavor, "flv-1")
	t.get(api.KindFlavor, "flv-2")
}

func testBatchID(t *tester) {
	b := api.Batch{ID: "b-1", At: at(1), Commands: []api.Command{flavor("flv-1", "a", 1, 0)}}
	first, err := t.s.Apply(t.ctx, b)
	if err != nil {
		t.Fatal(err)
	}
	t.must(2, flavor("flv-1", "a", 2, api.AnyRevision))
	rev := t.s.Revision()
	b.At = at(3)
	second, err := t.s.Apply(t.ctx, b)
	if err != nil {
		t.Fatalf("apply the same batch again: %v", err)
	}
	if len(second) != 1 {
		t.Fatalf("answer to the repeated batch has %d objects, want 1", len(second))
	}
	same(t, "the second answer", second[0], first[0])
	if r := t.s.Revision(); r != rev {
		t.Errorf("the repeated batch moved the revision from %d to %d, want no change", rev, r)
	}
	// A failed batch is applied when it is repeated.
	late := api.Batch{ID: "b-2", At: at(4), Commands: []api.Command{{Op: api.OpDelete, Kind: api.KindFlavor, ID: "flv-2", Expect: api.AnyRevision}}}
	_, err = t.s.Apply(t.ctx, late)
	t.wantCode(api.CodeNotFound, err)
	t.must(5, flavor("flv-2", "b", 1, 0))
	if _, err := t.s.Apply(t.ctx, late); err != nil {
		t.Errorf("apply a batch that failed before: %v", err)
	}
	t.gone(api.KindFlavor, "flv-2")
}

func testConcurrentWriters(t *tester) {
	const writers, each = 8, 10
	t.must(1, flavor("flv-1", "counter", 0, 0))
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for range each {
				for { // read, increment, write: a concurrent write is a conflict
					o, err := t.s.Get(t.ctx, api.KindFlavor, "flv-1")
					if err != nil {
						t.Error(err)
						return
					}
					var spec api.FlavorSpec
					if err := json.Unmarshal(o.Spec, &spec); err != nil {
						t.Error(err)
						return
					}
					_, err = t.apply(2, flavor("flv-1", "", spec.Vcpus+1, o.Meta.Revision))
					if err == nil {
						break
					}
					if api.CodeOf(err) != api.CodeConflict {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	f, err := api.Decode[api.Flavor](t.get(api.KindFlavor, "flv-1"))
	if err != nil {
		t.Fatal(err)
	}
	if f.Spec.Vcpus != writers*each || f.Meta.Generation != writers*each+1 {
		t.Errorf("%d writes resulted in %d vCPUs and generation %d, want %d and %d", writers*each, f.Spec.Vcpus, f.Meta.Generation, writers*each, writers*each+1)
	}
}

func testResultsNotShared(t *tester) {
	c := flavor("flv-1", "a", 1, 0)
	c.Labels = map[string]string{"k": "v"}
	first := t.must(1, c)
	want := mustJSON(t, first)
	for i := range 3 {
		c := flavor("flv-1", fmt.Sprintf("n%d", i), int64(i+5), api.AnyRevision)
		c.Labels = map[string]string{"k": "other"}
		t.must(2+i, c)
	}
	if got := mustJSON(t, first); got != want {
		t.Errorf("an answer was modified later:\n got %s\nwant %s", got, want)
	}
}
