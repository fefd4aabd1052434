package guest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// packed is the folder of make gpu-check that contains the library and its test programs,
// on a machine with a physical GPU. If it is empty, TestMain builds them.
var packed = os.Getenv("BASALT_GUEST")

// Reasons why a physical GPU fails a test of the library. A program sees the same
// behavior on that GPU without Basalt.
const (
	faultsSpread = "a fault of one context ends the others of the process too"
	ownManaged   = "managed variables of modules are refused (decision 44)"
	noAssembler  = "NVIDIA's assembler reports it with another text, or has other limits"
	slowOnCard   = "it pins terabytes, or keeps all multiprocessors for minutes"
)

// notOnRealCard maps the tests of api that fail on a physical GPU to the reason. The tests
// that need waits, conditions or output are in notOnCard.
var notOnRealCard = map[string]string{
	"made_at_fault": faultsSpread, "after_fault": faultsSpread,
	"library_managed": ownManaged, "module_managed": ownManaged,
	"bad_ptx": noAssembler, "jit_logs": noAssembler, "link_objects": noAssembler, "refused_kernels": noAssembler,
	"library_names_without_context": "libcuda refuses the test's fatbin, which no compiler has written",
	"host_again":                    slowOnCard, "stuck_copies": slowOnCard,
	"values_written":    noWaits,
	"ipc_mapped":        "memory of another process cannot be mapped on a physical GPU",
	"reference_filters": lateBinding,
	"ipc_external":      "memory of another process cannot be mapped on a physical GPU",
	"green_splits":      noGreen, "green_contexts": noGreen, "green_events": noGreen,
	"waits_for_work": "a copy of up to 64 KiB from ordinary memory may return before it is done, and here it does",
	"mem_info":       notOnCard["mem_info"],
	"surfaces":       "the number of a destroyed object does not cause an error at once",
	"exec_affinity":  "cuCtxGetExecAffinity returns the number of multiprocessors",
	"passed_on":      "the default limit of shared memory of a block is less than half of the maximum",
	"kept_reuse":     "memory is mapped in pieces of 2 MiB: the memory behind an allocation is mapped too",
	"full_streams":   "a physical GPU accepts launches faster than a soft GPU, so that streams fill later",
}

// needsAllMemory reports whether a test allocates all memory of the vGPU, or measures how much is
// free. No other test may run at the same time.
func needsAllMemory(name string) bool {
	for _, prefix := range []string{"out_of_memory", "free_async", "pool", "kept_", "graph_memory_", "library_", "after_context", "ipc_", "mapping_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// startCard starts the packed gpud on this machine's physical GPU.
func startCard(t *testing.T) *gpud {
	t.Helper()
	if packed == "" {
		t.Skip("GPU: needs an NVIDIA GPU and BASALT_GUEST, the folder of make gpu-check")
	}
	return startProgram(t, filepath.Join(packed, "../basalt-gpud"))
}

// TestCardAPI runs the library's tests through gpud, the jail and NVIDIA's driver.
func TestCardAPI(t *testing.T) {
	g := startCard(t)
	var last []string
	t.Run("beside", func(t *testing.T) {
		for name := range strings.FieldsSeq(g.run(t, object("api"), "list")) {
			switch reason := notOnCard[name]; {
			case notOnRealCard[name] != "", reason == noWaits, reason == noConditions:
				continue
			case needsAllMemory(name):
				last = append(last, name)
			default:
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					g.run(t, object("api"), name)
				})
			}
		}
	})
	for _, name := range last {
		t.Run(name, func(t *testing.T) { g.run(t, object("api"), name) })
	}
}

// TestCardReplay makes the calls that were recorded from NVIDIA's libraries.
func TestCardReplay(t *testing.T) {
	g := startCard(t)
	requests, sequences := sequenceFiles(t)
	for _, f := range sequences {
		// NVIDIA's assembler refuses the invented PTX of these (218).
		if name := filepath.Base(f); name != "llama.txt" && name != "pytorch.txt" {
			t.Run(strings.TrimSuffix(filepath.Base(f), ".txt"), func(t *testing.T) { g.run(t, object("replay"), requests, f) })
		}
	}
	if got := g.run(t, made("demo", "vecadd")); !strings.HasSuffix(got, ", OK\n") {
		t.Errorf("vecadd printed %q, want it to end with %q", got, ", OK\n")
	}
}

// TestCardBLAS compares products, solutions and factorizations of the BLAS libraries
// (blas/) with sums computed in long double.
func TestCardBLAS(t *testing.T) {
	g := startCard(t)
	if got := g.run(t, object("blas/test/blas")); got != "blas: OK\n" {
		t.Errorf("blas printed %q, want %q", got, "blas: OK\n")
	}
}
