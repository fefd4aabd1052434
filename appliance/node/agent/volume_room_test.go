package agent_test

import (
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/node/agent"
	hypfake "github.com/basalt-gpu/basalt/hypervisor/fake"
)

// TestGrowthIsHeldToTheLimit checks that a volume grows while its pool may allocate
// that; otherwise it stays Ready with its size and the reason, and grows when
// others are deleted.
func TestGrowthIsHeldToTheLimit(t *testing.T) {
	n := newNode(t, hypfake.Guest{})
	const gib = 1 << 30
	n.opts = func(o *agent.Options) { o.StorageReserve, o.StorageOvercommit = 0, 100 } // of the fake's 1 TiB
	n.start()
	n.until("a limit of the local pool", func() bool {
		o, err := n.store.Get(t.Context(), api.KindNode, "node-1")
		if err != nil {
			return false
		}
		node, err := api.Decode[api.Node](o)
		return err == nil && node.LocalStorage().LimitBytes > 0
	})
	volume := func(id string) api.Volume {
		o, err := n.store.Get(t.Context(), api.KindVolume, id)
		if err != nil {
			return api.Volume{}
		}
		v, err := api.Decode[api.Volume](o)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	size := func(id string, bytes int64) {
		n.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindVolume, ID: id, Name: id, Expect: api.AnyRevision, Data: api.Encode(api.VolumeSpec{SizeBytes: bytes})})
	}
	for _, id := range []string{"vol-1", "vol-2"} {
		n.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindVolume, ID: id, Name: id, Data: api.Encode(api.VolumeSpec{SizeBytes: 400 * gib}), Finalizers: []string{api.FinalizerAgent}},
			api.Command{Op: api.OpAssign, Kind: api.KindVolume, ID: id, Expect: api.AnyRevision, Data: api.Encode(api.VolumeAssignment{Node: "node-1", Pool: api.PoolLocal})})
		n.until(id+" is ready", func() bool { return volume(id).Status.Phase == api.VolumeReady })
	}
	size("vol-1", 500*gib)
	n.until("vol-1 grown to 500 GiB", func() bool { return volume("vol-1").Status.SizeBytes == 500*gib })
	size("vol-2", 600*gib)
	n.until("vol-2 not grown, with the reason", func() bool {
		v := volume("vol-2")
		return v.Status.Phase == api.VolumeReady && v.Status.SizeBytes == 400*gib && strings.Contains(v.Status.LastError, "512000 MiB of 1048576 MiB of storage pool local are allocated to others")
	})
	n.apply(api.Command{Op: api.OpDelete, Kind: api.KindVolume, ID: "vol-1", Expect: api.AnyRevision})
	n.until("vol-1 removed", func() bool { return volume("vol-1").Meta.ID == "" })
	size("vol-2", 601*gib) // a changed request is tried at once
	n.until("vol-2 grown to 601 GiB", func() bool { v := volume("vol-2"); return v.Status.SizeBytes == 601*gib && v.Status.LastError == "" })
}
