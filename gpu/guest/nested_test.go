package guest_test

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/layer"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/gpu/conformance/nested"
)

// Reasons why a nested GPU fails a test of the library. A nested GPU cannot access the
// guest's memory, because our own library reports that it cannot. Everything else is as
// gpu/cuda has it on any physical GPU.
const (
	noHostMemory = "the GPU cannot access host memory: none is mapped or managed"
	noWaits      = "a physical GPU does not wait for values in memory: that would keep the lease"
	noConditions = "a physical GPU has no conditional nodes: the worker would have to read their values"
	noImport     = "a physical GPU maps only memory of its own process: gpu/cuda does not import descriptors"
	lateBinding  = "the object of a reference is passed to libcuda only when the launch's turn comes"
	noGreen      = "the worker of a physical GPU does not support green contexts"
)

// notOnCard maps the tests of api that fail on a nested GPU to the reason.
var notOnCard = map[string]string{
	"host_in_place": noHostMemory, "managed": noHostMemory, "advice": noHostMemory, "host_free_in_use": noHostMemory,
	"waits_for_work": noHostMemory, "host_limits": noHostMemory, "host_again": noHostMemory, "host_contexts": noHostMemory,
	"host_registered_mapped": noHostMemory, "host_registered_refused": noHostMemory, "host_registered_beside": noHostMemory, "host_registered_stack": noHostMemory, "host_registered_forks": noHostMemory,
	"host_forks": noHostMemory, "host_storm": noHostMemory, "attributes": noHostMemory, "values_written": noHostMemory,
	"library_managed": noHostMemory, "module_managed": noHostMemory, "batch_managed": noHostMemory,

	"free_async": noWaits, "values_compare": noWaits, "values_ping_pong": noWaits, "values_many": noWaits,
	"values_refused": noWaits, "values_graph": noWaits, "values_captured": noWaits, "values_leave": noWaits, "good_streams": noWaits, "batches": noWaits,

	"condition_if": noConditions, "condition_while": noConditions, "condition_switch": noConditions,
	"condition_captured": noConditions, "condition_refused": noConditions, "condition_updates": noConditions,

	"ipc_mapped": noImport, "ipc_external": noImport, "ipc_pool": noImport,

	"green_splits": noGreen, "green_contexts": noGreen, "green_events": noGreen,

	"mem_info":          "memory that a stream frees becomes free when the GPU is idle (decision 34)",
	"reference_filters": lateBinding,
	"refused_kernels":   "libcuda refuses the whole module; the soft GPU behind our library refuses a launch later",
	"stuck_copies":      "each piece waits for its turn beside kernels that use all processors: minutes",
	"thread_churn":      "6,400 threads create streams faster than the worker destroys them, and a soft GPU has 4,096",
}

// cardVRAM is the memory of the soft GPU behind the nested GPU: a gpud reserves 1 GiB of a
// physical GPU for its driver, so that programs have 256 MiB, as on a soft GPU alone.
const cardVRAM = "1280MiB"

// startNestedGPUD starts the gpud of a host whose GPU is nested.
func startNestedGPUD(t *testing.T) *gpud {
	t.Helper()
	return &gpud{socket: nested.Start(t, made("lib"), cardVRAM).Path(t)}
}

// TestNestedAPI runs the library's tests through gpud, the jail and gpu/cuda.
func TestNestedAPI(t *testing.T) {
	g := startNestedGPUD(t)
	for name := range strings.FieldsSeq(g.run(t, object("api"), "list")) {
		if notOnCard[name] != "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			if longLayerOnly(name) {
				layer.NeedLong(t, "TestAPI/"+name)
			}
			g.run(t, object("api"), name)
		})
	}
}

// longLayerOnly reports whether a test runs in the long layer only: it takes long (full_streams,
// whose kernels use all processors), or tests what the library does by itself and what does
// not depend on the GPU.
func longLayerOnly(name string) bool {
	for _, prefix := range []string{"full_streams", "capture_", "good_graph_", "good_capture", "graph_memory_", "kept_", "library_"} {
		if strings.HasPrefix(name, prefix) && name != "capture_attributes" {
			return true
		}
	}
	return false
}

// TestNestedReplay makes the calls that were recorded from NVIDIA's libraries.
func TestNestedReplay(t *testing.T) {
	g := startNestedGPUD(t)
	requests, sequences := sequenceFiles(t)
	for _, f := range sequences {
		if filepath.Base(f) != "features.txt" { // it allocates managed memory
			g.run(t, object("replay"), requests, f)
		}
	}
	if got := g.run(t, made("demo", "vecadd")); !strings.HasSuffix(got, ", OK\n") {
		t.Errorf("vecadd printed %q, want it to end with %q", got, ", OK\n")
	}
}

// TestNestedTogether runs programs that share a GPU whose kernels take time. One exits
// while its work is running. All compute correct results, and then all memory of the vGPU
// and of the GPU is free.
func TestNestedTogether(t *testing.T) {
	host := nested.Start(t, made("lib"), cardVRAM)
	g := &gpud{socket: host.Path(t, nested.SlowKernels(100*time.Microsecond))}
	var all sync.WaitGroup
	for _, name := range []string{"leave", "threads", "copies", "graph_kinds"} {
		cmd := g.command(t, object("api"), name)
		all.Go(func() {
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s beside other programs: %v\n%s", name, err, out)
			}
		})
	}
	all.Wait()
	// The GPU's own NVML does not know it, and has no other value for that than 0.
	if got, want := g.run(t, made("bin", "nvidia-smi"), "--query-gpu=utilization.memory", "--format=csv,noheader"), "[N/A]\n"; got != want {
		t.Errorf("utilization of the memory = %q, want %q", got, want)
	}
	for what, of := range map[string]*gpud{"the vGPU": g, "the GPU": {socket: host.Socket()}} {
		patience.Until(t, 30*time.Second, "all memory of "+what+" is free", func() bool {
			return of.run(t, made("bin", "nvidia-smi"), "--query-gpu=memory.used", "--format=csv,noheader,nounits") == "0\n"
		})
	}
}
