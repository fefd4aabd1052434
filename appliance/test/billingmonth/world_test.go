package billingmonth

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/api/server"
	"github.com/basalt-gpu/basalt/api/server/auth"
	"github.com/basalt-gpu/basalt/api/server/servertest"
	"github.com/basalt-gpu/basalt/appliance/controlplane/invoicing"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/appliance/controlplane/offboarding"
	"github.com/basalt-gpu/basalt/appliance/controlplane/plan"
	"github.com/basalt-gpu/basalt/billing/pricebook"
	"github.com/basalt-gpu/basalt/sds"
	sdsfake "github.com/basalt-gpu/basalt/sds/fake"
)

// begin is the start of the month. On its 28th day, Berlin has 23 hours. It is in the future
// because the server's connections have deadlines by its clock.
var begin = time.Date(2027, 3, 1, 0, 0, 0, 0, time.UTC)

type world struct {
	t      *testing.T
	store  killableStore
	url    string
	op     *client.API
	shared *sdsfake.Store
	nodes  []*testNode
	health map[string]plan.Health
	job    *invoicing.Job
	truth  truth

	planned   time.Time // when plan last ran
	plannedAt int64     // the revision of the store then

	mu  sync.Mutex // guards now
	now time.Time
}

func (w *world) Now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func newWorld(t *testing.T, store killableStore) *world {
	w := &world{t: t, store: store, now: begin, health: map[string]plan.Health{}, truth: truth{}}
	env := servertest.StartWith(t, func(o *server.Options) {
		o.Store, o.Now, o.Billing, o.Runtime = store, w.Now, invoicing.Billing{Store: store}, runtime{o.Runtime, w}
	})
	cmd, token := auth.NewAPIKey(api.Meta{Name: "operator"}, api.APIKeySpec{Role: api.RoleOperator})
	if _, err := store.Apply(t.Context(), api.Batch{At: begin, Commands: []api.Command{cmd}}); err != nil {
		t.Fatal(err)
	}
	w.url, w.op = env.URL, w.connect(env.URL, token)
	w.lead()
	w.shared = sdsfake.Shared("pool-1", sds.Limits{}, 1)[0]
	w.shared.SetNow(w.Now)
	for _, id := range []api.NodeID{"node-000000000001", "node-000000000002", "node-000000000003"} {
		w.nodes = append(w.nodes, newTestNode(w, id))
	}
	w.settle()
	must(t, client.Of[api.PriceBook](w.op).Create, api.PriceBook{Meta: api.Meta{Name: api.DefaultPriceBook}, Spec: pricebook.Default()})
	must(t, client.Of[api.GPUPool](w.op).Create, api.GPUPool{Meta: api.Meta{Name: api.DefaultPool}})
	for name, vcpus := range map[string]int64{"small": 1, "large": 4} {
		must(t, client.Of[api.Flavor](w.op).Create, api.Flavor{Meta: api.Meta{Name: name}, Spec: api.FlavorSpec{Vcpus: vcpus, MemoryBytes: vcpus << 30, RootBytes: 2 << 30}})
	}
	image := must(t, client.Of[api.Image](w.op).Create, api.Image{Meta: api.Meta{Name: "debian"}, Spec: api.ImageSpec{Format: "raw", Public: true}})
	w.settle()
	disk := make([]byte, 1<<20)
	disk[510], disk[511] = 0x55, 0xaa // a boot sector
	if _, err := w.op.PutImageContent(t.Context(), image.Meta.ID, bytes.NewReader(disk), int64(len(disk))); err != nil {
		t.Fatal(err)
	}
	w.settle()
	return w
}

// lead starts a new invoicing job, as a new leader does: it has no state of the one before.
func (w *world) lead() {
	w.job = &invoicing.Job{Billing: invoicing.Billing{Store: w.store}, Store: w.store, Changes: w.store, Log: slog.New(slog.DiscardHandler)}
}

// kill ends every basaltd as SIGKILL does, and starts it again; instances continue to run.
func (w *world) kill() {
	w.t.Helper()
	for _, h := range w.nodes {
		h.kill()
	}
	before := w.store.Revision()
	w.store.kill(w.t)
	if now := w.store.Revision(); now != before {
		w.t.Fatalf("revision after the kill = %d, want %d as before", now, before)
	}
	w.lead()
	for _, h := range w.nodes {
		h.start()
	}
	w.settle()
}

// must calls f and fails the test on an error.
func must[T, U any](t *testing.T, f func(context.Context, T) (U, error), arg T) U {
	t.Helper()
	out, err := f(t.Context(), arg)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (w *world) connect(url, token string) *client.API {
	w.t.Helper()
	c, err := client.New(client.Options{Server: url, Token: token})
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// runtime passes image content to the agent of a running node.
type runtime struct {
	server.Runtime
	w *world
}

func (r runtime) PutImage(ctx context.Context, id api.ImageID, from io.Reader, _ int64) error {
	for _, h := range r.w.nodes {
		if h.Stepper != nil {
			return h.Agent().PutImage(ctx, id, from)
		}
	}
	return errors.New("no node has a running agent")
}

// settle runs the planner, the agents and the offboarding until nothing is due.
func (w *world) settle() {
	w.t.Helper()
	for range 300 {
		did := w.plan()
		for _, h := range w.nodes {
			did = h.reconcileAll() || did
		}
		if err := offboarding.Sweep(w.t.Context(), w.store, w.Now()); err != nil {
			w.t.Fatal(err)
		}
		if !did {
			return
		}
	}
	w.t.Fatal("nodes and planner still have work after 300 rounds, want none")
}

// plan plans as the leader does, and reports whether there was anything to plan.
func (w *world) plan() (did bool) {
	ctx := w.t.Context()
	for range 100 {
		if w.planned.Equal(w.Now()) && w.plannedAt == w.store.Revision() {
			return did
		}
		w.planned, w.plannedAt = w.Now(), w.store.Revision()
		all, err := objects.Read(ctx, w.store, plan.Kinds...)
		if err != nil {
			w.t.Fatal(err)
		}
		s := plan.StateOf(all)
		s.Self, s.Health = "node-000000000001", w.health
		cmds := plan.Next(s, w.Now())
		if len(cmds) == 0 {
			return did
		}
		did = true
		for _, group := range plan.Groups(cmds) {
			if _, err := w.store.Apply(ctx, api.Batch{At: w.Now(), Commands: group}); err != nil && api.CodeOf(err) != api.CodeConflict && api.CodeOf(err) != api.CodeNotFound {
				w.t.Fatalf("apply planned commands %+v: %v", group, err)
			}
		}
	}
	w.t.Fatal("the planner still has commands after 100 rounds, want none")
	return did
}

func (w *world) list(kind api.Kind) (all []api.Object) {
	w.t.Helper()
	if err := api.Each(w.t.Context(), w.store, api.ListQuery{Kind: kind}, func(o api.Object) error { all = append(all, o); return nil }); err != nil {
		w.t.Fatal(err)
	}
	return all
}

// records returns the usage records of an organization, or of all for "".
func (w *world) records(org string) (all []api.UsageRecord) {
	w.t.Helper()
	for q := (api.RecordQuery{Organization: org, Limit: api.MaxRecords}); ; {
		page, err := w.store.Records(w.t.Context(), q)
		if err != nil {
			w.t.Fatal(err)
		}
		all = append(all, page.Items...)
		if q.After = page.Next; !page.More {
			return all
		}
	}
}

// pass lets time pass in steps of at most an hour; usage is metered at the end of each.
func (w *world) pass(d time.Duration) {
	w.t.Helper()
	for end := w.Now().Add(d); w.Now().Before(end); {
		w.settle()
		next := w.Now().Truncate(time.Hour).Add(time.Hour)
		if next.After(end) {
			next = end
		}
		passed := next.Sub(w.Now())
		for _, h := range w.nodes {
			h.run(passed)
		}
		w.mu.Lock()
		w.now = next
		w.mu.Unlock()
		w.settle()
		for _, h := range w.nodes {
			h.meter()
		}
		w.job.Step(w.t.Context(), w.Now())
		w.settle()
	}
}

// until lets time pass until a time of the month.
func (w *world) until(day, hour, minute int) {
	w.t.Helper()
	w.pass(begin.AddDate(0, 0, day-1).Add(time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute).Sub(w.Now()))
}

func (w *world) instance(c *client.API, ref string) api.Instance {
	w.t.Helper()
	in, err := client.Of[api.Instance](c).Get(w.t.Context(), ref, client.Query{})
	if err != nil {
		w.t.Fatal(err)
	}
	return in
}

func (w *world) wantPhase(c *client.API, ref string, want api.InstancePhase) api.Instance {
	w.t.Helper()
	// Actions that are delayed by seconds or a minute get their time.
	for range 20 {
		if w.settle(); w.instance(c, ref).Status.Phase == want {
			break
		}
		w.tick(5 * time.Second)
	}
	in := w.instance(c, ref)
	if in.Status.Phase != want {
		w.t.Fatalf("%s: instance %s is %s, want %s: assignment %+v, status %+v", w.Now(), ref, in.Status.Phase, want, in.Assignment, in.Status)
	}
	return in
}

// tick lets a short time pass, without metering.
func (w *world) tick(d time.Duration) {
	for _, h := range w.nodes {
		h.run(d)
	}
	w.mu.Lock()
	w.now = w.now.Add(d)
	w.mu.Unlock()
}
