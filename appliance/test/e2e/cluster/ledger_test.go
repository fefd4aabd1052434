package cluster_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	nodeclient "github.com/basalt-gpu/basalt/gpu/gpud/client"
)

// ledger periodically checks the planner's allocations.
type ledger struct {
	stop context.CancelFunc
	all  sync.WaitGroup

	mu       sync.Mutex
	problems []string
	rounds   int
	given    []string // the last allocations that were read, oldest first
}

// rows is the number of rows of given that are kept.
const rows = 200

// end ends the checks.
func (s *ledger) end() {
	s.stop()
	s.all.Wait()
}

// text returns the last allocations that were read, a line for each revision.
func (s *ledger) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.given, "\n")
}

func newLedger(c *cluster) *ledger {
	ctx, stop := context.WithCancel(c.ctx)
	s := &ledger{stop: stop}
	s.all.Go(func() {
		for ctx.Err() == nil {
			s.observe(ctx, c.op())
			select {
			case <-ctx.Done():
			case <-time.After(500 * time.Millisecond):
			}
		}
	})
	return s
}

// observe checks one list, which is the state at one revision.
func (s *ledger) observe(ctx context.Context, c *client.API) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	page, err := client.Of[api.Instance](c).Page(ctx, client.Query{Limit: 1000})
	if err != nil {
		return // the test may have caused a partition
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rounds++
	bytes, share := map[api.GPUID]int64{}, map[api.GPUID]int64{}
	row := fmt.Sprintf("%s revision %d:", time.Now().UTC().Format(time.TimeOnly), page.Revision)
	defer func() { s.given = append(s.given, row)[max(0, len(s.given)+1-rows):] }()
	for _, in := range page.Items {
		a := in.Assignment
		row += fmt.Sprintf(" %s on %q epoch %d moving to %q, GPU %q;", in.Meta.Name, a.Node, a.Epoch, a.MigrateTo, a.Gpu)
		if a.Gpu == "" {
			continue
		}
		bytes[a.Gpu] += a.VgpuVramBytes
		share[a.Gpu] += a.VgpuSharePercent
		if a.Node == "" {
			s.problems = append(s.problems, fmt.Sprintf("instance %s has a GPU and no node: %+v", in.Meta.Name, a))
		}
	}
	for gpu, n := range bytes {
		if n > vram || share[gpu] > 100 {
			s.problems = append(s.problems, fmt.Sprintf("revision %d: GPU %s is allocated with %d bytes and %d %%, want at most %d bytes and 100 %%", page.Revision, gpu, n, share[gpu], int64(vram)))
		}
	}
}

func (s *ledger) check(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, p := range s.problems {
		if i < 10 {
			t.Error(p)
		}
	}
	if s.rounds == 0 {
		t.Error("allocations were never read, want at least once")
	}
	s.problems, s.rounds = nil, 0
}

// vgpus returns the IDs of the vGPUs that a node's gpud has.
func (c *cluster) vgpus(n int) map[string]bool {
	out := map[string]bool{}
	socket := c.root(n, "/run/basalt/gpud.sock")
	if _, err := os.Stat(socket); err != nil {
		return out
	}
	control := nodeclient.NewControl(socket)
	defer control.Close()
	all, err := control.VGPUs(c.ctx)
	if err != nil {
		return out
	}
	for _, v := range all {
		out[v.ID] = true
	}
	return out
}

// agreed waits until every node has exactly what is assigned to it: QEMUs, and vGPUs of running
// instances.
func (c *cluster) agreed() {
	c.t.Helper()
	var why string
	watch := patience.Start()
	for why = c.disagreement(); why != ""; why = c.disagreement() {
		if watch.Over(2 * time.Minute) {
			c.t.Fatalf("assignments and nodes differ for more than 2 minutes: %s", why)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

func (c *cluster) disagreement() string {
	page, err := client.Of[api.Instance](c.op()).Page(c.ctx, client.Query{})
	if err != nil {
		return err.Error()
	}
	vgpus := map[int]map[string]bool{}
	for n := 1; n <= 3; n++ {
		if c.on(n) {
			vgpus[n] = c.vgpus(n)
		}
	}
	machines := map[string][]machine{}
	for _, m := range c.watch.machines() {
		machines[m.instance] = append(machines[m.instance], m)
	}
	for _, in := range page.Items {
		at := c.node(in.Assignment.Node)
		id := in.Meta.ID
		runs := at != 0 && c.on(at) && in.Spec.Power != api.PowerStopped
		if m := machines[id]; runs && (len(m) != 1 || m[0].node != at) || !runs && len(m) != 0 {
			return fmt.Sprintf("instance %s (%s, %s) is assigned to n%d, its QEMUs are %v", in.Meta.Name, in.Status.Phase, in.Status.LastError, at, m)
		}
		delete(machines, id)
		for n, have := range vgpus {
			if want := in.Spec.Vgpu != nil && n == at; have[id] != want {
				return fmt.Sprintf("vGPU of %s exists on n%d = %v, want %v", in.Meta.Name, n, have[id], want)
			}
			delete(have, id)
		}
	}
	for id, m := range machines {
		return fmt.Sprintf("QEMUs of unknown instance %s: %v", id, m)
	}
	for n, have := range vgpus {
		for id := range have {
			return fmt.Sprintf("n%d has a vGPU of unknown instance %s", n, id)
		}
	}
	return ""
}
