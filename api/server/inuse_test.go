package server_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/api/server"
	"github.com/basalt-gpu/basalt/api/server/servertest"
)

// late is one server's store whose next batch can be delayed.
type late struct {
	server.Store

	mu   sync.Mutex // guards gate
	gate *gate      // nil: no batch is delayed
}

// gate delays a batch: reached is closed when it arrives, open when it may continue.
type gate struct{ reached, open chan struct{} }

func (l *late) Apply(ctx context.Context, b api.Batch) ([]api.Object, error) {
	l.mu.Lock()
	g := l.gate
	l.gate = nil
	l.mu.Unlock()
	if g != nil {
		close(g.reached)
		<-g.open
	}
	return l.Store.Apply(ctx, b)
}

func (l *late) hold() *gate {
	g := &gate{make(chan struct{}), make(chan struct{})}
	l.mu.Lock()
	l.gate = g
	l.mu.Unlock()
	return g
}

// node is one of several API servers with the same store.
type node struct {
	op    *client.API
	store *late
}

// nodes starts two more API servers on a world's store, like those of two nodes.
func (w *world) nodes() [2]node {
	var out [2]node
	for i := range out {
		l := &late{Store: w.Store}
		e := servertest.StartWith(w.t, func(o *server.Options) {
			o.Store, o.Networking = l, true
			o.NewVolumeKey = func(context.Context) (string, error) { return "wrapped", nil }
		})
		e.Token = w.Token
		out[i] = node{connect(w.t, e, w.Token), l}
	}
	return out
}

// rivals are an object that can be referred to, an action that deletes it, and one that
// adds a reference to it.
type rivals struct {
	name string
	make func(w *world, n int) string
	kill func(ctx context.Context, c *client.API, id string) error
	use  func(ctx context.Context, w *world, c *client.API, id string, n int) error
}

func pairs() []rivals {
	meta := func(w *world, n int) api.Meta { return api.Meta{Name: fmt.Sprint("x", n), Project: w.web} }
	instance := func(ctx context.Context, w *world, c *client.API, n int, change func(*api.InstanceSpec)) error {
		in := api.Instance{Meta: meta(w, n), Spec: api.InstanceSpec{Flavor: "small", Image: "debian"}}
		change(&in.Spec)
		_, err := client.Of[api.Instance](c).Create(ctx, in)
		return err
	}
	volume := func(w *world, n int) api.Volume {
		return api.Volume{Meta: meta(w, n), Spec: api.VolumeSpec{SizeBytes: 1 << 30}}
	}
	return []rivals{
		{"flavor", func(w *world, n int) string {
			return must(w.t, ret(client.Of[api.Flavor](w.op).Create(w.t.Context(), api.Flavor{Meta: api.Meta{Name: fmt.Sprint("x", n)}, Spec: api.FlavorSpec{Vcpus: 1, MemoryBytes: 1 << 30, RootBytes: 2 << 30}}))).v.Meta.ID
		}, func(ctx context.Context, c *client.API, id string) error {
			_, err := client.Of[api.Flavor](c).Delete(ctx, id)
			return err
		}, func(ctx context.Context, w *world, c *client.API, id string, n int) error {
			return instance(ctx, w, c, n, func(s *api.InstanceSpec) { s.Flavor = api.FlavorID(id) })
		}},
		{"network", func(w *world, n int) string {
			return must(w.t, ret(client.Of[api.Network](w.op).Create(w.t.Context(), api.Network{Meta: meta(w, n), Spec: api.NetworkSpec{Cidr4: fmt.Sprintf("10.%d.%d.0/24", 20+n/200, n%200)}}))).v.Meta.ID
		}, func(ctx context.Context, c *client.API, id string) error {
			_, err := client.Of[api.Network](c).Delete(ctx, id)
			return err
		}, func(ctx context.Context, w *world, c *client.API, id string, n int) error {
			_, err := client.Of[api.LoadBalancer](c).Create(ctx, api.LoadBalancer{Meta: meta(w, n), Spec: api.LoadBalancerSpec{Network: api.NetworkID(id), Protocol: api.ProtocolTCP, Port: 80}})
			return err
		}},
		{"volume", func(w *world, n int) string {
			id := must(w.t, ret(client.Of[api.Volume](w.op).Create(w.t.Context(), volume(w, n)))).v.Meta.ID
			w.status(api.KindVolume, id, api.VolumeAssignment{Node: "node-a"}, api.VolumeStatus{Phase: api.VolumeReady})
			return id
		}, func(ctx context.Context, c *client.API, id string) error {
			_, err := client.Of[api.Volume](c).Delete(ctx, id)
			return err
		}, func(ctx context.Context, w *world, c *client.API, id string, n int) error {
			_, err := client.Of[api.Snapshot](c).Create(ctx, api.Snapshot{Meta: meta(w, n), Spec: api.SnapshotSpec{Volume: api.VolumeID(id)}})
			return err
		}},
		{"project", func(w *world, n int) string {
			return must(w.t, ret(client.Of[api.Project](w.op).Create(w.t.Context(), api.Project{Meta: api.Meta{Name: fmt.Sprint("x", n), Organization: w.acme}}))).v.Meta.ID
		}, func(ctx context.Context, c *client.API, id string) error {
			_, err := client.Of[api.Project](c).Delete(ctx, id)
			return err
		}, func(ctx context.Context, w *world, c *client.API, id string, n int) error {
			v := volume(w, n)
			v.Meta.Project = id
			_, err := client.Of[api.Volume](c).Create(ctx, v)
			return err
		}},
		{"price book", func(w *world, n int) string {
			return must(w.t, ret(client.Of[api.PriceBook](w.op).Create(w.t.Context(), api.PriceBook{Meta: api.Meta{Name: fmt.Sprint("x", n)}, Spec: api.PriceBookSpec{Currency: "EUR"}}))).v.Meta.ID
		}, func(ctx context.Context, c *client.API, id string) error {
			_, err := client.Of[api.PriceBook](c).Delete(ctx, id)
			return err
		}, func(ctx context.Context, _ *world, c *client.API, id string, n int) error {
			_, err := client.Of[api.Organization](c).Create(ctx, api.Organization{Meta: api.Meta{Name: fmt.Sprint("y", n)}, Spec: api.OrganizationSpec{PriceBook: api.PriceBookID(id)}})
			return err
		}},
	}
}

// TestInUseOnTwoNodes checks the race between a server that has found an object unused
// and deletes it, and another that has found it and adds a reference, in either order
// of their writes. Exactly one is refused, and no reference dangles.
func TestInUseOnTwoNodes(t *testing.T) {
	w := newNetworkWorld(t)
	nodes := w.nodes()
	n := 0
	for _, p := range pairs() {
		for _, killFirst := range []bool{true, false} {
			n++
			id := p.make(w, n)
			ctx := t.Context()
			acts := [2]func() error{func() error { return p.kill(ctx, nodes[0].op, id) }, func() error { return p.use(ctx, w, nodes[1].op, id, n) }}
			second := 0
			if killFirst {
				second = 1
			}
			g := nodes[second].store.hold()
			done := make(chan error, 1)
			go func() { done <- acts[second]() }()
			select {
			case <-g.reached:
			case err := <-done:
				t.Fatalf("%s: the second action ended before it wrote: %v", p.name, err)
			}
			if err := acts[1-second](); err != nil {
				t.Errorf("%s: the first action was refused: %v", p.name, err)
			}
			close(g.open)
			err := <-done
			if killFirst {
				wantCode(t, p.name+": refers to what was deleted", api.CodeInvalid, err)
			} else {
				wantCode(t, p.name+": deleted what is in use", api.CodeInUse, err)
				if err != nil && !strings.Contains(err.Error(), "is in use by ") {
					t.Errorf("%s: error %v does not name what uses the object", p.name, err)
				}
			}
			w.nothingDangles()
		}
	}
}

// TestInUseAtOneMoment runs the same race repeatedly without controlling the order.
func TestInUseAtOneMoment(t *testing.T) {
	w := newNetworkWorld(t)
	nodes := w.nodes()
	deleted, used := 0, 0
	for n := range 60 {
		all := pairs()
		p := all[n%len(all)]
		id := p.make(w, 1000+n)
		errs := make([]error, 2)
		var wg sync.WaitGroup
		start := make(chan struct{})
		wg.Go(func() { <-start; errs[0] = p.kill(t.Context(), nodes[0].op, id) })
		wg.Go(func() { <-start; errs[1] = p.use(t.Context(), w, nodes[1].op, id, 1000+n) })
		close(start)
		wg.Wait()
		if (errs[0] == nil) == (errs[1] == nil) {
			t.Errorf("%s: deletion %v, reference %v; want exactly one to succeed", p.name, errs[0], errs[1])
		}
		if errs[0] == nil {
			deleted++
		} else {
			used++
		}
	}
	w.nothingDangles()
	t.Logf("%d objects were deleted, %d were referred to", deleted, used)
}

// nothingDangles checks that the targets of all holding references exist.
func (w *world) nothingDangles() {
	w.t.Helper()
	for _, kind := range []api.Kind{api.KindInstance, api.KindVolume, api.KindSnapshot, api.KindLoadBalancer, api.KindOrganization, api.KindProject} {
		page, err := w.Store.List(w.t.Context(), api.ListQuery{Kind: kind, Limit: 1000})
		if err != nil {
			w.t.Fatal(err)
		}
		for _, o := range page.Items {
			for _, x := range api.References(o) {
				if !x.Holds || x.Target.ID == "" {
					continue
				}
				if to, err := w.Store.Get(w.t.Context(), x.Target.Kind, x.Target.ID); err != nil || to.Meta.DeletedAt != nil {
					w.t.Errorf("%s %s refers at %s to %v, which does not exist: %v", kind, o.Meta.Name, x.Field, x.Target, err)
				}
			}
		}
	}
}

// TestInUseNamesHolder checks that the error names the using object for callers who may see
// it.
func TestInUseNamesHolder(t *testing.T) {
	w := newNetworkWorld(t)
	must(t, ret(w.instance(w.op, "one")))
	_, err := client.Of[api.Flavor](w.op).Delete(t.Context(), "small")
	if api.CodeOf(err) != api.CodeInUse {
		t.Fatalf("delete a flavor in use: %v, want %s", err, api.CodeInUse)
	}
	if want := "Flavor small is in use by Instance one"; !strings.Contains(err.Error(), want) {
		t.Errorf("delete a flavor in use: %v, want %q", err, want)
	}
	if strings.Contains(err.Error(), "ins-") {
		t.Errorf("delete a flavor in use: %v, want the name instead of the ID", err)
	}
}
