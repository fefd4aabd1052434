package agent

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// TestImportsHoldUpTheirOwn checks that imports of one organization, from servers
// that do not answer, delay neither another organization's imports nor the
// cluster's own jobs, and that a stopped one ends.
func TestImportsHoldUpTheirOwn(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	j := newJobs(&core{o: Options{Go: func(f func()) { go f() }}})
	var began, ended atomic.Int64
	silent := func(ctx context.Context) error {
		began.Add(1)
		defer ended.Add(1)
		<-ctx.Done()
		return ctx.Err()
	}
	start := func(organization string, n int) {
		for i := range n {
			if err := j.startImport(ctx, organization, fmt.Sprint("import ", organization, i), "", silent); err != nil {
				t.Error(err)
			}
		}
	}
	start("org-1", 10)
	start("org-2", 1)
	for i := range 3 {
		if err := j.start(ctx, fmt.Sprint("fetch ", i), "", silent); err != nil {
			t.Error(err)
		}
	}
	const want = maxImportsOf + 1 + maxJobs
	patience.Until(t, time.Minute, "the allowed jobs run", func() bool { return began.Load() == want })
	for i := range 2 * maxImports {
		start(fmt.Sprint("org-", i+3), 1)
	}
	j.mu.Lock()
	if n := len(j.running); n != maxImports+maxJobs {
		t.Errorf("%d jobs run, want %d", n, maxImports+maxJobs)
	}
	j.mu.Unlock()
	if j.stop("import org-19") {
		t.Error("stop of an import beyond the limit = true, want it never started")
	}
	cancel()
	j.wait()
	if err := j.start(t.Context(), "import org-10", "", silent); !errors.Is(err, context.Canceled) {
		t.Errorf("error of the last import = %v, want %v", err, context.Canceled)
	}
}
