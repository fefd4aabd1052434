package agent_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// failures counts what fails: every error has another text, as those of the
// network and of programs have.
type failures struct{ n int }

func (f *failures) next() error {
	f.n++
	return api.Errorf(api.CodeUnavailable, "no route to the server, try %d", f.n)
}

// What fails for ever is tried at growing waits, whatever kind it is of and
// however often its agent starts anew: it makes a revision a try, one event in
// all, and it works as soon as what was wrong is right.
func TestFailuresAreTriedAtGrowingWaits(t *testing.T) {
	for name, c := range map[string]struct {
		most   int // tries in ten minutes
		failed string
		begin  func(w *town, h *house, f *failures)
		mend   func(w *town, h *house)
		well   func(w *town, h *house) bool
	}{
		"image": {10, "image.failed", func(w *town, h *house, f *failures) {
			h.local.Fault(failing(f, "ImportImage"))
			w.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindImage, ID: "img-2", Name: "x", Organization: "org-1", Finalizers: []string{api.FinalizerAgent},
				Data: api.Encode(api.ImageSpec{Format: "raw", URL: "https://images.example/x"})})
			w.assign(api.KindImage, "img-2", api.ImageAssignment{Node: h.id})
		}, func(w *town, h *house) {
			h.local.Serve("https://images.example/x", raw())
			h.local.Fault(nil)
		}, func(w *town, _ *house) bool { return w.image("img-2").Status.Phase == api.ImageReady }},
		"image whose node begins before it is assigned": {10, "image.failed", func(w *town, h *house, f *failures) {
			h.local.Fault(failing(f, "ImportImage"))
			w.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindImage, ID: "img-2", Name: "x", Organization: "org-1", Finalizers: []string{api.FinalizerAgent},
				Data: api.Encode(api.ImageSpec{Format: "raw", URL: "https://images.example/x"})})
			w.until("tried", func() bool { return w.image("img-2").Status.Phase == api.ImageFailed })
			w.assign(api.KindImage, "img-2", api.ImageAssignment{Node: h.id})
			w.pass(time.Second)
		}, func(w *town, h *house) {
			h.local.Serve("https://images.example/x", raw())
			h.local.Fault(nil)
		}, func(w *town, _ *house) bool { return w.image("img-2").Status.Phase == api.ImageReady }},
		"volume": {30, "", func(w *town, h *house, f *failures) {
			h.local.Fault(failing(f, "CreateVolume"))
			w.volume(h, "vol-2", api.PoolLocal, nil)
		}, func(_ *town, h *house) { h.local.Fault(nil) },
			func(w *town, _ *house) bool { return w.vol("vol-2").Status.Phase == api.VolumeReady }},
		"volume that is deleted": {30, "", func(w *town, h *house, f *failures) {
			w.volume(h, "vol-2", api.PoolLocal, nil)
			w.ready("vol-2")
			h.local.Fault(failing(f, "DeleteVolume"))
			w.apply(api.Command{Op: api.OpDelete, Kind: api.KindVolume, ID: "vol-2", Expect: api.AnyRevision})
		}, func(_ *town, h *house) { h.local.Fault(nil) },
			func(w *town, _ *house) bool {
				_, there := read[api.Volume](w, api.KindVolume, "vol-2")
				return !there
			}},
		"snapshot": {30, "snapshot.failed", func(w *town, h *house, f *failures) {
			w.volume(h, "vol-2", api.PoolLocal, nil)
			w.ready("vol-2")
			h.local.Fault(failing(f, "CreateSnapshot"))
			w.snapshot(h, "snap-1", "vol-2")
		}, func(_ *town, h *house) { h.local.Fault(nil) },
			func(w *town, _ *house) bool { return w.snap("snap-1").Status.Phase == api.SnapshotReady }},
		"instance": {30, "", func(w *town, h *house, f *failures) {
			w.upload(h, "img-1")
			h.machines.Fault(func(op string, _ api.InstanceID) error {
				if op == "Define" {
					return f.next()
				}
				return nil
			})
			w.create(h, "ins-1", api.PoolLocal, nil)
			w.pass(2 * time.Second)
		}, func(_ *town, h *house) { h.machines.Fault(nil) }, func(w *town, h *house) bool { return w.runsOn("ins-1", h) }},
	} {
		t.Run(name, func(t *testing.T) {
			w, f := newTown(t, 1, false), &failures{}
			h := w.houses[0]
			c.begin(w, h, f)
			w.until("tried", func() bool { return f.n > 0 })
			events, first, tries := len(failedEvents(t, w, c.failed)), w.store.Revision(), f.n
			for range 10 {
				w.pass(time.Minute)
				h.kill()
				h.start()
			}
			reports := 2 * 10 // of a node that starts
			if n, more := int(w.store.Revision()-first), f.n-tries; n > more+reports || more > c.most || more < 3 {
				t.Errorf("ten minutes made %d revisions and %d tries; want 3 to %d tries, a revision each, and %d others", n, more, c.most, reports)
			}
			if n := len(failedEvents(t, w, c.failed)); c.failed != "" && (events != 1 || n != 1) {
				t.Errorf("%d events %s at first and %d later, want 1", events, c.failed, n)
			}
			c.mend(w, h)
			w.until("works", func() bool { w.pass(20 * time.Second); return c.well(w, h) })
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

func failedEvents(t *testing.T, w *town, typ string) (all []api.WebhookEvent) {
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

// What was changed, and what would fail again, does not wait and is not tried.
func TestRetriesOfAnother(t *testing.T) {
	w, f := newTown(t, 1, false), &failures{}
	h := w.houses[0]
	h.local.Fault(failing(f, "CreateVolume"))
	w.volume(h, "vol-2", api.PoolLocal, nil)
	w.pass(5 * time.Minute)
	if st := w.vol("vol-2").Status; st.Phase != api.VolumeCreating || !strings.Contains(st.LastError, "no route to the server") {
		t.Errorf("a volume whose storage does not answer for a while: %+v", st)
	}
	h.local.Fault(nil)
	w.change("vol-2", func(s *api.VolumeSpec) { s.SizeBytes *= 2 })
	w.turn()
	if st := w.vol("vol-2").Status; st.Phase != api.VolumeReady || st.Retry != nil || st.LastError != "" {
		t.Errorf("a changed volume waits: %+v", st)
	}

	w.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindImage, ID: "img-2", Name: "x", Data: api.Encode(api.ImageSpec{Format: "raw", URL: "https://images.example/none"})})
	w.assign(api.KindImage, "img-2", api.ImageAssignment{Node: h.id}) // which the fake says is invalid
	w.until("fails", func() bool { return w.image("img-2").Status.Phase == api.ImageFailed })
	was := w.image("img-2").Meta.Revision
	w.pass(time.Hour)
	h.kill()
	h.start()
	w.pass(time.Hour)
	if img := w.image("img-2"); img.Meta.Revision != was || img.Status.Retry == nil || img.Status.Retry.NextAt != nil || !strings.Contains(img.Status.LastError, "no image exists at") {
		t.Errorf("an import that cannot work was tried again: %+v", img.Status)
	}
}
