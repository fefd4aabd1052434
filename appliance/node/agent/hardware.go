package agent

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Intervals of the hardware checks. The first check waits until the accelerator is
// known, but for at most hardwareAwait; then checks are periodic.
const (
	hardwareEvery = 10 * time.Minute
	hardwareAwait = 3 * time.Minute
	hardwareTime  = 5 * time.Minute // timeout of one check
	// maxHardware is the maximum number of checks in a report.
	maxHardware = 32
)

// hardwareWatch checks this node's machine periodically and keeps the last results.
type hardwareWatch struct {
	*core
	accelerator *acceleration
	soon        func() // requests a report of the node

	mu   sync.Mutex
	last []api.HardwareCheck
}

// checks returns the last results, none before the first check. The slice is
// read-only.
func (h *hardwareWatch) checks() []api.HardwareCheck {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last
}

// run checks the machine until ctx ends.
func (h *hardwareWatch) run(ctx context.Context) {
	if h.o.Hardware == nil {
		return
	}
	for began := h.o.Now(); ctx.Err() == nil && (!h.cache.isSynced() || h.accelerator.how() == "" && h.o.Now().Sub(began) < hardwareAwait); {
		sleep(ctx, time.Second)
	}
	for ctx.Err() == nil {
		h.check(ctx)
		sleep(ctx, hardwareEvery)
	}
}

// check checks the machine once, and requests a report of the node if a result has
// changed.
func (h *hardwareWatch) check(ctx context.Context) {
	within, cancel := context.WithTimeout(ctx, hardwareTime)
	defer cancel()
	now := h.o.Hardware(within, string(h.accelerator.how()), h.others())
	if ctx.Err() != nil {
		return // an interrupted check has no result
	}
	now = now[:min(len(now), maxHardware)]
	h.mu.Lock()
	same := slices.Equal(now, h.last)
	h.last = now
	h.mu.Unlock()
	if !same {
		h.soon()
	}
}

// others returns the nodes that should answer now, sorted by ID.
func (h *hardwareWatch) others() (list []api.Node) {
	for _, n := range all(h.cache, h.cache.nodes) {
		if st := n.Assignment.State; n.Meta.ID != string(h.o.NodeID) && n.Meta.DeletedAt == nil && st != api.NodeLost && st != api.NodeSuspect {
			list = append(list, n)
		}
	}
	slices.SortFunc(list, func(a, b api.Node) int { return strings.Compare(a.Meta.ID, b.Meta.ID) })
	return list
}

// hardwareCondition returns the node's condition Hardware, which is false while a
// check has failed.
func hardwareCondition(checks []api.HardwareCheck, now time.Time) api.Condition {
	var why []string
	for _, c := range checks {
		if c.State == api.HardwareFailed {
			why = append(why, string(c.ID)+": "+c.Found)
		}
	}
	if len(why) > 0 {
		return api.Condition{Type: api.ConditionHardware, Reason: "failed", Message: strings.Join(why, "; "), Since: now}
	}
	return api.Condition{Type: api.ConditionHardware, Status: true, Since: now}
}
