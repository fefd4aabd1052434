package watchcache_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/memstore"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/appliance/controlplane/watchcache"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

var kinds = []objects.Kind{objects.Of[api.Flavor](), objects.Of[api.Image](), objects.Of[api.Flavor]()}

// flaky is a store whose watches break after some events. It records the watches.
type flaky struct {
	*memstore.Store
	breakAfter func() int // events of the next watch; negative for a watch that does not break

	mu      sync.Mutex
	watches []int64 // the revisions that they started from
}

func (u *flaky) WatchKinds(ctx context.Context, since int64, kinds ...api.Kind) (<-chan api.Event, error) {
	u.mu.Lock()
	u.watches = append(u.watches, since)
	n := u.breakAfter()
	u.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	events, err := u.Store.WatchKinds(ctx, since, kinds...)
	if err != nil {
		cancel()
		return nil, err
	}
	out := make(chan api.Event)
	go func() {
		defer close(out)
		defer cancel()
		for ; n != 0; n-- {
			e, ok := <-events
			if !ok {
				return
			}
			select {
			case out <- e:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, nil
}

func run(t *testing.T, s objects.Watcher) (context.Context, *watchcache.Cache) {
	ctx, cancel := patience.Context(t.Context(), time.Minute)
	c := watchcache.New(s, slog.New(slog.DiscardHandler), kinds...)
	done := make(chan struct{})
	go func() { _ = c.Run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	return ctx, c
}

func flavor(id string, vcpus int64) api.Command {
	return api.Command{Op: api.OpPutSpec, Kind: api.KindFlavor, ID: id, Name: id, Expect: api.AnyRevision,
		Data: api.Encode(api.FlavorSpec{Vcpus: vcpus, MemoryBytes: 1 << 30})}
}

func apply(t *testing.T, s *memstore.Store, cmds ...api.Command) {
	t.Helper()
	if _, err := s.Apply(t.Context(), api.Batch{At: time.Now().UTC(), Commands: cmds}); err != nil {
		t.Fatal(err)
	}
}

// until waits for a view for which ok returns true.
func until(ctx context.Context, t *testing.T, s *watchcache.Subscription, what string, ok func(flavors map[string]api.Flavor) bool) {
	t.Helper()
	for {
		select {
		case <-s.Ready():
		case <-ctx.Done():
			t.Fatalf("%s: not in the view before the context ended", what)
		}
		if ok(objects.Map[api.Flavor](s.View())) {
			return
		}
	}
}

// A view contains all objects of the subscription's kinds and does not change until the
// next call of View.
func TestViewStaysAsItIs(t *testing.T) {
	s := memstore.New()
	apply(t, s, flavor("flv-1", 1))
	apply(t, s, api.Command{Op: api.OpPutSpec, Kind: api.KindNetwork, ID: "net-1", Name: "n", Data: api.Encode(api.NetworkSpec{Cidr4: "10.0.0.0/24"})})
	ctx, c := run(t, s)
	early, late := c.Subscribe(kinds), c.Subscribe(kinds)
	defer early.Close()
	defer late.Close()
	<-early.Ready()
	before := early.View()
	apply(t, s, flavor("flv-1", 2))
	apply(t, s, flavor("flv-2", 3))
	until(ctx, t, late, "the changes", func(f map[string]api.Flavor) bool { return len(f) == 2 && f["flv-1"].Spec.Vcpus == 2 })
	if got := objects.Map[api.Flavor](before); len(got) != 1 || got["flv-1"].Spec.Vcpus != 1 {
		t.Errorf("flavors in the view from before the changes = %v, want flv-1 with 1 vCPU", got)
	}
	if got := objects.Map[api.Flavor](early.View()); len(got) != 2 || got["flv-1"].Spec.Vcpus != 2 {
		t.Errorf("flavors in the next view = %v, want 2, flv-1 with 2 vCPUs", got)
	}
}

// A follower receives every change although watches break: applied in order, the
// changes produce the store's objects.
func TestFollowersMissNothing(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 1))
			s := &flaky{Store: memstore.New(), breakAfter: func() int { return r.IntN(40) }}
			apply(t, s.Store, flavor("flv-0", 1), flavor("flv-1", 1))
			ctx, c := run(t, s)
			received := make(chan map[string]api.Flavor)
			go func() {
				known := map[string]api.Flavor{}
				_ = c.Follow(ctx, kinds, func(n watchcache.Update) {
					if n.All {
						clear(known)
					}
					for _, ch := range n.Changes {
						if ch.Now == nil {
							delete(known, ch.ID)
						} else {
							known[ch.ID] = ch.Now.(api.Flavor)
						}
					}
					copied := map[string]api.Flavor{}
					for id, f := range known {
						copied[id] = f
					}
					select {
					case received <- copied:
					case <-ctx.Done():
					}
				})
			}()
			write := rand.New(rand.NewPCG(seed, 2))
			for i := range 300 {
				id := fmt.Sprint("flv-", write.IntN(20))
				if _, err := s.Get(ctx, api.KindFlavor, id); err == nil && write.IntN(3) == 0 {
					apply(t, s.Store, api.Command{Op: api.OpDelete, Kind: api.KindFlavor, ID: id, Expect: api.AnyRevision})
				} else {
					apply(t, s.Store, flavor(id, int64(i+1)))
				}
			}
			s.mu.Lock()
			s.breakAfter = func() int { return -1 }
			s.mu.Unlock()
			want, err := objects.Read(ctx, s, kinds...)
			if err != nil {
				t.Fatal(err)
			}
			for got := map[string]api.Flavor(nil); !cmp.Equal(got, objects.Map[api.Flavor](want)); {
				select {
				case got = <-received:
				case <-ctx.Done():
					t.Fatalf("the follower's objects differ from the store's (-want +got):\n%s", cmp.Diff(objects.Map[api.Flavor](want), got))
				}
			}
		})
	}
}

// A watch that breaks continues from the last revision.
func TestResumes(t *testing.T) {
	s := &flaky{Store: memstore.New(), breakAfter: func() int { return 2 }} // one object and the sync, or two changes
	apply(t, s.Store, flavor("flv-1", 1))
	ctx, c := run(t, s)
	changes := c.Subscribe(kinds)
	defer changes.Close()
	until(ctx, t, changes, "the first", func(f map[string]api.Flavor) bool { return len(f) == 1 })
	for i := range int64(5) {
		apply(t, s.Store, flavor("flv-1", i+2))
	}
	until(ctx, t, changes, "the last change", func(f map[string]api.Flavor) bool { return f["flv-1"].Spec.Vcpus == 6 })
	s.mu.Lock()
	defer s.mu.Unlock()
	if want := []int64{0, 1, 3, 5}; !cmp.Equal(s.watches, want) {
		t.Errorf("watches started at revisions %v, want %v", s.watches, want)
	}
}

// Only changes that match a subscriber's filters wake it.
func TestFilters(t *testing.T) {
	s := memstore.New()
	ctx, c := run(t, s)
	image := api.Command{Op: api.OpPutSpec, Kind: api.KindImage, ID: "img-1", Name: "i", Data: api.Encode(api.ImageSpec{Format: "raw"})}
	fewer := c.Subscribe(kinds, watchcache.When(kinds[0], func(was, now api.Flavor) bool { return now.Spec.Vcpus < was.Spec.Vcpus }))
	defer fewer.Close()
	all := c.Subscribe(kinds)
	defer all.Close()
	steps := []struct {
		what    string
		command api.Command
		wakes   bool
	}{
		{"another kind", image, false},
		{"it comes", flavor("flv-1", 4), true},
		{"it gets more", flavor("flv-1", 5), false},
		{"it gets fewer", flavor("flv-1", 3), true},
		{"it goes", api.Command{Op: api.OpDelete, Kind: api.KindFlavor, ID: "flv-1", Expect: api.AnyRevision}, true},
	}
	wait := func(what string, s *watchcache.Subscription) {
		t.Helper()
		select {
		case <-s.Ready():
		case <-ctx.Done():
			t.Fatalf("%s: the subscriber was not woken", what)
		}
	}
	wait("the beginning", all)
	wait("the beginning", fewer)
	for _, step := range steps {
		apply(t, s, step.command)
		wait(step.what, all)
		all.View() // after all subscribers were notified
		select {
		case <-fewer.Ready():
			if !step.wakes {
				t.Errorf("%s: woke a subscriber without a filter for it", step.what)
			}
		default:
			if step.wakes {
				t.Errorf("%s: did not wake a subscriber with a filter for it", step.what)
			}
		}
	}
}

// A step that takes long is not repeated before as much time has passed without it.
func TestLongStepsRest(t *testing.T) {
	ctx, c := run(t, memstore.New())
	ctx, cancel := context.WithCancel(ctx)
	const long = 30 * time.Millisecond
	var ended time.Time
	steps := 0
	_ = watchcache.Run(ctx, c, kinds, func(context.Context, *objects.Set) time.Duration {
		if rest := time.Since(ended); steps > 0 && rest < long {
			t.Errorf("rest before step %d = %v, want at least %v", steps, rest, long)
		}
		if steps++; steps == 3 {
			cancel()
		}
		time.Sleep(long)
		ended = time.Now()
		return 0
	})
}
