package agent_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// failures counts failures. Every error has a different text, as those of networks
// and programs have.
type failures struct{ n int }

func (f *failures) next() error {
	f.n++
	return api.Errorf(api.CodeUnavailable, "no route to the server, try %d", f.n)
}

// TestFailuresAreTriedAtGrowingWaits checks that a permanent failure is retried at
// growing intervals, whatever its kind and however often the agent is restarted: it
// writes one revision per attempt and one event in all, and it succeeds as soon as
// the cause is removed.
func TestFailuresAreTriedAtGrowingWaits(t *testing.T) {
	for name, c := range map[string]struct {
		most   int // tries in ten minutes
		failed string
		begin  func(w *testCluster, h *testNode, f *failures)
		mend   func(w *testCluster, h *testNode)
		well   func(w *testCluster, h *testNode) bool
	}{
		"image": {10, "image.failed", func(w *testCluster, h *testNode, f *failures) {
			h.local.Fault(failing(f, "ImportImage"))
			w.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindImage, ID: "img-2", Name: "x", Organization: "org-1", Finalizers: []string{api.FinalizerAgent},
				Data: api.Encode(api.ImageSpec{Format: "raw", URL: "https://images.example/x"})})
			w.assign(api.KindImage, "img-2", api.ImageAssignment{Node: h.id})
		}, func(w *testCluster, h *testNode) {
			h.local.Serve("https://images.example/x", raw())
			h.local.Fault(nil)
		}, func(w *testCluster, _ *testNode) bool { return w.image("img-2").Status.Phase == api.ImageReady }},
		"image whose node begins before it is assigned": {10, "image.failed", func(w *testCluster, h *testNode, f *failures) {
			h.local.Fault(failing(f, "ImportImage"))
			w.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindImage, ID: "img-2", Name: "x", Organization: "org-1", Finalizers: []string{api.FinalizerAgent},
				Data: api.Encode(api.ImageSpec{Format: "raw", URL: "https://images.example/x"})})
			w.until("the first attempt failed", func() bool { return w.image("img-2").Status.Phase == api.ImageFailed })
			w.assign(api.KindImage, "img-2", api.ImageAssignment{Node: h.id})
			w.pass(time.Second)
		}, func(w *testCluster, h *testNode) {
			h.local.Serve("https://images.example/x", raw())
			h.local.Fault(nil)
		}, func(w *testCluster, _ *testNode) bool { return w.image("img-2").Status.Phase == api.ImageReady }},
		"volume": {30, "", func(w *testCluster, h *testNode, f *failures) {
			h.local.Fault(failing(f, "CreateVolume"))
			w.volume(h, "vol-2", api.PoolLocal, nil)
		}, func(_ *testCluster, h *testNode) { h.local.Fault(nil) },
			func(w *testCluster, _ *testNode) bool { return w.vol("vol-2").Status.Phase == api.VolumeReady }},
		"volume that is deleted": {30, "", func(w *testCluster, h *testNode, f *failures) {
			w.volume(h, "vol-2", api.PoolLocal, nil)
			w.ready("vol-2")
			h.local.Fault(failing(f, "DeleteVolume"))
			w.apply(api.Command{Op: api.OpDelete, Kind: api.KindVolume, ID: "vol-2", Expect: api.AnyRevision})
		}, func(_ *testCluster, h *testNode) { h.local.Fault(nil) },
			func(w *testCluster, _ *testNode) bool {
				_, there := read[api.Volume](w, api.KindVolume, "vol-2")
				return !there
			}},
		"snapshot": {30, "snapshot.failed", func(w *testCluster, h *testNode, f *failures) {
			w.volume(h, "vol-2", api.PoolLocal, nil)
			w.ready("vol-2")
			h.local.Fault(failing(f, "CreateSnapshot"))
			w.snapshot(h, "snap-1", "vol-2")
		}, func(_ *testCluster, h *testNode) { h.local.Fault(nil) },
			func(w *testCluster, _ *testNode) bool { return w.snap("snap-1").Status.Phase == api.SnapshotReady }},
		"instance": {30, "", func(w *testCluster, h *testNode, f *failures) {
			w.upload(h, "img-1")
			h.machines.Fault(func(op string, _ api.InstanceID) error {
				if op == "Define" {
					return f.next()
				}
				return nil
			})
			w.create(h, "ins-1", api.PoolLocal, nil)
			w.pass(2 * time.Second)
		}, func(_ *testCluster, h *testNode) { h.machines.Fault(nil) }, func(w *testCluster, h *testNode) bool { return w.runsOn("ins-1", h) }},
	} {
		t.Run(name, func(t *testing.T) {
			w, f := newTestCluster(t, 1, false), &failures{}
			h := w.nodes[0]
			c.begin(w, h, f)
			w.until("the first attempt", func() bool { return f.n > 0 })
			events, first, tries := len(failedEvents(t, w, c.failed)), w.store.Revision(), f.n
			for range 10 {
				w.pass(time.Minute)
				h.kill()
				h.start()
			}
			reports := 2 * 10 // of the node at each of ten starts
			if n, more := int(w.store.Revision()-first), f.n-tries; n > more+reports || more > c.most || more < 3 {
				t.Errorf("ten minutes made %d revisions and %d attempts; want 3 to %d attempts, a revision each, and %d others", n, more, c.most, reports)
			}
			if n := len(failedEvents(t, w, c.failed)); c.failed != "" && (events != 1 || n != 1) {
				t.Errorf("%d events %s at first and %d after ten minutes, want 1", events, c.failed, n)
			}
			c.mend(w, h)
			w.until("success after the cause was removed", func() bool { w.pass(20 * time.Second); return c.well(w, h) })
		})
	}
}

func failing(f *failures, verb string) func(op, id string) error {
	return func(op, _ string) error {
		if op == verb {
			return f.next()
		}
		return nil
	}
}

func failedEvents(t *testing.T, w *testCluster, typ string) (all []api.WebhookEvent) {
	t.Helper()
	p, err := w.store.Events(context.Background(), api.EventQuery{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range p.Items {
		if e.Type == typ {
			all = append(all, e)
		}
	}
	return all
}

// TestRetriesOfAnother checks that a changed object is tried at once, and that a
// permanent failure is not retried.
func TestRetriesOfAnother(t *testing.T) {
	w, f := newTestCluster(t, 1, false), &failures{}
	h := w.nodes[0]
	h.local.Fault(failing(f, "CreateVolume"))
	w.volume(h, "vol-2", api.PoolLocal, nil)
	w.pass(5 * time.Minute)
	if st := w.vol("vol-2").Status; st.Phase != api.VolumeCreating || !strings.Contains(st.LastError, "no route to the server") {
		t.Errorf("status of a volume whose storage does not answer = %+v, want %s with the error", st, api.VolumeCreating)
	}
	h.local.Fault(nil)
	w.change("vol-2", func(s *api.VolumeSpec) { s.SizeBytes *= 2 })
	w.turn()
	if st := w.vol("vol-2").Status; st.Phase != api.VolumeReady || st.Retry != nil || st.LastError != "" {
		t.Errorf("status of the changed volume = %+v, want %s without error and retry", st, api.VolumeReady)
	}

	w.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindImage, ID: "img-2", Name: "x", Data: api.Encode(api.ImageSpec{Format: "raw", URL: "https://images.example/none"})})
	w.assign(api.KindImage, "img-2", api.ImageAssignment{Node: h.id}) // the fake reports this URL as invalid
	w.until("img-2 failed", func() bool { return w.image("img-2").Status.Phase == api.ImageFailed })
	was := w.image("img-2").Meta.Revision
	w.pass(time.Hour)
	h.kill()
	h.start()
	w.pass(time.Hour)
	if img := w.image("img-2"); img.Meta.Revision != was || img.Status.Retry == nil || img.Status.Retry.NextAt != nil || !strings.Contains(img.Status.LastError, "no image exists at") {
		t.Errorf("image at revision %d with status %+v, want revision %d and no further attempt", img.Meta.Revision, img.Status, was)
	}
}
