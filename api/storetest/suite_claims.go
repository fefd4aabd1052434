package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/basalt-gpu/basalt/api"
)

// claiming returns a flavor that claims names; nil leaves its claims unchanged.
func claiming(id string, expect int64, names []string) api.Command {
	c := flavor(id, id, 1, expect)
	c.Claims = names
	return c
}

func testClaims(t *tester) {
	o := t.must(1, claiming("flv-1", 0, []string{"ip/a", "mac/b", "ip/a"}))
	if !slices.Equal(o.Claims, []string{"ip/a", "mac/b"}) {
		t.Errorf("claims = %q, want ip/a and mac/b once each", o.Claims)
	}
	same(t, "get", t.get(api.KindFlavor, "flv-1"), o)
	t.fails(api.CodeConflict, claiming("flv-2", 0, []string{"ip/c", "mac/b"}))
	t.gone(api.KindFlavor, "flv-2")
	var e *api.Error
	err := t.strict(claiming("flv-2", 0, []string{"mac/b"}))
	if !errors.As(err, &e) || e.By == nil || *e.By != (api.ObjectRef{Kind: api.KindFlavor, ID: "flv-1"}) || e.Message != "mac/b is already claimed" {
		t.Errorf("claim of a name that flv-1 has: %v, want an error that names flv-1", err)
	}
	t.must(2, claiming("flv-2", 0, []string{"ip/c"}))

	assign := func(id string, names []string) api.Command {
		return api.Command{Op: api.OpAssign, Kind: api.KindFlavor, ID: id, Expect: api.AnyRevision, Data: json.RawMessage(`{}`), Claims: names}
	}
	t.fails(api.CodeConflict, assign("flv-2", []string{"ip/a"}))
	if o := t.must(3, assign("flv-2", nil)); !slices.Equal(o.Claims, []string{"ip/c"}) {
		t.Errorf("claims after an assignment without any = %q, want ip/c unchanged", o.Claims)
	}
	// Different claims with the same assignment are a change, the same claims are not.
	o = t.must(4, assign("flv-2", []string{"ip/d"}))
	if o.Meta.Generation != 1 || !slices.Equal(o.Claims, []string{"ip/d"}) {
		t.Errorf("meta %+v, claims %q; want generation 1 and ip/d", o.Meta, o.Claims)
	}
	same(t, "the same claims", t.must(5, assign("flv-2", []string{"ip/d"})), o)
	t.must(6, claiming("flv-3", 0, []string{"ip/c"})) // released above
	if o := t.must(7, assign("flv-3", []string{})); len(o.Claims) != 0 {
		t.Errorf("claims after an empty list = %q, want none", o.Claims)
	}
	t.must(8, assign("flv-2", []string{"ip/c", "ip/d"}))

	// Claims are held until the object is removed, not just marked deleted.
	held := claiming("flv-4", 0, []string{"ip/e"})
	held.Finalizers = []string{"x"}
	t.must(9, held)
	t.must(10, api.Command{Op: api.OpDelete, Kind: api.KindFlavor, ID: "flv-4", Expect: api.AnyRevision})
	t.fails(api.CodeConflict, assign("flv-3", []string{"ip/e"}))
	t.must(11, api.Command{Op: api.OpForget, Kind: api.KindFlavor, ID: "flv-4", Expect: api.AnyRevision, Finalizer: "x"})
	t.must(12, assign("flv-3", []string{"ip/e"}))
	t.must(13, api.Command{Op: api.OpDelete, Kind: api.KindFlavor, ID: "flv-1", Expect: api.AnyRevision})
	o = t.must(14, assign("flv-3", []string{"ip/a", "mac/b"}))
	if o := t.must(15, flavor("flv-3", "", 2, o.Meta.Revision)); len(o.Claims) != 2 {
		t.Errorf("claims after a new spec = %q, want both kept", o.Claims)
	}

	many := make([]string, api.MaxClaims+1)
	for i := range many {
		many[i] = fmt.Sprint("n/", i)
	}
	t.fails(api.CodeTooLarge, assign("flv-3", many))
	t.must(16, assign("flv-3", many[1:]))
	for _, name := range []string{"", "a\x00b", strings.Repeat("x", api.MaxClaimBytes+1)} {
		t.fails(api.CodeInvalid, assign("flv-3", []string{name}))
	}
	t.fails(api.CodeInvalid, api.Command{Op: api.OpReport, Kind: api.KindFlavor, ID: "flv-3", Expect: api.AnyRevision, Data: json.RawMessage(`{}`), Claims: []string{"x"}})
}

func testClaimsOfABatch(t *tester) {
	t.must(1, claiming("flv-1", 0, []string{"a"}))
	// Two objects of one batch cannot claim the same name, whatever else is in the
	// batch.
	_, err := t.apply(2, claiming("flv-2", 0, []string{"b"}), claiming("flv-3", 0, []string{"b"}))
	t.wantCode(api.CodeConflict, err)
	t.gone(api.KindFlavor, "flv-2")
	// A name that is released, or whose object is removed, can be claimed later in the
	// batch.
	out, err := t.apply(3, claiming("flv-1", api.AnyRevision, []string{"b"}), claiming("flv-2", 0, []string{"a"}))
	if err != nil || !slices.Equal(out[1].Claims, []string{"a"}) {
		t.Fatalf("batch that moves a claim: %v, error %v; want flv-2 to hold a", out, err)
	}
	if _, err = t.apply(4, api.Command{Op: api.OpDelete, Kind: api.KindFlavor, ID: "flv-2", Expect: api.AnyRevision}, claiming("flv-3", 0, []string{"a"})); err != nil {
		t.Fatal(err)
	}
	// A failed batch leaves claims unchanged.
	_, err = t.apply(5, claiming("flv-1", api.AnyRevision, []string{}), claiming("flv-9", 7, nil))
	t.wantCode(api.CodeNotFound, err)
	t.fails(api.CodeConflict, claiming("flv-4", 0, []string{"b"}))
	// Claims can be exchanged within a batch.
	if _, err = t.apply(6, claiming("flv-1", api.AnyRevision, []string{}), claiming("flv-3", api.AnyRevision, []string{"b"}),
		claiming("flv-1", api.AnyRevision, []string{"a"})); err != nil {
		t.Fatal(err)
	}
	t.fails(api.CodeConflict, claiming("flv-4", 0, []string{"a"}))
	t.fails(api.CodeConflict, claiming("flv-4", 0, []string{"b"}))
	t.must(7, claiming("flv-4", 0, []string{"c"}))
}

// testClaimsNeverTwice applies random batches and checks that no name is ever held
// twice, and that a name that nobody holds can be claimed.
func testClaimsNeverTwice(t *tester) {
	const objects, names = 6, 8
	r := rand.New(rand.NewPCG(4, 2))
	some := func() []string {
		out := []string{}
		for range r.IntN(4) {
			out = append(out, fmt.Sprint("n", r.IntN(names)))
		}
		return out
	}
	refused, taken := 0, 0
	for n := range 400 {
		var cmds []api.Command
		for range 1 + r.IntN(3) {
			c := claiming(fmt.Sprint("flv-", r.IntN(objects)), api.AnyRevision, some())
			switch r.IntN(6) {
			case 0:
				c.Op, c.Claims = api.OpDelete, nil
			case 1:
				c.Op, c.Claims, c.Finalizer = api.OpForget, nil, "x"
			case 2:
				c.Op = api.OpAssign
			case 3:
				c.Claims = nil
			case 4:
				c.Finalizers = []string{"x"}
			}
			cmds = append(cmds, c)
		}
		if _, err := t.apply(n, cmds...); api.CodeOf(err) == api.CodeConflict && err != nil {
			refused++
		}
		holder := map[string]string{}
		page, err := t.s.List(t.ctx, api.ListQuery{Kind: api.KindFlavor, Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range page.Items {
			for _, name := range o.Claims {
				if by := holder[name]; by != "" {
					t.Fatalf("after batch %d both %s and %s hold %s", n, by, o.Meta.ID, name)
				}
				holder[name] = o.Meta.ID
				taken++
			}
		}
		// A probe can claim exactly the names that nobody holds.
		name := fmt.Sprint("n", r.IntN(names))
		probe := claiming("flv-probe", 0, []string{name})
		if _, err := t.apply(n, probe, api.Command{Op: api.OpDelete, Kind: api.KindFlavor, ID: probe.ID, Expect: api.AnyRevision}); (err == nil) != (holder[name] == "") {
			t.Fatalf("after batch %d %s is held by %q, but claiming it returned error %v", n, name, holder[name], err)
		}
	}
	if refused == 0 || taken == 0 {
		t.Errorf("%d batches were refused and %d names held, want some of both", refused, taken)
	}
}
