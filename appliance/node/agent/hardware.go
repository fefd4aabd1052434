package agent

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Look at the machine: at the start as soon as it is known how guests run, which is
// waited for that long, and then again and again.
const (
	hardwareEvery = 10 * time.Minute
	hardwareAwait = 3 * time.Minute
	hardwareTime  = 5 * time.Minute // for one look
	// maxHardware bounds the checks of a report.
	maxHardware = 32
)

// hardwareWatch knows what was found out about this node's machine.
type hardwareWatch struct {
	*core
	accelerator *acceleration
	soon        func() // has the node reported

	mu   sync.Mutex
	last []api.HardwareCheck
}

// checks returns what was found last; empty: nothing yet. It is read-only.
func (h *hardwareWatch) checks() []api.HardwareCheck {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last
}

// run looks at the machine until ctx ends.
func (h *hardwareWatch) run(ctx context.Context) {
	if h.o.Hardware == nil {
		return
	}
	for began := h.o.Now(); ctx.Err() == nil && (!h.cache.isSynced() || h.accelerator.how() == "" && h.o.Now().Sub(began) < hardwareAwait); {
		sleep(ctx, time.Second)
	}
	for ctx.Err() == nil {
		h.look(ctx)
		sleep(ctx, hardwareEvery)
	}
}

// look once, and have the node reported if there is something new.
func (h *hardwareWatch) look(ctx context.Context) {
	within, cancel := context.WithTimeout(ctx, hardwareTime)
	defer cancel()
	now := h.o.Hardware(within, string(h.accelerator.how()), h.others())
	if ctx.Err() != nil {
		return // what was cut short says nothing
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

// others are the nodes that should answer now.
func (h *hardwareWatch) others() (list []api.Node) {
	for _, n := range all(h.cache, h.cache.nodes) {
		if st := n.Assignment.State; n.Meta.ID != string(h.o.NodeID) && n.Meta.DeletedAt == nil && st != api.NodeLost && st != api.NodeSuspect {
			list = append(list, n)
		}
	}
	slices.SortFunc(list, func(a, b api.Node) int { return strings.Compare(a.Meta.ID, b.Meta.ID) })
	return list
}

// hardwareCondition is the node's condition Hardware: not true while a check has
// failed.
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
