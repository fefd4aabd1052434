package network

import (
	"context"
	"errors"
	"log/slog"
	"math/rand"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/memstore"
	"github.com/basalt-gpu/basalt/appliance/controlplane/network"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/appliance/controlplane/watchcache"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/sdn"
	"github.com/basalt-gpu/basalt/sdn/fake"
)

// flaky is a store that can fail before or after it has applied a batch.
type flaky struct {
	*memstore.Store
	before, after bool // fail before or after applying
}

func (f *flaky) Apply(ctx context.Context, b api.Batch) ([]api.Object, error) {
	if f.before {
		return nil, errors.New("the store is away")
	}
	out, err := f.Store.Apply(ctx, b)
	if f.after {
		return nil, errors.New("no answer")
	}
	return out, err
}

// wire is a project with a router and a floating IP, and two gateway nodes.
type wire struct {
	t     *testing.T
	net   *fake.Network
	store *flaky
	state *objects.Set
	now   time.Time
	dir   string
}

func newWire(t *testing.T) *wire {
	w := &wire{t: t, net: fake.New(), store: &flaky{Store: memstore.New()}, state: empty(), dir: t.TempDir(), now: time.Date(2026, 10, 31, 22, 50, 0, 0, time.UTC)}
	if err := w.net.Controller().Apply(t.Context(), sdn.Topology{Cluster: "c", External: []sdn.ExternalNetwork{{ID: "ext-1", Physical: "external", CIDR4: netip.MustParsePrefix("203.0.113.0/24"), Gateways: []api.NodeID{"node-1", "node-2"}}}}); err != nil {
		t.Fatal(err)
	}
	objects.Map[api.Router](w.state)["rtr-1"] = api.Router{Meta: meta("rtr-1"), Spec: api.RouterSpec{ExternalNetwork: "ext-1"}, Assignment: api.RouterAssignment{Address4: "203.0.113.10"}}
	objects.Map[api.FloatingIP](w.state)["fip-1"] = api.FloatingIP{Meta: meta("fip-1"), Spec: api.FloatingIPSpec{ExternalNetwork: "ext-1"}, Assignment: api.FloatingIPAssignment{Address: "203.0.113.50"}}
	return w
}

func meta(id string) api.Meta {
	return api.Meta{ID: id, Name: "name of " + id, Organization: "org-1", Project: "prj-1"}
}

// start starts the metering of a node from the state on its disk.
func (w *wire) start(node api.NodeID) *Egress {
	return &Egress{Store: w.store, Node: node, Counter: w.net.Chassis(node), File: filepath.Join(w.dir, string(node)+".json"),
		Every: time.Minute, Now: func() time.Time { return w.now }, Log: slog.New(slog.DiscardHandler)}
}

func (w *wire) look(e *Egress) {
	w.t.Helper()
	if err := e.record(w.t.Context(), w.state); err != nil {
		w.t.Fatal(err)
	}
}

// recorded returns the recorded traffic of a resource, in total and by hour.
func (w *wire) recorded(resource string) (sum uint64, hours map[string]uint64) {
	w.t.Helper()
	hours = map[string]uint64{}
	q := api.RecordQuery{Limit: 1000}
	for more := true; more; {
		page, err := w.store.Records(w.t.Context(), q)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, r := range page.Items {
			u, ok := api.UseOf(r)
			if !ok || u.Meter != api.MeterEgress || u.Project != "prj-1" || u.ResourceName != "name of "+u.Resource || r.Meta.Organization != "org-1" {
				w.t.Fatalf("record = %+v, want egress of prj-1 and org-1 with the resource's name", r)
			}
			if u.Resource == resource {
				sum += uint64(u.Quantity)
				hours[u.Hour.Format("15")] += uint64(u.Quantity)
			}
		}
		q.After, more = page.Next, page.More
	}
	return sum, hours
}

func (w *wire) want(resource string, bytes uint64) {
	w.t.Helper()
	if n, _ := w.recorded(resource); n != bytes {
		w.t.Errorf("recorded traffic of %s = %d bytes, want %d", resource, n, bytes)
	}
}

// TestEgressIsRecordedOnce checks that, whatever fails or restarts on both nodes,
// each byte is recorded once, for its owner.
func TestEgressIsRecordedOnce(t *testing.T) {
	for seed := range int64(12) {
		w, rng := newWire(t), rand.New(rand.NewSource(seed))
		nodes := []api.NodeID{"node-1", "node-2"}
		parts := map[api.NodeID]*Egress{"node-1": w.start("node-1"), "node-2": w.start("node-2")}
		sent := map[string]uint64{}
		look := func(node api.NodeID) {
			if err := parts[node].record(t.Context(), w.state); err != nil && !w.store.before && !w.store.after {
				t.Fatal(err)
			}
		}
		look("node-1")
		look("node-2")
		for range 300 {
			node := nodes[rng.Intn(2)] // the router moves between the nodes
			switch rng.Intn(8) {
			case 0:
				w.store.before, w.store.after = rng.Intn(3) == 0, rng.Intn(3) == 0
			case 1: // killed
				parts[node] = w.start(node)
			case 2: // the switch restarts right after its counters were recorded
				w.store.before, w.store.after = false, false
				look(node)
				w.now = w.now.Add(2 * time.Minute)
				look(node)
				w.net.Chassis(node).Restart()
				look(node) // and its flows are created again
			case 3, 4:
				look(node)
			default:
				owner, n := []string{"rtr-1", "fip-1"}[rng.Intn(2)], uint64(rng.Intn(1<<20))
				w.net.Chassis(node).Leave(owner, n)
				sent[owner] += n
			}
			w.now = w.now.Add(time.Duration(rng.Intn(40)) * time.Second)
		}
		w.store.before, w.store.after = false, false
		for _, node := range nodes {
			look(node)
			w.now = w.now.Add(2 * time.Minute)
			look(node)
		}
		for owner, n := range sent {
			w.want(owner, n)
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// TestEgressOfASwitchThatDied checks that a restarted counter is charged from zero,
// and that what the old one had after it was last read is not charged.
func TestEgressOfASwitchThatDied(t *testing.T) {
	w := newWire(t)
	e := w.start("node-1")
	w.look(e)
	w.net.Chassis("node-1").Leave("rtr-1", 1000)
	w.look(e)
	w.net.Chassis("node-1").Leave("rtr-1", 77) // never read
	w.net.Chassis("node-1").Restart()
	w.look(e)
	w.net.Chassis("node-1").Leave("rtr-1", 500) // less than the old one had
	w.now = w.now.Add(time.Minute)
	w.look(e)
	w.want("rtr-1", 1500)
}

// TestEgressOfDeletedFloatingIP deletes a floating IP while it still has
// traffic: the last traffic is charged to it, also after a restart, and then its
// account is removed.
func TestEgressOfDeletedFloatingIP(t *testing.T) {
	w := newWire(t)
	e, c := w.start("node-1"), w.net.Chassis("node-1")
	w.look(e)
	c.Leave("fip-1", 100)
	w.now = w.now.Add(time.Minute)
	w.look(e)
	delete(objects.Map[api.FloatingIP](w.state), "fip-1")
	c.Leave("fip-1", 11)
	e = w.start("node-1")
	w.look(e)
	w.want("fip-1", 111)
	patience.Until(t, 30*time.Second, "the account of fip-1 removed", func() bool {
		w.now = w.now.Add(time.Minute)
		w.look(e)
		return len(e.book.Accounts) == 1
	})
	w.want("fip-1", 111)
}

// TestEgressIsOfItsHour checks that traffic before a full hour is charged to that
// hour if the counters are read right after it, which is when Run reads them.
func TestEgressIsOfItsHour(t *testing.T) {
	w := newWire(t)
	e := w.start("node-1")
	w.look(e)
	w.now = time.Date(2026, 10, 31, 22, 59, 55, 0, time.UTC)
	if d := e.step(t.Context(), w.state); d != 5*time.Second {
		t.Errorf("next step after %v, want 5s: at the full hour", d)
	}
	w.net.Chassis("node-1").Leave("rtr-1", 1000)
	w.now = w.now.Add(5*time.Second + 20*time.Millisecond)
	w.look(e)
	w.net.Chassis("node-1").Leave("rtr-1", 10)
	w.now = w.now.Add(time.Minute)
	w.look(e)
	if _, hours := w.recorded("rtr-1"); hours["22"] != 1000 || hours["23"] != 10 {
		t.Errorf("traffic by hour = %v, want 1000 in hour 22 and 10 in hour 23", hours)
	}
}

// TestEgressBookThatIsBroken checks that a book which cannot be read is not
// overwritten.
func TestEgressBookThatIsBroken(t *testing.T) {
	for _, text := range []string{"{", `{"version":2}`, `{"version":1,"accounts":{"rtr-1":null}}`, `{"version":1,"accounts":{"rtr-1":{"resource":{"id":"rtr-2"}}}}`} {
		w := newWire(t)
		e := w.start("node-1")
		if err := os.WriteFile(e.File, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := e.record(t.Context(), w.state); err == nil || !strings.Contains(err.Error(), e.File) {
				t.Errorf("step with the book %s: error %v, want one that names %s", text, err, e.File)
			}
		}
		if left, err := os.ReadFile(e.File); err != nil || string(left) != text {
			t.Errorf("broken book after the step = %q, error %v; want it unchanged: %q", left, err, text)
		}
	}
}

// TestEgressRuns runs the metering as the node does, which must wait for the
// network.
func TestEgressRuns(t *testing.T) {
	w := newWire(t)
	put := func(kind api.Kind, id string, spec, assignment any) {
		if _, err := w.store.Store.Apply(t.Context(), api.Batch{Commands: []api.Command{
			{Op: api.OpPutSpec, Kind: kind, ID: id, Name: "name of " + id, Organization: "org-1", Project: "prj-1", Data: api.Encode(spec)},
			{Op: api.OpAssign, Kind: kind, ID: id, Expect: api.AnyRevision, Data: api.Encode(assignment)}}}); err != nil {
			t.Fatal(err)
		}
	}
	put(api.KindRouter, "rtr-1", objects.Map[api.Router](w.state)["rtr-1"].Spec, objects.Map[api.Router](w.state)["rtr-1"].Assignment)
	e := w.start("node-1")
	e.Now, e.Every = nil, 10*time.Millisecond
	up := make(chan struct{})
	e.Ready = func(context.Context) error {
		select {
		case <-up:
			return nil
		default:
			return errors.New("not up")
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	e.Cache = watchcache.New(w.store, e.Log, network.Kinds...)
	done := make(chan error)
	for _, run := range []func(context.Context) error{e.Run, e.Cache.Run} {
		go func() { done <- run(ctx) }()
	}
	w.net.Chassis("node-1").Leave("rtr-1", 5) // not counted yet
	close(up)
	var sent uint64
	patience.Until(t, 30*time.Second, "four bytes recorded", func() bool {
		if w.net.Chassis("node-1").Leave("rtr-1", 1) {
			sent++
		}
		n, _ := w.recorded("rtr-1")
		return n > 3
	})
	cancel()
	for range 2 {
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run: %v, want %v", err, context.Canceled)
		}
	}
	if n, _ := w.recorded("rtr-1"); n > sent {
		t.Errorf("recorded %d bytes, want at most the %d that were sent", n, sent)
	}
}
