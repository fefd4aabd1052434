package soft_test

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/cuda"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// With BASALT_CHECK_CARD set (make gpu-check), a real GPU replaces the soft GPU:
// the results of the oracle are compared with those of the GPU.

// entered is a gate that is always open, as nothing else uses the GPU.
type entered struct{}

func (entered) Enter() error         { return nil }
func (entered) Expired() bool        { return false }
func (entered) Leave(uint64, uint64) {}

// theCard is opened once: a process can have only one libcuda.
var theCard = sync.OnceValues(func() (worker.Driver, error) {
	if os.Getenv("BASALT_CHECK_CARD") == "" {
		return nil, nil
	}
	return cuda.Open(cuda.Options{Library: os.Getenv("BASALT_CUDA_LIBRARY")})
})

// cardWindow is the address window of contexts on the GPU.
var cardWindow = sync.OnceValues(func() (w *worker.Window, err error) {
	for _, place := range abi.Windows() {
		if w, err = worker.ReserveWindow(place); err == nil {
			return w, nil
		}
	}
	return nil, err
})

// card returns the GPU to be checked, or nil.
func card(t testing.TB) worker.Driver {
	t.Helper()
	d, err := theCard()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// skipNewer skips a test if the GPU is older than the target of a module.
func skipNewer(t testing.TB, d worker.Driver, src string) {
	t.Helper()
	_, target, _ := strings.Cut(src, ".target sm_")
	var wanted int32
	if _, err := fmt.Sscanf(target, "%d", &wanted); err != nil {
		return
	}
	a := d.Info().Attributes
	if has := 10*a[75] + a[76]; has < wanted {
		t.Skipf("the module is for compute capability %d.%d, this GPU has %d.%d", wanted/10, wanted%10, a[75], a[76])
	}
}

// cardContext is shared by successive tests, as creating a context on a GPU takes a
// quarter of a second. It is destroyed after a test that fails.
var cardContext worker.Context

// onCard returns a context on the GPU.
func onCard(t testing.TB, d worker.Driver) worker.Context {
	t.Helper()
	if cardContext == nil {
		w, err := cardWindow()
		if err != nil {
			t.Fatal(err)
		}
		if cardContext, err = d.NewContext(0, entered{}, w); err != nil {
			t.Fatal(err)
		}
	}
	c := cardContext
	t.Cleanup(func() {
		if t.Failed() && c == cardContext {
			cardContext = nil
			_ = c.Destroy() // the failure has been reported
		}
	})
	return c
}

// together returns the number of blocks, or on a GPU the number of resident blocks: it
// does not begin other blocks while these wait for them.
func (r *rig) together(kernel string, blocks, threads int) int {
	r.Helper()
	if card(r.TB) == nil {
		return blocks
	}
	each, err := r.c.OccupancyMaxActiveBlocksPerMultiprocessor(r.funcs[kernel], int32(threads), 0)
	if err != nil {
		r.Fatal(err)
	}
	return min(blocks, int(each*r.d.Info().Attributes[16]))
}

// limitKernel ends the process if a kernel on a GPU has not ended before the returned
// function is called, as no other test could run.
func limitKernel(t testing.TB) (ended func() bool) {
	if card(t) == nil {
		return func() bool { return true }
	}
	return time.AfterFunc(time.Minute, func() { panic(t.Name() + ": kernel on the GPU has not ended after a minute") }).Stop
}
