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

func (h *testNode) has(id api.ImageID) bool {
	_, err := h.local.Image(context.Background(), id)
	return err == nil
}

func (w *testCluster) image(id string) api.Image {
	img, _ := read[api.Image](w, api.KindImage, id)
	return img
}

func TestNodeFetchesImage(t *testing.T) {
	w := newTestCluster(t, 3, false)
	a, b, c := w.nodes[0], w.nodes[1], w.nodes[2]
	w.node(c, api.NodeAssignment{State: api.NodeReady, Voter: true})
	w.upload(a, "img-1")
	w.pass(10 * time.Second)
	if !c.has("img-1") || b.has("img-1") {
		t.Fatalf("image copied to the voter: %t, to a node that is not one: %t; want true and false", c.has("img-1"), b.has("img-1"))
	}
	w.report()
	n, _ := read[api.Node](w, api.KindNode, string(c.id))
	if !slices.Contains(n.Status.Images, "img-1") || len(n.Status.Pools) != 1 || n.Status.Pools[0].Name != api.PoolLocal || n.Status.BootID != "boot-1" {
		t.Errorf("status of the voter = %+v, want img-1, the local pool and boot-1", n.Status)
	}
	a.die() // the voter still has a copy of the image
	w.node(a, api.NodeAssignment{State: api.NodeLost, Epoch: 1})
	w.create(b, "ins-1", api.PoolLocal, nil)
	w.until("ins-1 runs on b", func() bool { return w.runsOn("ins-1", b) })

	// The image is deleted on all remaining nodes, and its object by one of them.
	w.apply(api.Command{Op: api.OpDelete, Kind: api.KindInstance, ID: "ins-1", Expect: api.AnyRevision},
		api.Command{Op: api.OpDelete, Kind: api.KindVolume, ID: "vol-ins-1", Expect: api.AnyRevision})
	w.until("ins-1 removed", func() bool { _, there := w.instance("ins-1"); return !there })
	w.until("the root volume removed", func() bool { _, there := read[api.Volume](w, api.KindVolume, "vol-ins-1"); return !there })
	w.apply(api.Command{Op: api.OpDelete, Kind: api.KindImage, ID: "img-1", Expect: api.AnyRevision})
	w.until("img-1 removed from the store", func() bool { _, there := read[api.Image](w, api.KindImage, "img-1"); return !there })
	w.until("the copies of img-1 deleted on b and c", func() bool {
		for _, h := range []*testNode{b, c} {
			h.try(h.Sweep(h.ctx))
		}
		return !b.has("img-1") && !c.has("img-1")
	})
	a.lease = true
	a.start() // a was down and did not see that the image was removed
	if w.sweeps(6 * 24 * time.Hour); !a.has("img-1") {
		t.Error("a deleted img-1 within six days, want it kept: the store may have lost its object")
	}
	if w.sweeps(2 * 24 * time.Hour); a.has("img-1") {
		t.Error("a still has img-1 after eight days, want it deleted after seven")
	}
}

func TestOnlyTheAssignedNodeImports(t *testing.T) {
	w := newTestCluster(t, 2, true)
	a, b := w.nodes[0], w.nodes[1]
	w.shared.Serve("https://images.example/debian", raw())
	w.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindImage, ID: "img-1", Name: "debian", Finalizers: []string{api.FinalizerAgent},
		Data: api.Encode(api.ImageSpec{Format: "raw", URL: "https://images.example/debian"})})
	w.pass(10 * time.Second)
	if p := w.image("img-1").Status.Phase; p == api.ImageReady || p == api.ImageImporting {
		t.Fatalf("phase of an unassigned image = %s, want it not imported", p)
	}
	w.assign(api.KindImage, "img-1", api.ImageAssignment{Node: b.id})
	w.until("img-1 ready", func() bool { return w.image("img-1").Status.Phase == api.ImageReady })
	if st := w.image("img-1").Status; st.Node != b.id || a.has("img-1") || b.has("img-1") {
		t.Errorf("status of img-1 = %+v, want it imported by b; in the local pools of a and b: %t, %t, want neither", st, a.has("img-1"), b.has("img-1"))
	}
	// A volume in a's local pool needs the image: it is copied from the shared
	// pool.
	w.create(a, "ins-1", api.PoolLocal, nil)
	w.until("ins-1 runs and a has the image", func() bool { return w.runsOn("ins-1", a) && a.has("img-1") })
}

// TestUploadBelongsToReceivingNode checks that an upload which ended with its node
// is reset to pending, and that other nodes' uploads are left alone.
func TestUploadBelongsToReceivingNode(t *testing.T) {
	w := newTestCluster(t, 2, false)
	a, b := w.nodes[0], w.nodes[1]
	w.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindImage, ID: "img-1", Name: "x", Data: api.Encode(api.ImageSpec{Format: "raw"})})
	w.turn()
	w.apply(api.Command{Op: api.OpReport, Kind: api.KindImage, ID: "img-1", Expect: api.AnyRevision,
		Data: api.Encode(api.ImageStatus{Phase: api.ImageImporting, Node: b.id, ProgressBytes: 5})})
	b.kill()
	w.pass(10 * time.Second)
	if st := w.image("img-1").Status; st.Phase != api.ImageImporting {
		t.Fatalf("status of b's upload while b is not lost = %+v, want it importing", st)
	}
	if err := a.Agent().PutImage(a.ctx, "img-1", strings.NewReader("x")); api.CodeOf(err) != api.CodeState {
		t.Errorf("second upload: error %v, want code %s", err, api.CodeState)
	}
	w.node(b, api.NodeAssignment{State: api.NodeLost, Epoch: 1})
	w.until("img-1 pending again", func() bool { return w.image("img-1").Status.Phase == api.ImagePending })
}

// TestSharedPoolSweep checks that one node sweeps from a shared pool
// what no object names, and not what another node may be creating.
func TestSharedPoolSweep(t *testing.T) {
	w := newTestCluster(t, 2, true)
	a, b := w.nodes[0], w.nodes[1]
	w.node(b, api.NodeAssignment{State: api.NodeReady, Voter: true})
	w.upload(a, "img-1")
	w.create(b, "ins-1", api.PoolShared, nil)
	w.until("ins-1 runs", func() bool { return w.runsOn("ins-1", b) })
	w.deletedWithoutItsNode("vol-0000")
	if _, err := a.shared.CreateVolume(context.Background(), volumeOf("vol-0000")); err != nil {
		t.Fatal(err) // created by a node that did not see the deletion
	}
	there := func(id api.VolumeID) bool { _, err := a.shared.Volume(context.Background(), id); return err == nil }
	sweep := func() {
		for _, h := range w.nodes {
			if err := h.Sweep(h.ctx); err != nil {
				t.Error(err)
			}
		}
	}
	sweep()
	if !there("vol-0000") {
		t.Error("the sweep removed a new volume, want it kept for ten minutes")
	}
	w.pass(11 * time.Minute)
	if err := a.Sweep(a.ctx); err != nil || !there("vol-0000") {
		t.Errorf("sweep by a, which is not on duty: error %v, or vol-0000 was removed; want it kept", err)
	}
	sweep()
	if there("vol-0000") || !there("vol-ins-1") {
		t.Errorf("after the sweep vol-0000 exists: %t, vol-ins-1 exists: %t; want false and true", there("vol-0000"), there("vol-ins-1"))
	}
}

// TestUploadIsKeptOnStaleState has the node on duty set a new image to
// pending from outdated objects, while another node has received the upload.
func TestUploadIsKeptOnStaleState(t *testing.T) {
	for i := range 2 { // either may be on duty
		w := newTestCluster(t, 2, false)
		slow, quick := w.nodes[i], w.nodes[1-i]
		w.turn()
		w.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindImage, ID: "img-1", Name: "x", Data: api.Encode(api.ImageSpec{Format: "raw"})})
		slow.receive()
		slow.deaf = true
		quick.receive()
		if err := quick.Agent().PutImage(quick.ctx, "img-1", bytes.NewReader(raw())); err != nil {
			t.Fatal(err)
		}
		w.turn()
		slow.deaf = false
		w.turn()
		if st := w.image("img-1").Status; st.Phase != api.ImageReady || st.Node != quick.id {
			t.Errorf("status of img-1 = %+v, want ready on node %s", st, quick.id)
		}
	}
}
