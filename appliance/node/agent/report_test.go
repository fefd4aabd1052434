package agent_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/node/agent"
	"github.com/basalt-gpu/basalt/appliance/node/budget"
	hypfake "github.com/basalt-gpu/basalt/hypervisor/fake"
)

// comingUp is a node's network that does not work at first.
type comingUp struct {
	*testNode
	works atomic.Bool
}

func (c *comingUp) Works(context.Context) error {
	if !c.works.Load() {
		return errors.New("it is not up yet")
	}
	return nil
}

// TestNetworkUpIsReported checks that a network which starts to work
// is reported at once, not with the next regular report: until then no instance
// with a port is placed on the node.
func TestNetworkUpIsReported(t *testing.T) {
	n := newNode(t, hypfake.Guest{})
	network := &comingUp{testNode: &testNode{}}
	n.opts = func(o *agent.Options) { o.Ports, o.ReportEvery = network, time.Hour }
	n.start()
	chassis := func() (reported, works bool) {
		o, err := n.store.Get(t.Context(), api.KindNode, "node-1")
		if err != nil {
			return false, false
		}
		node, err := api.Decode[api.Node](o)
		if err != nil {
			t.Fatal(err)
		}
		return !node.Status.SeenAt.IsZero(), node.Status.Chassis
	}
	n.until("the first report", func() bool { reported, works := chassis(); return reported && !works })
	network.works.Store(true)
	n.until("the report that the network works", func() bool { _, works := chassis(); return works })
}

// TestGPUModelFromPool checks that a pool's settings of its GPUs reach
// gpud without the start of a virtual GPU.
func TestGPUModelFromPool(t *testing.T) {
	n := newNode(t, hypfake.Guest{})
	n.start()
	card := func() agent.Card {
		n.vgpus.mu.Lock()
		defer n.vgpus.mu.Unlock()
		return n.vgpus.card
	}
	pool := func(s api.GPUPoolSpec) {
		n.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindGPUPool, ID: "pool-1", Name: api.DefaultPool, Data: api.Encode(s), Expect: api.AnyRevision})
	}
	pool(api.GPUPoolSpec{Mode: api.ModeTimeSliced, VramOvercommitPercent: 150, Interop: true})
	n.until("swap and interop set on the GPU", func() bool { return card() == agent.Card{SwapBytes: 4 << 30, Interop: true} })
	pool(api.GPUPoolSpec{Mode: api.ModeTimeSliced})
	n.until("neither set on the GPU", func() bool { return card() == agent.Card{} })
}

// TestACardSaysWhatIsWrong checks that a GPU's faults are in its conditions while
// they last: a condition that is false raises an alert.
func TestACardSaysWhatIsWrong(t *testing.T) {
	n := newNode(t, hypfake.Guest{})
	n.start()
	says := func(failed string, hot bool) {
		n.vgpus.mu.Lock()
		defer n.vgpus.mu.Unlock()
		n.vgpus.failed, n.vgpus.hot = failed, hot
	}
	conditions := func() []api.Condition {
		o, err := n.store.Get(t.Context(), api.KindGPU, "gpu-node-1-soft0")
		if err != nil {
			return []api.Condition{{Type: "not reported"}}
		}
		g, err := api.Decode[api.GPU](o)
		if err != nil {
			t.Fatal(err)
		}
		return g.Status.Conditions
	}
	n.until("a GPU without conditions", func() bool { return len(conditions()) == 0 })
	says("it has fallen off the bus", false)
	n.until("condition Works false with the GPU's message", func() bool {
		c := conditions()
		return len(c) == 1 && !c[0].Status && c[0].Message == "it has fallen off the bus"
	})
	says("", true)
	n.until("one true condition of a hot GPU", func() bool { c := conditions(); return len(c) == 1 && c[0].Status })
	says("", false)
	n.until("a GPU without conditions again", func() bool { return len(conditions()) == 0 })
}

// TestUnusableGPUsAreReported checks that unusable GPUs are a condition of
// the node while there are any.
func TestUnusableGPUsAreReported(t *testing.T) {
	n := newNode(t, hypfake.Guest{})
	n.start()
	says := func(unusable ...string) {
		n.vgpus.mu.Lock()
		defer n.vgpus.mu.Unlock()
		n.vgpus.unusable = unusable
	}
	message := func() string {
		o, err := n.store.Get(t.Context(), api.KindNode, "node-1")
		if err != nil {
			return "not reported"
		}
		node, err := api.Decode[api.Node](o)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range node.Status.Conditions {
			if c.Type == "GPUCards" && !c.Status {
				return c.Message
			}
		}
		return ""
	}
	n.until("a node without the condition", func() bool { return message() == "" })
	says("0000:65:00.0: no driver", "0000:66:00.0: no driver")
	n.until("both unusable GPUs in the condition", func() bool { return message() == "0000:65:00.0: no driver; 0000:66:00.0: no driver" })
	says()
	n.until("a node without the condition again", func() bool { return message() == "" })
}

// TestPromisedStorageIsReported checks that a node reports what is allocated in its
// local pool, which is the sizes of volumes and not what they occupy, and the
// limit.
func TestPromisedStorageIsReported(t *testing.T) {
	n := newNode(t, hypfake.Guest{})
	n.opts = func(o *agent.Options) {
		o.ReportEvery, o.StorageReserve, o.StorageOvercommit = 50*time.Millisecond, 1<<30, 200
	}
	n.start()
	pool := func() api.StoragePool {
		o, err := n.store.Get(t.Context(), api.KindNode, "node-1")
		if err != nil {
			return api.StoragePool{}
		}
		node, err := api.Decode[api.Node](o)
		if err != nil {
			t.Fatal(err)
		}
		return node.LocalStorage()
	}
	n.until("a limit of the local pool", func() bool { return pool().LimitBytes > 0 })
	if p := pool(); p.LimitBytes != api.StorageLimit(p.SizeBytes, 1<<30, 200) && p.LimitBytes != 1 || p.ReserveBytes != 1<<30 || p.PromisedBytes != p.ImageBytes {
		t.Errorf("local pool without volumes = %+v, want the limit for a reserve of 1 GiB and 200 %%, and only images allocated", p)
	}
	n.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindVolume, ID: "vol-1", Name: "vol-1", Data: api.Encode(api.VolumeSpec{SizeBytes: 5 << 20})},
		api.Command{Op: api.OpPutSpec, Kind: api.KindVolume, ID: "vol-2", Name: "vol-2", Data: api.Encode(api.VolumeSpec{SizeBytes: 7 << 20})},
		api.Command{Op: api.OpAssign, Kind: api.KindVolume, ID: "vol-1", Expect: api.AnyRevision, Data: api.Encode(api.VolumeAssignment{Node: "node-1", Pool: api.PoolLocal})},
		api.Command{Op: api.OpAssign, Kind: api.KindVolume, ID: "vol-2", Expect: api.AnyRevision, Data: api.Encode(api.VolumeAssignment{Node: "node-2", Pool: api.PoolLocal})})
	n.until("5 MiB allocated to volumes", func() bool { p := pool(); return p.PromisedBytes-p.ImageBytes == 5<<20 })
}

// TestHugePagesAreReported checks that a node reports its huge pages, and does not
// count them as memory for instances without them.
func TestHugePagesAreReported(t *testing.T) {
	n := newNode(t, hypfake.Guest{})
	n.opts = func(o *agent.Options) {
		o.MemoryBytes = 0
		o.HugePages = func() []api.NodeHugePages {
			return []api.NodeHugePages{{Size: api.HugePages2Mi, TotalBytes: 64 << 20, FreeBytes: 2 << 20}}
		}
	}
	n.start()
	n.until("a report with huge pages", func() bool {
		o, err := n.store.Get(t.Context(), api.KindNode, "node-1")
		if err != nil {
			return false
		}
		node, err := api.Decode[api.Node](o)
		if err != nil {
			t.Fatal(err)
		}
		kept := slices.ContainsFunc(node.Status.Memory.Parts, func(p api.NodeMemoryPart) bool { return p.Name == api.NodePartHugePages && p.Bytes == 64<<20 })
		return kept && node.HugePages(api.HugePages2Mi).FreeBytes == 2<<20
	})
}

// TestProcessorsAreDividedByWhatRuns checks that a node divides its CPUs by what it runs,
// and at once by what an operator has set.
func TestProcessorsAreDividedByWhatRuns(t *testing.T) {
	n := newNode(t, hypfake.Guest{})
	n.opts = func(o *agent.Options) {
		o.ReportEvery, o.VCPUs = 50*time.Millisecond, 0
		o.Runs = func() budget.Runs { return budget.Runs{OSDs: 2} }
		o.Cells = func() []api.NodeCell { return []api.NodeCell{{CPUs: "0-15"}} }
	}
	n.start()
	is := func(vcpus, instances int64, kept string) func() bool {
		return func() bool {
			o, err := n.store.Get(t.Context(), api.KindNode, "node-1")
			if err != nil {
				return false
			}
			node, err := api.Decode[api.Node](o)
			if err != nil {
				t.Fatal(err)
			}
			st := node.Status
			return st.Vcpus == vcpus && st.Processors.InstancesMilliCPUs == instances && st.ReservedCPUs == kept
		}
	}
	// Of 16 CPUs: half of one for the system, an eighth for Basalt, two for the OSDs, one
	// for the GPU.
	n.until("a budget of the CPUs", is(49, 12375, "0-3"))
	n.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindNode, ID: "node-1", Name: "n1", Data: api.Encode(api.NodeSpec{ReservedCPUs: 6}), Expect: api.AnyRevision})
	n.until("the operator's number of CPUs", is(40, 10000, "0-5"))
}

// TestMemoryIsDividedByWhatRuns checks that a node divides its memory by what it
// runs, and reports the parts.
func TestMemoryIsDividedByWhatRuns(t *testing.T) {
	n := newNode(t, hypfake.Guest{})
	var osds atomic.Int32
	n.opts = func(o *agent.Options) {
		o.ReportEvery = 50 * time.Millisecond
		o.MemoryBytes = 0
		o.Runs = func() budget.Runs { return budget.Runs{OSDs: int(osds.Load()), Networks: true} }
	}
	n.start()
	reported := func() api.NodeStatus {
		o, err := n.store.Get(t.Context(), api.KindNode, "node-1")
		if err != nil {
			return api.NodeStatus{}
		}
		node, err := api.Decode[api.Node](o)
		if err != nil {
			t.Fatal(err)
		}
		return node.Status
	}
	n.until("a memory budget with the GPU's part", func() bool {
		st := reported()
		return len(st.Memory.Parts) == 5 && st.MemoryBytes == st.Memory.InstancesBytes && st.MemoryBytes > 0
	})
	before := reported().MemoryBytes
	osds.Store(3)
	n.until("12 GiB less for instances with three OSDs", func() bool { return before-reported().MemoryBytes == 12<<30 })
}

// TestEncryptionIsReported checks that a node reports what the encryption of its tunnels
// waits for, and no condition while the encryption is off.
func TestEncryptionIsReported(t *testing.T) {
	n := newNode(t, hypfake.Guest{})
	var stage atomic.Value
	stage.Store("")
	n.opts = func(o *agent.Options) {
		o.ReportEvery = 100 * time.Millisecond
		o.Encryption = func() (string, error) {
			if s := stage.Load().(string); s != "preparing" {
				return s, nil
			}
			return "preparing", errors.New("no key yet from node-2")
		}
	}
	n.start()
	reported := func() (c api.Condition, any bool) {
		o, err := n.store.Get(t.Context(), api.KindNode, "node-1")
		if err != nil {
			return c, false
		}
		node, err := api.Decode[api.Node](o)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range node.Status.Conditions {
			if c.Type == api.ConditionEncryption {
				return c, true
			}
		}
		return c, !node.Status.SeenAt.IsZero()
	}
	until := func(what string, want api.Condition) {
		t.Helper()
		n.until(what, func() bool {
			c, any := reported()
			return any && c.Type == want.Type && c.Status == want.Status && c.Reason == want.Reason && c.Message == want.Message
		})
	}
	until("a report without the condition", api.Condition{})
	stage.Store("preparing")
	until("what it waits for", api.Condition{Type: api.ConditionEncryption, Reason: "preparing", Message: "no key yet from node-2"})
	stage.Store("encrypted")
	until("encryption", api.Condition{Type: api.ConditionEncryption, Status: true, Reason: "encrypted"})
}
