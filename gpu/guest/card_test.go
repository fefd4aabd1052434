package guest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// packed is the folder of make gpu-check that has the library and its test programs,
// on a machine with a card; empty: they are built here.
var packed = os.Getenv("BASALT_GUEST")

// What the library's tests expect and a real card does not do; a program sees the same
// there without Basalt in between.
const (
	faultsSpread = "a fault of one context ends the others of the process too"
	ownManaged   = "managed variables of modules are refused (decision 44)"
	noAssembler  = "NVIDIA's assembler says it in other words, or has other limits"
	slowOnCard   = "it pins terabytes, or keeps all multiprocessors for minutes"
)

// notOnRealCard are those, beside waits, conditions and output (notOnCard).
var notOnRealCard = map[string]string{
	"made_at_fault": faultsSpread, "after_fault": faultsSpread,
	"library_managed": ownManaged, "module_managed": ownManaged,
	"bad_ptx": noAssembler, "jit_logs": noAssembler, "link_objects": noAssembler, "refused_kernels": noAssembler,
	"library_names_without_context": "libcuda refuses the test's fatbin, which is no compiler's",
	"host_again":                    slowOnCard, "stuck_copies": slowOnCard,
	"values_written":    noWaits,
	"ipc_mapped":        "another process's memory is not mapped on a card",
	"reference_filters": lateBinding,
	"ipc_external":      "another process's memory is not mapped on a card",
	"green_splits":      noGreen, "green_contexts": noGreen, "green_events": noGreen,
	"waits_for_work": "a copy of up to 64 KiB from ordinary memory may return before it is done, and here it does",
	"mem_info":       notOnCard["mem_info"],
	"surfaces":       "a destroyed object's number does no harm at once",
	"exec_affinity":  "cuCtxGetExecAffinity tells the number of multiprocessors",
	"passed_on":      "what a block may have of shared memory without asking is less than half of all",
	"kept_reuse":     "memory is mapped in pieces of 2 MiB: what is after an allocation is mapped too",
	"full_streams":   "the card takes launches faster than a soft GPU, and streams fill later",
}

// counts reports whether a test takes all memory of the vGPU, or counts what is free:
// nothing else may run beside it.
func counts(name string) bool {
	for _, prefix := range []string{"out_of_memory", "free_async", "pool", "kept_", "graph_memory_", "library_", "after_context", "ipc_", "mapping_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// startCard starts the packed gpud on this machine's card.
func startCard(t *testing.T) *gpud {
	t.Helper()
	if packed == "" {
		t.Skip("GPU: needs an NVIDIA card and the folder of make gpu-check")
	}
	return startProgram(t, filepath.Join(packed, "../basalt-gpud"))
}

// TestCardAPI runs the library's tests through gpud, the jail and the card's driver.
func TestCardAPI(t *testing.T) {
	g := startCard(t)
	var last []string
	t.Run("beside", func(t *testing.T) {
		for name := range strings.FieldsSeq(g.run(t, object("api"), "list")) {
			switch reason := notOnCard[name]; {
			case notOnRealCard[name] != "", reason == noWaits, reason == noConditions, reason == noOutput:
				continue
			case counts(name):
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

// TestCardReplay makes the calls that NVIDIA's libraries were seen to make.
func TestCardReplay(t *testing.T) {
	g := startCard(t)
	requests, sequences := sequenceFiles(t)
	for _, f := range sequences {
		// NVIDIA's assembler refuses the made-up PTX of these (218).
		if name := filepath.Base(f); name != "llama.txt" && name != "pytorch.txt" {
			t.Run(strings.TrimSuffix(filepath.Base(f), ".txt"), func(t *testing.T) { g.run(t, object("replay"), requests, f) })
		}
	}
	if got := g.run(t, made("demo", "vecadd")); !strings.HasSuffix(got, ", OK\n") {
		t.Errorf("vecadd printed %q", got)
	}
}

// TestCardBLAS compares products, solutions and factorizations of the BLAS libraries
// (blas/) with sums in long double.
func TestCardBLAS(t *testing.T) {
	g := startCard(t)
	if got := g.run(t, object("blas/test/blas")); got != "blas: OK\n" {
		t.Errorf("it printed %q", got)
	}
}
