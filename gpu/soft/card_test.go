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

// A real card takes the soft GPU's place where BASALT_CHECK_CARD is set (make gpu-check):
// the oracle's answers are held against the card's.

// entered is a gate that is always open: nobody else wants the card.
type entered struct{}

func (entered) Enter() error         { return nil }
func (entered) Expired() bool        { return false }
func (entered) Leave(uint64, uint64) {}

// theCard is opened once: a process has one libcuda.
var theCard = sync.OnceValues(func() (worker.Driver, error) {
	if os.Getenv("BASALT_CHECK_CARD") == "" {
		return nil, nil
	}
	return cuda.Open(cuda.Options{Library: os.Getenv("BASALT_CUDA_LIBRARY")})
})

// cardWindow is where the card's contexts have their memory.
var cardWindow = sync.OnceValues(func() (w *worker.Window, err error) {
	for _, place := range abi.Windows() {
		if w, err = worker.ReserveWindow(place); err == nil {
			return w, nil
		}
	}
	return nil, err
})

// card is the one to be checked, or nil.
func card(t testing.TB) worker.Driver {
	t.Helper()
	d, err := theCard()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// skipNewer skips a test where the card is older than the target of a module.
func skipNewer(t testing.TB, d worker.Driver, src string) {
	t.Helper()
	_, target, _ := strings.Cut(src, ".target sm_")
	var wanted int32
	if _, err := fmt.Sscanf(target, "%d", &wanted); err != nil {
		return
	}
	a := d.Info().Attributes
	if has := 10*a[75] + a[76]; has < wanted {
		t.Skipf("the module is for compute capability %d.%d, the card's is %d.%d", wanted/10, wanted%10, a[75], a[76])
	}
}

// cardContext is for one test after another: a card takes a quarter of a second to make
// one. A test that fails leaves none.
var cardContext worker.Context

// onCard is a context on the card.
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
			_ = c.Destroy() // the failure has been told
		}
	})
	return c
}

// together is so many blocks, or on a card as many as are on it at once: blocks that have
// not begun cannot be waited for there.
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

// limitKernel ends the process when a kernel on a card has not ended before the function is
// called that it returns: no other test could run beside it.
func limitKernel(t testing.TB) (ended func() bool) {
	if card(t) == nil {
		return func() bool { return true }
	}
	return time.AfterFunc(time.Minute, func() { panic(t.Name() + ": the card's kernel does not end") }).Stop
}
