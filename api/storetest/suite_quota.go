package storetest

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"

	"github.com/basalt-gpu/basalt/api"
)

// holding returns an organization or a project with limits; nil leaves them unchanged.
func holding(kind api.Kind, id, organization string, limits api.Amounts) api.Command {
	return api.Command{Op: api.OpPutSpec, Kind: kind, ID: id, Name: id, Organization: organization, Expect: api.AnyRevision,
		Data: json.RawMessage(`{}`), Limits: limits}
}

// using returns a volume in a project of org-1 with uses of quotas; nil leaves them
// unchanged.
func using(id, project string, uses api.Amounts) api.Command {
	return api.Command{Op: api.OpPutSpec, Kind: api.KindVolume, ID: id, Name: id, Organization: "org-1", Project: project, Expect: api.AnyRevision,
		Data: json.RawMessage(`{}`), Uses: uses}
}

func deleting(id string) api.Command {
	return api.Command{Op: api.OpDelete, Kind: api.KindVolume, ID: id, Expect: api.AnyRevision}
}

// scopes creates the scopes of these cases: a reseller, its customer, and two projects
// of the customer.
func (t *tester) scopes(reseller, customer, one, two api.Amounts) {
	t.Helper()
	if _, err := t.apply(1, holding(api.KindOrganization, "org-0", "", reseller), holding(api.KindOrganization, "org-1", "org-0", customer),
		holding(api.KindProject, "prj-1", "org-1", one), holding(api.KindProject, "prj-2", "org-1", two)); err != nil {
		t.Fatal(err)
	}
}

// sums checks the use in a scope, without what objects count for by existing
// (testKindQuotas).
func (t *tester) sums(kind api.Kind, id string, want api.Amounts) {
	t.Helper()
	got, err := t.s.Sums(t.ctx, kind, id)
	maps.DeleteFunc(got, func(quota string, _ int64) bool { _, counted := api.DefaultQuota(quota); return counted })
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("use in %s %s = %v, error %v; want %v", kind, id, got, err, want)
	}
}

func testQuotas(t *tester) {
	t.scopes(api.Amounts{"a": 12}, api.Amounts{"a": 10, "b": 5}, api.Amounts{"a": 7}, nil)
	o := t.must(2, using("vol-1", "prj-1", api.Amounts{"a": 5, "b": 1, "c": 1000}))
	if !maps.Equal(o.Uses, api.Amounts{"a": 5, "b": 1, "c": 1000}) {
		t.Errorf("uses of the volume = %v, want all three kept", o.Uses)
	}
	t.fails(api.CodeQuota, using("vol-2", "prj-1", api.Amounts{"a": 3})) // exceeds the project's limit
	t.gone(api.KindVolume, "vol-2")
	t.must(3, using("vol-2", "prj-2", api.Amounts{"a": 5}))
	t.fails(api.CodeQuota, using("vol-3", "prj-2", api.Amounts{"a": 1})) // exceeds the organization's limit
	t.sums(api.KindProject, "prj-1", api.Amounts{"a": 5, "b": 1, "c": 1000})
	t.sums(api.KindProject, "prj-2", api.Amounts{"a": 5})
	for _, org := range []string{"org-0", "org-1"} {
		t.sums(api.KindOrganization, org, api.Amounts{"a": 10, "b": 1, "c": 1000})
	}

	// Nil keeps the use; more is checked, and less is released, even if the limit is
	// below the use now.
	if o := t.must(4, using("vol-1", "prj-1", nil)); o.Uses["a"] != 5 {
		t.Errorf("uses after nil = %v, want 5 of a unchanged", o.Uses)
	}
	t.must(5, holding(api.KindOrganization, "org-1", "", api.Amounts{"a": 2}))
	t.fails(api.CodeQuota, using("vol-1", "prj-1", api.Amounts{"a": 6}))
	t.must(6, using("vol-1", "prj-1", api.Amounts{"a": 4}))
	t.sums(api.KindOrganization, "org-0", api.Amounts{"a": 9})
	t.must(7, holding(api.KindOrganization, "org-1", "", api.Amounts{}))
	if o := t.must(8, holding(api.KindOrganization, "org-1", "", nil)); len(o.Limits) != 0 {
		t.Errorf("limits after nil = %v, want none", o.Limits)
	}
	t.must(9, using("vol-3", "prj-2", api.Amounts{"a": 3}))
	t.fails(api.CodeQuota, using("vol-4", "prj-2", api.Amounts{"a": 1})) // exceeds the reseller's limit

	// The use ends when the object is removed, not when it is marked deleted.
	held := using("vol-3", "prj-2", api.Amounts{})
	t.must(10, held)
	held = using("vol-5", "prj-2", api.Amounts{"a": 3})
	held.Finalizers = []string{"x"}
	t.must(11, held)
	t.must(12, deleting("vol-5"))
	t.fails(api.CodeQuota, using("vol-4", "prj-2", api.Amounts{"a": 1}))
	t.must(13, api.Command{Op: api.OpForget, Kind: api.KindVolume, ID: "vol-5", Expect: api.AnyRevision, Finalizer: "x"})
	t.must(14, using("vol-4", "prj-2", api.Amounts{"a": 1}))
	for n, id := range []string{"vol-1", "vol-2", "vol-3", "vol-4"} {
		t.must(15+n, deleting(id))
	}
	t.sums(api.KindOrganization, "org-0", api.Amounts{})

	many := api.Amounts{}
	for i := range api.MaxAmounts + 1 {
		many[fmt.Sprint(i)] = 1
	}
	t.fails(api.CodeTooLarge, using("vol-9", "prj-1", many))
	for _, bad := range []api.Amounts{{"": 1}, {"a\x00b": 1}, {"a": -1}, {"a": api.MaxAmount + 1}} {
		t.fails(api.CodeInvalid, using("vol-9", "prj-1", bad))
		t.fails(api.CodeInvalid, holding(api.KindProject, "prj-9", "org-1", bad))
	}
	assign := using("vol-9", "prj-1", api.Amounts{"a": 1})
	assign.Op = api.OpAssign
	t.fails(api.CodeInvalid, assign)
	// Sums that overflow are refused, even without a limit.
	for n := range 7 {
		t.must(30+n, using(fmt.Sprint("vol-", n), "prj-2", api.Amounts{"z": api.MaxAmount}))
	}
	t.fails(api.CodeQuota, using("vol-8", "prj-2", api.Amounts{"z": api.MaxAmount}))
}

func testQuotasOfABatch(t *tester) {
	t.scopes(nil, api.Amounts{"a": 10}, nil, nil)
	// All commands of a batch count, and none of a refused one.
	_, err := t.apply(2, using("vol-1", "prj-1", api.Amounts{"a": 6}), using("vol-2", "prj-2", api.Amounts{"a": 6}))
	t.wantCode(api.CodeQuota, err)
	t.sums(api.KindOrganization, "org-1", api.Amounts{})
	// What one command releases, the next may use.
	if _, err := t.apply(3, using("vol-1", "prj-1", api.Amounts{"a": 10}), using("vol-1", "prj-1", api.Amounts{"a": 1}),
		using("vol-2", "prj-2", api.Amounts{"a": 9})); err != nil {
		t.Fatal(err)
	}
	if _, err := t.apply(4, deleting("vol-2"), using("vol-3", "prj-1", api.Amounts{"a": 9})); err != nil {
		t.Fatal(err)
	}
	t.sums(api.KindProject, "prj-1", api.Amounts{"a": 10})
	t.sums(api.KindProject, "prj-2", api.Amounts{})
	// The limit of a project that is created in the batch applies at once.
	_, err = t.apply(5, holding(api.KindProject, "prj-3", "org-0", api.Amounts{"b": 1}), using("vol-4", "prj-3", api.Amounts{"b": 2}))
	t.wantCode(api.CodeQuota, err)
}

// testQuotasNeverPassed checks with concurrent batches that no sum exceeds a limit, and
// that sums are those of the objects.
func testQuotasNeverPassed(t *tester) {
	limit := api.Amounts{"a": 20, "b": 9}
	t.scopes(nil, limit, api.Amounts{"a": 12}, api.Amounts{"a": 15})
	var wg sync.WaitGroup
	var mu sync.Mutex
	refused, taken := 0, 0
	for w := range 4 {
		r := rand.New(rand.NewPCG(uint64(w), 7))
		wg.Go(func() {
			for n := range 100 {
				// The project depends on the object, since an owner never changes.
				one := func() api.Command {
					i := r.IntN(8)
					c := using(fmt.Sprint("vol-", i), fmt.Sprint("prj-", 1+i%2), api.Amounts{"a": int64(r.IntN(9)), "b": int64(r.IntN(3))})
					if r.IntN(4) == 0 {
						c = deleting(c.ID)
					}
					return c
				}
				_, err := t.s.Apply(t.ctx, api.Batch{ID: fmt.Sprintf("%d/%d", w, n), At: at(n), Commands: []api.Command{one(), one()}})
				mu.Lock()
				switch code := api.CodeOf(err); {
				case err == nil:
					taken++
				case code == api.CodeQuota:
					refused++
				case code != api.CodeNotFound:
					t.Error(err)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	page, err := t.s.List(t.ctx, api.ListQuery{Kind: api.KindVolume, Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	org, projects := api.Amounts{}, map[string]api.Amounts{"prj-1": {}, "prj-2": {}}
	for _, o := range page.Items {
		for quota, n := range o.Uses {
			if n > 0 {
				org[quota] += n
				projects[o.Meta.Project][quota] += n
			}
		}
	}
	t.sums(api.KindOrganization, "org-1", org)
	t.sums(api.KindProject, "prj-1", projects["prj-1"])
	t.sums(api.KindProject, "prj-2", projects["prj-2"])
	if org["a"] > 20 || org["b"] > 9 || projects["prj-1"]["a"] > 12 || projects["prj-2"]["a"] > 15 {
		t.Errorf("use exceeds the limits: organization %v, projects %v", org, projects)
	}
	if refused == 0 || taken == 0 {
		t.Errorf("%d batches were refused and %d applied, want some of both", refused, taken)
	}
}

// testKindQuotas checks, for every kind that users create, that each object counts one
// in a quota until it is removed.
func testKindQuotas(t *tester) {
	tenants := []api.Kind{api.KindImage, api.KindVolume, api.KindSnapshot, api.KindBackup, api.KindNetwork, api.KindSecurityGroup, api.KindLoadBalancer,
		api.KindProject, api.KindAPIKey, api.KindWebhook, api.KindBudget, api.KindUser, api.KindOrganization, api.KindService, api.KindPayment, api.KindCreditNote}
	put := func(kind api.Kind, n int) api.Command {
		id := fmt.Sprint(kind, "-", n)
		return api.Command{Op: api.OpPutSpec, Kind: kind, ID: id, Name: id, Organization: "org-1", Data: json.RawMessage(`{}`)}
	}
	limits := api.Amounts{}
	for _, kind := range tenants {
		limits[api.CountQuota(kind)] = 2
	}
	t.must(1, holding(api.KindOrganization, "org-0", "", nil))
	t.must(2, holding(api.KindOrganization, "org-1", "org-0", limits))
	for _, kind := range tenants {
		quota := api.CountQuota(kind)
		t.must(3, put(kind, 1))
		t.must(3, put(kind, 2))
		t.fails(api.CodeQuota, put(kind, 3))
		o := t.must(4, api.Command{Op: api.OpPutSpec, Kind: kind, ID: fmt.Sprint(kind, "-1"), Expect: api.AnyRevision, Data: json.RawMessage(`{"a":1}`)})
		if len(o.Uses) > 0 {
			t.Errorf("uses of a %s = %v, want none: it only counts", kind, o.Uses)
		}
		t.must(5, api.Command{Op: api.OpDelete, Kind: kind, ID: o.Meta.ID, Expect: api.AnyRevision})
		t.must(6, put(kind, 3))
		for _, org := range []string{"org-0", "org-1"} {
			want := int64(2)
			if kind == api.KindOrganization && org == "org-0" {
				want++ // org-1
			}
			if got, err := t.s.Sums(t.ctx, api.KindOrganization, org); err != nil || got[quota] != want {
				t.Errorf("use of %s in %s = %d, error %v; want %d", quota, org, got[quota], err, want)
			}
		}
	}
	// An organization's default limit applies to itself, not to the reseller above.
	t.must(7, holding(api.KindOrganization, "org-1", "", api.Amounts{}))
	most, _ := api.DefaultQuota(api.CountQuota(api.KindWebhook))
	for n := range int(most) - 2 {
		t.must(8, put(api.KindWebhook, 10+n))
	}
	t.fails(api.CodeQuota, put(api.KindWebhook, 4))
	t.must(9, holding(api.KindOrganization, "org-2", "org-0", nil))
	c := put(api.KindWebhook, 5)
	c.Organization = "org-2"
	t.must(10, c)
	// A customer cannot exceed its seller's explicit limit.
	t.must(11, holding(api.KindOrganization, "org-0", "", api.Amounts{api.CountQuota(api.KindWebhook): most + 1}))
	c = put(api.KindWebhook, 6)
	c.Organization = "org-2"
	t.fails(api.CodeQuota, c)
}
