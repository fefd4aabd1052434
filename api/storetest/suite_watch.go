package storetest

import (
	"context"
	"fmt"
	"sync"

	"github.com/basalt-gpu/basalt/api"
)

func (t *tester) watch(since int64) <-chan api.Event {
	t.Helper()
	events, err := t.s.Watch(t.ctx, since)
	if err != nil {
		t.Fatalf("watch from %d: %v", since, err)
	}
	return events
}

func (t *tester) next(events <-chan api.Event) api.Event {
	t.Helper()
	select {
	case e, ok := <-events:
		if !ok {
			t.Fatal("the watch was closed, want an event")
		}
		return e
	case <-t.ctx.Done():
		t.Fatal("the watch delivered nothing before the time limit, want an event")
	}
	return api.Event{}
}

// snapshot reads the beginning of a watch: the objects by ID, and the revision of the
// sync.
func (t *tester) snapshot(events <-chan api.Event) (map[string]api.Object, int64) {
	t.Helper()
	objects := map[string]api.Object{}
	for {
		e := t.next(events)
		switch {
		case e.Type == api.EventSync:
			return objects, e.Revision
		case e.Type != api.EventPut || e.Revision != 0:
			t.Fatalf("snapshot contains %s at revision %d, want %s at 0", e.Type, e.Revision, api.EventPut)
		}
		objects[e.Object.Meta.ID] = e.Object
	}
}

func testWatchFromNow(t *tester) {
	o := t.must(1, flavor("flv-1", "a", 1, 0))
	events := t.watch(t.s.Revision())
	c := flavor("flv-2", "b", 1, 0)
	c.Finalizers = []string{"x"}
	made := t.must(2, c)
	removed := t.must(3, api.Command{Op: api.OpDelete, Kind: api.KindFlavor, ID: "flv-1", Expect: o.Meta.Revision})
	t.must(4, flavor("flv-2", "b", 1, made.Meta.Revision)) // changes nothing: no event
	marked := t.must(5, api.Command{Op: api.OpDelete, Kind: api.KindFlavor, ID: "flv-2", Expect: api.AnyRevision})
	gone := t.must(6, api.Command{Op: api.OpForget, Kind: api.KindFlavor, ID: "flv-2", Expect: api.AnyRevision, Finalizer: "x"})
	last := o.Meta.Revision
	for i, want := range []struct {
		typ api.EventType
		o   api.Object
	}{{api.EventPut, made}, {api.EventRemove, removed}, {api.EventPut, marked}, {api.EventRemove, gone}} {
		e := t.next(events)
		if e.Type != want.typ || e.Revision != last+1 {
			t.Errorf("event %d is %s at %d, want %s at %d", i, e.Type, e.Revision, want.typ, last+1)
		}
		if e.Type == api.EventPut && e.Revision != e.Object.Meta.Revision {
			t.Errorf("event %d of revision %d has an object of revision %d, want the same", i, e.Revision, e.Object.Meta.Revision)
		}
		last = e.Revision
		same(t, fmt.Sprintf("event %d", i), e.Object, want.o)
	}
}

func testWatchFromZero(t *tester) {
	t.must(1, flavor("flv-1", "a", 1, 0))
	t.must(2, flavor("flv-2", "b", 1, 0))
	t.must(3, flavor("flv-1", "a", 2, api.AnyRevision))
	t.must(4, api.Command{Op: api.OpDelete, Kind: api.KindFlavor, ID: "flv-2", Expect: api.AnyRevision})
	events := t.watch(0)
	objects, rev := t.snapshot(events)
	if len(objects) != 1 || rev != t.s.Revision() {
		t.Errorf("snapshot = %s at %d, want flv-1 at %d", mustJSON(t, objects), rev, t.s.Revision())
	}
	same(t, "in the snapshot", objects["flv-1"], t.get(api.KindFlavor, "flv-1"))
	o := t.must(5, flavor("flv-3", "c", 1, 0))
	e := t.next(events)
	if e.Type != api.EventPut || e.Revision != o.Meta.Revision {
		t.Errorf("event after the snapshot = %s, want a put at %d", mustJSON(t, e), o.Meta.Revision)
	}
	same(t, "after the snapshot", e.Object, o)
}

func testWatchFromFuture(t *tester) {
	t.must(1, flavor("flv-1", "a", 1, 0))
	objects, rev := t.snapshot(t.watch(t.s.Revision() + 1000))
	if len(objects) != 1 || rev != t.s.Revision() {
		t.Errorf("watch from a future revision: snapshot of %d objects at %d, want 1 at %d", len(objects), rev, t.s.Revision())
	}
}

// testWatchWithoutGaps checks that watches that start at any time, stop and resume,
// deliver every state of the store: no change is missing, repeated or out of order.
func testWatchWithoutGaps(t *tester) {
	const writers, each, watchers = 4, 25, 4
	t.must(1, flavor("flv-start", "start", 1, 0))
	end := t.s.Revision() + writers*each
	var wg, reading sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			id := fmt.Sprintf("flv-%d", w)
			for i := range each {
				if _, err := t.apply(2, flavor(id, id, int64(i+1), api.AnyRevision)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for w := range watchers {
		reading.Go(func() {
			since, synced := int64(w%2), false // half begin with a snapshot
			for since < end {
				ctx, cancel := context.WithCancel(t.ctx)
				events, err := t.s.Watch(ctx, since)
				if err != nil {
					t.Error(err)
					cancel()
					return
				}
				for n := 0; n < 10 && since < end; n++ {
					e, ok := <-events
					switch {
					case !ok:
						t.Errorf("watch %d was closed at revision %d, want it open", w, since)
						cancel()
						return
					case e.Type == api.EventSync:
						since, synced = e.Revision, true
					case e.Revision == 0:
						n-- // part of a snapshot
					case e.Revision != since+1:
						t.Errorf("watch %d (synced %v) delivered revision %d after %d, want the next", w, synced, e.Revision, since)
						cancel()
						return
					default:
						since = e.Revision
					}
				}
				cancel()
			}
		})
	}
	wg.Wait()
	reading.Wait()
}

// testWatchKinds checks that a watch of some kinds delivers no others, and that its
// sync has the store's revision.
func testWatchKinds(t *tester) {
	t.must(1, flavor("flv-1", "a", 1, 0))
	t.must(2, api.Command{Op: api.OpPutSpec, Kind: api.KindNetwork, ID: "net-1", Name: "n", Data: api.Encode(api.NetworkSpec{Cidr4: "10.0.0.0/24"})})
	at := t.s.Revision()
	events, err := t.s.WatchKinds(t.ctx, 0, api.KindNetwork, api.KindVolume)
	if err != nil {
		t.Fatal(err)
	}
	if all, synced := t.snapshot(events); len(all) != 1 || all["net-1"].Kind != api.KindNetwork || synced != at {
		t.Errorf("snapshot = %v at revision %d, want net-1 at %d", all, synced, at)
	}
	t.must(3, flavor("flv-1", "a", 2, api.AnyRevision))
	gone := t.must(4, api.Command{Op: api.OpDelete, Kind: api.KindNetwork, ID: "net-1", Expect: api.AnyRevision})
	if e := t.next(events); e.Type != api.EventRemove || e.Object.Meta.ID != "net-1" || e.Revision <= at {
		t.Errorf("next event is %s of %s at %d, want the removal of net-1 (%+v)", e.Type, e.Object.Meta.ID, e.Revision, gone.Meta)
	}
}

func testWatchEnds(t *tester) {
	ctx, cancel := context.WithCancel(t.ctx)
	events, err := t.s.Watch(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	for {
		select {
		case _, ok := <-events:
			if !ok {
				return
			}
		case <-t.ctx.Done():
			t.Fatal("the channel is open after its context ended, want it closed")
		}
	}
}

func testDeafWatcher(t *tester) {
	t.watch(0) // it is never read
	for i := range 300 {
		t.must(1, flavor("flv-1", "a", int64(i+1), api.AnyRevision))
	}
}
