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

// What the library's tests need and a nested card has not. The card is without
// virtual memory management, because the strict layer has none, and does not reach the
// guest's memory, as our own library says of itself; everything else is as gpu/cuda has it on any card.
const (
	noHostMemory = "the card does not reach host memory: none is mapped or managed"
	noWaits      = "a card does not wait for values in memory: that would keep the lease"
	noConditions = "a card has no conditional nodes: the worker would have to read their values"
	noMapping    = "the card does not map memory: the strict layer before its libcuda knows no virtual memory management"
	lateBinding  = "libcuda is told what a reference stands for when the launch's turn comes"
	noGreen      = "a card's worker knows no green contexts"
	noOutput     = "a card's driver prints to the worker's stdout, which leads nowhere"
	strays       = "device memory of a card without virtual memory lies outside of the window"
)

// notOnCard are the tests of api that such a card fails, and why.
var notOnCard = map[string]string{
	"host_in_place": noHostMemory, "managed": noHostMemory, "advice": noHostMemory, "host_free_in_use": noHostMemory,
	"waits_for_work": noHostMemory, "host_limits": noHostMemory, "host_again": noHostMemory, "host_contexts": noHostMemory,
	"host_forks": noHostMemory, "host_storm": noHostMemory, "attributes": noHostMemory, "values_written": noHostMemory,
	"library_managed": noHostMemory, "module_managed": noHostMemory, "batch_managed": noHostMemory,

	"free_async": noWaits, "values_compare": noWaits, "values_ping_pong": noWaits, "values_many": noWaits,
	"values_refused": noWaits, "values_leave": noWaits, "good_streams": noWaits, "batches": noWaits,

	"condition_if": noConditions, "condition_while": noConditions, "condition_switch": noConditions,
	"condition_captured": noConditions, "condition_refused": noConditions, "condition_updates": noConditions,

	"mapping_grows": noMapping, "mapping_told": noMapping, "mapping_twice": noMapping, "mapping_refused": noMapping,
	"mapping_fault": noMapping, "mapping_threads": noMapping, "mapping_ends": noMapping,
	"ipc_memory": noMapping, "ipc_refused": noMapping, "ipc_counts_once": noMapping, "ipc_killed": noMapping, "ipc_while_it_runs": noMapping, "ipc_events": noMapping, "ipc_mapped": noMapping, "ipc_external": noMapping,

	"green_splits": noGreen, "green_contexts": noGreen, "green_events": noGreen,

	"printf_threads": noOutput,

	"window_taken": strays, "window_all_taken": strays, "window_limited": strays, "window_forks": strays, "window_collision": strays,

	"mem_info":          "memory that a stream frees comes back when the card has nothing to do (decision 34)",
	"reference_filters": lateBinding,
	"refused_kernels":   "libcuda refuses the whole module; the soft GPU behind our library refuses a launch later",
	"stuck_copies":      "each piece waits for its turn beside kernels that keep all processors: minutes",
	"thread_churn":      "6,400 threads make streams faster than the card's loop ends them, and a soft GPU has 4,096",
}

// cardVRAM is what the nested card's soft GPU has: a gpud keeps 1 GiB of a card for
// its driver, and the programs have 256 MiB, as on a soft GPU alone.
const cardVRAM = "1280MiB"

// startNestedGPUD starts the gpud of a host whose card is nested.
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
			if seldom(name) {
				layer.NeedLong(t, "TestAPI/"+name)
			}
			g.run(t, object("api"), name)
		})
	}
}

// seldom reports whether a test is left to the long layer: it takes long (full_streams,
// whose kernels keep all processors), or is of what the library does by itself,
// whatever the card.
func seldom(name string) bool {
	for _, prefix := range []string{"full_streams", "capture_", "good_graph_", "good_capture", "graph_memory_", "kept_", "library_"} {
		if strings.HasPrefix(name, prefix) && name != "capture_attributes" {
			return true
		}
	}
	return false
}

// TestNestedReplay makes the calls that NVIDIA's libraries were seen to make.
func TestNestedReplay(t *testing.T) {
	g := startNestedGPUD(t)
	requests, sequences := sequenceFiles(t)
	for _, f := range sequences {
		if filepath.Base(f) != "features.txt" { // it allocates managed memory
			g.run(t, object("replay"), requests, f)
		}
	}
	if got := g.run(t, made("demo", "vecadd")); !strings.HasSuffix(got, ", OK\n") {
		t.Errorf("vecadd printed %q", got)
	}
}

// TestNestedTogether runs programs that share the card, whose kernels take time. One
// leaves with work under way. All have right results, and then all memory is free, of
// the vGPU and of the card.
func TestNestedTogether(t *testing.T) {
	card := nested.Start(t, made("lib"), cardVRAM)
	g := &gpud{socket: card.Path(t, nested.SlowKernels(100*time.Microsecond))}
	var all sync.WaitGroup
	for _, name := range []string{"leave", "threads", "copies", "graph_kinds"} {
		cmd := g.command(t, object("api"), name)
		all.Go(func() {
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", name, err, out)
			}
		})
	}
	all.Wait()
	for what, of := range map[string]*gpud{"the vGPU": g, "the card": {socket: card.Socket()}} {
		patience.Until(t, 30*time.Second, "all memory of "+what+" is free", func() bool {
			return of.run(t, made("bin", "nvidia-smi"), "--query-gpu=memory.used", "--format=csv,noheader,nounits") == "0\n"
		})
	}
}
