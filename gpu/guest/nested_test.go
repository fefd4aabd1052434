package guest_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/conformance/nested"
	"github.com/basalt-gpu/basalt/installer/dev/layer"
)

// What the library's tests need and a nested card has not. The card is without
// virtual memory management and does not reach the guest's memory, as our own
// library says of itself; everything else is as gpu/cuda has it on any card.
const (
	noHostMemory = "the card does not reach host memory: none is mapped or managed"
	noWaits      = "a card does not wait for values in memory: that would keep the lease"
	noConditions = "a card has no conditional nodes: the worker would have to read their values"
	noOutput     = "a card's driver prints to the worker's stdout, which leads nowhere"
	strays       = "device memory of a card without virtual memory lies outside of the window"
)

// notOnCard are the tests of api that such a card fails, and why.
var notOnCard = map[string]string{
	"host_in_place": noHostMemory, "managed": noHostMemory, "advice": noHostMemory, "host_free_in_use": noHostMemory,
	"waits_for_work": noHostMemory, "host_limits": noHostMemory, "host_again": noHostMemory, "host_contexts": noHostMemory,
	"host_forks": noHostMemory, "host_storm": noHostMemory, "attributes": noHostMemory, "values_written": noHostMemory,
	"library_managed": noHostMemory, "module_managed": noHostMemory,

	"free_async": noWaits, "values_compare": noWaits, "values_ping_pong": noWaits, "values_many": noWaits,
	"values_refused": noWaits, "values_leave": noWaits, "good_streams": noWaits, "batches": noWaits,

	"condition_if": noConditions, "condition_while": noConditions, "condition_switch": noConditions,
	"condition_captured": noConditions, "condition_refused": noConditions, "condition_updates": noConditions,

	"printf_threads": noOutput,

	"window_taken": strays, "window_all_taken": strays, "window_limited": strays, "window_forks": strays, "window_collision": strays,

	"mem_info":        "memory that a stream frees comes back when the card has nothing to do (decision 34)",
	"refused_kernels": "libcuda refuses the whole module; the soft GPU behind our library refuses a launch later",
	"stuck_copies":    "each piece waits for its turn beside kernels that keep all processors: minutes",
	"thread_churn":    "6,400 threads make streams faster than the card's loop ends them, and a soft GPU has 4,096",
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
			if name == "full_streams" {
				layer.NeedLong(t, "TestAPI/full_streams; its kernels keep all processors for seconds")
			}
			g.run(t, object("api"), name)
		})
	}
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
