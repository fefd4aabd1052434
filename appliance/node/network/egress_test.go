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

// flaky is a store that does what it is told, and at times does not say so.
type flaky struct {
	*memstore.Store
	before, after bool // fails
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

// wire is a project with a router and a floating IP, and two nodes that lead
// outside.
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

// start basaltd's part on a node: from its disk.
func (w *wire) start(node api.NodeID) *Egress {
	return &Egress{Store: w.store, Node: node, Counter: w.net.Chassis(node), File: filepath.Join(w.dir, string(node)+".json"),
		Every: time.Minute, Now: func() time.Time { return w.now }, Log: slog.New(slog.DiscardHandler)}
}

func (w *wire) look(e *Egress) {
	w.t.Helper()
	if err := e.look(w.t.Context(), w.state); err != nil {
		w.t.Fatal(err)
	}
}

// recorded use of a resource, by the hour in which it was.
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
				w.t.Fatalf("record %+v", r)
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
		w.t.Errorf("%s: %d bytes are recorded, %d have left", resource, n, bytes)
	}
}

// Whatever fails and dies, on both nodes, each byte is recorded once, for whom
// it left.
func TestEgressIsRecordedOnce(t *testing.T) {
	for seed := range int64(12) {
		w, rng := newWire(t), rand.New(rand.NewSource(seed))
		nodes := []api.NodeID{"node-1", "node-2"}
		parts := map[api.NodeID]*Egress{"node-1": w.start("node-1"), "node-2": w.start("node-2")}
		sent := map[string]uint64{}
		look := func(node api.NodeID) {
			if err := parts[node].look(t.Context(), w.state); err != nil && !w.store.before && !w.store.after {
				t.Fatal(err)
			}
		}
		look("node-1")
		look("node-2")
		for range 300 {
			node := nodes[rng.Intn(2)] // the router is here, then there
			switch rng.Intn(8) {
			case 0:
				w.store.before, w.store.after = rng.Intn(3) == 0, rng.Intn(3) == 0
			case 1: // killed
				parts[node] = w.start(node)
			case 2: // the switch dies right after a look that was written down
				w.store.before, w.store.after = false, false
				look(node)
				w.now = w.now.Add(2 * time.Minute)
				look(node)
				w.net.Chassis(node).Restart()
				look(node) // and its flows are made anew
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

// What a counter that began anew says is charged from zero, and what the old
// one had after the last look at it is not.
func TestEgressOfASwitchThatDied(t *testing.T) {
	w := newWire(t)
	e := w.start("node-1")
	w.look(e)
	w.net.Chassis("node-1").Leave("rtr-1", 1000)
	w.look(e)
	w.net.Chassis("node-1").Leave("rtr-1", 77) // nobody ever reads it
	w.net.Chassis("node-1").Restart()
	w.look(e)
	w.net.Chassis("node-1").Leave("rtr-1", 500) // less than the old one had
	w.now = w.now.Add(time.Minute)
	w.look(e)
	w.want("rtr-1", 1500)
}

// A floating IP is deleted while something still leaves with it: the last of it
// is its own, also after a restart, and then it is forgotten.
func TestEgressOfAFloatingIPThatIsDeleted(t *testing.T) {
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
	patience.Until(t, 30*time.Second, "one account", func() bool {
		w.now = w.now.Add(time.Minute)
		w.look(e)
		return len(e.book.Accounts) == 1
	})
	w.want("fip-1", 111)
}

// What left before a full hour is of that hour, if the counters are read right
// after it; that is when Run looks.
func TestEgressIsOfItsHour(t *testing.T) {
	w := newWire(t)
	e := w.start("node-1")
	w.look(e)
	w.now = time.Date(2026, 10, 31, 22, 59, 55, 0, time.UTC)
	if d := e.step(t.Context(), w.state); d != 5*time.Second {
		t.Errorf("looks again after %v", d)
	}
	w.net.Chassis("node-1").Leave("rtr-1", 1000)
	w.now = w.now.Add(5*time.Second + 20*time.Millisecond)
	w.look(e)
	w.net.Chassis("node-1").Leave("rtr-1", 10)
	w.now = w.now.Add(time.Minute)
	w.look(e)
	if _, hours := w.recorded("rtr-1"); hours["22"] != 1000 || hours["23"] != 10 {
		t.Errorf("by the hour %v", hours)
	}
}

// A book that cannot be read is not written over.
func TestEgressBookThatIsBroken(t *testing.T) {
	for _, text := range []string{"{", `{"version":2}`, `{"version":1,"accounts":{"rtr-1":null}}`, `{"version":1,"accounts":{"rtr-1":{"resource":{"id":"rtr-2"}}}}`} {
		w := newWire(t)
		e := w.start("node-1")
		if err := os.WriteFile(e.File, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := e.look(t.Context(), w.state); err == nil || !strings.Contains(err.Error(), e.File) {
				t.Errorf("%s: %v", text, err)
			}
		}
		if left, err := os.ReadFile(e.File); err != nil || string(left) != text {
			t.Errorf("it is now %q, %v", left, err)
		}
	}
}

// It runs as the node runs it, and waits for the network.
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
	w.net.Chassis("node-1").Leave("rtr-1", 5) // nobody counts yet
	close(up)
	var sent uint64
	patience.Until(t, 30*time.Second, "four records", func() bool {
		if w.net.Chassis("node-1").Leave("rtr-1", 1) {
			sent++
		}
		n, _ := w.recorded("rtr-1")
		return n > 3
	})
	cancel()
	for range 2 {
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	if n, _ := w.recorded("rtr-1"); n > sent {
		t.Errorf("%d of %d bytes are recorded", n, sent)
	}
}
