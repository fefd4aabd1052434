package agent_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

func (h *house) has(id api.ImageID) bool {
	_, err := h.local.Image(context.Background(), id)
	return err == nil
}

func (w *town) image(id string) api.Image {
	img, _ := read[api.Image](w, api.KindImage, id)
	return img
}

func TestANodeFetchesTheImageThatItNeeds(t *testing.T) {
	w := newTown(t, 3, false)
	a, b, c := w.houses[0], w.houses[1], w.houses[2]
	w.node(c, api.NodeAssignment{State: api.NodeReady, Voter: true})
	w.upload(a, "img-1")
	w.pass(10 * time.Second)
	if !c.has("img-1") || b.has("img-1") {
		t.Fatalf("has it: the voter %t, another %t", c.has("img-1"), b.has("img-1"))
	}
	w.report()
	n, _ := read[api.Node](w, api.KindNode, string(c.id))
	if !slices.Contains(n.Status.Images, "img-1") || len(n.Status.Pools) != 1 || n.Status.Pools[0].Name != api.PoolLocal || n.Status.BootID != "boot-1" {
		t.Errorf("node status %+v", n.Status)
	}
	a.die() // takes no image with it
	w.node(a, api.NodeAssignment{State: api.NodeLost, Epoch: 1})
	w.create(b, "ins-1", api.PoolLocal, nil)
	w.until("runs on b", func() bool { return w.runsOn("ins-1", b) })

	// Deleted: everywhere, and by whoever is left.
	w.apply(api.Command{Op: api.OpDelete, Kind: api.KindInstance, ID: "ins-1", Expect: api.AnyRevision},
		api.Command{Op: api.OpDelete, Kind: api.KindVolume, ID: "vol-ins-1", Expect: api.AnyRevision})
	w.until("no instance", func() bool { _, there := w.instance("ins-1"); return !there })
	w.until("no volume", func() bool { _, there := read[api.Volume](w, api.KindVolume, "vol-ins-1"); return !there })
	w.apply(api.Command{Op: api.OpDelete, Kind: api.KindImage, ID: "img-1", Expect: api.AnyRevision})
	w.until("the image is gone", func() bool { _, there := read[api.Image](w, api.KindImage, "img-1"); return !there })
	w.until("and its copies", func() bool {
		for _, h := range []*house{b, c} {
			h.try(h.Sweep(h.ctx))
		}
		return !b.has("img-1") && !c.has("img-1")
	})
	a.lease = true
	a.start() // and the one that was away, which cannot know that it was ever there
	if w.sweeps(6 * 24 * time.Hour); !a.has("img-1") {
		t.Error("what the store has perhaps forgotten did not stay")
	}
	if w.sweeps(2 * 24 * time.Hour); a.has("img-1") {
		t.Error("it stays for ever")
	}
}

func TestOnlyTheAssignedNodeImports(t *testing.T) {
	w := newTown(t, 2, true)
	a, b := w.houses[0], w.houses[1]
	w.shared.Serve("https://images.example/debian", raw())
	w.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindImage, ID: "img-1", Name: "debian", Finalizers: []string{api.FinalizerAgent},
		Data: api.Encode(api.ImageSpec{Format: "raw", URL: "https://images.example/debian"})})
	w.pass(10 * time.Second)
	if p := w.image("img-1").Status.Phase; p == api.ImageReady || p == api.ImageImporting {
		t.Fatalf("imported by nobody in particular: %s", p)
	}
	w.assign(api.KindImage, "img-1", api.ImageAssignment{Node: b.id})
	w.until("ready", func() bool { return w.image("img-1").Status.Phase == api.ImageReady })
	if st := w.image("img-1").Status; st.Node != b.id || a.has("img-1") || b.has("img-1") {
		t.Errorf("status %+v; in the local pools: %t %t", st, a.has("img-1"), b.has("img-1"))
	}
	// A volume of a's own pool: from the shared pool into it.
	w.create(a, "ins-1", api.PoolLocal, nil)
	w.until("runs", func() bool { return w.runsOn("ins-1", a) && a.has("img-1") })
}

// An upload that ended with its node must be sent again; others' uploads are
// left alone.
func TestAnUploadIsTheNodesThatTakesIt(t *testing.T) {
	w := newTown(t, 2, false)
	a, b := w.houses[0], w.houses[1]
	w.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindImage, ID: "img-1", Name: "x", Data: api.Encode(api.ImageSpec{Format: "raw"})})
	w.turn()
	w.apply(api.Command{Op: api.OpReport, Kind: api.KindImage, ID: "img-1", Expect: api.AnyRevision,
		Data: api.Encode(api.ImageStatus{Phase: api.ImageImporting, Node: b.id, ProgressBytes: 5})})
	b.kill()
	w.pass(10 * time.Second)
	if st := w.image("img-1").Status; st.Phase != api.ImageImporting {
		t.Fatalf("a says %+v of b's upload", st)
	}
	if err := a.Agent().PutImage(a.ctx, "img-1", strings.NewReader("x")); api.CodeOf(err) != api.CodeState {
		t.Errorf("a second upload: %v", err)
	}
	w.node(b, api.NodeAssignment{State: api.NodeLost, Epoch: 1})
	w.until("pending again", func() bool { return w.image("img-1").Status.Phase == api.ImagePending })
}

// A shared pool is swept of what no object names, by one node, and not of what
// somebody may be making.
func TestASharedPoolIsSweptWithCare(t *testing.T) {
	w := newTown(t, 2, true)
	a, b := w.houses[0], w.houses[1]
	w.node(b, api.NodeAssignment{State: api.NodeReady, Voter: true})
	w.upload(a, "img-1")
	w.create(b, "ins-1", api.PoolShared, nil)
	w.until("runs", func() bool { return w.runsOn("ins-1", b) })
	w.deletedWithoutItsNode("vol-0000")
	if _, err := a.shared.CreateVolume(context.Background(), volumeOf("vol-0000")); err != nil {
		t.Fatal(err) // by a node that did not hear of it
	}
	there := func(id api.VolumeID) bool { _, err := a.shared.Volume(context.Background(), id); return err == nil }
	sweep := func() {
		for _, h := range w.houses {
			if err := h.Sweep(h.ctx); err != nil {
				t.Error(err)
			}
		}
	}
	sweep()
	if !there("vol-0000") {
		t.Error("a young one was removed")
	}
	w.pass(11 * time.Minute)
	if err := a.Sweep(a.ctx); err != nil || !there("vol-0000") {
		t.Errorf("removed by the one that is not on duty: %v", err)
	}
	sweep()
	if there("vol-0000") || !there("vol-ins-1") {
		t.Errorf("there: the orphan %t, the other's %t", there("vol-0000"), there("vol-ins-1"))
	}
}

// Whoever is on duty says of a new image that it waits for its bytes; on old
// news, when another node has been sent them meanwhile.
func TestAnUploadIsNotForgottenOnOldNews(t *testing.T) {
	for i := range 2 { // either may be on duty
		w := newTown(t, 2, false)
		slow, quick := w.houses[i], w.houses[1-i]
		w.turn()
		w.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindImage, ID: "img-1", Name: "x", Data: api.Encode(api.ImageSpec{Format: "raw"})})
		slow.hear()
		slow.deaf = true
		quick.hear()
		if err := quick.Agent().PutImage(quick.ctx, "img-1", bytes.NewReader(raw())); err != nil {
			t.Fatal(err)
		}
		w.turn()
		slow.deaf = false
		w.turn()
		if st := w.image("img-1").Status; st.Phase != api.ImageReady || st.Node != quick.id {
			t.Errorf("%+v, and %s has it", st, quick.id)
		}
	}
}
