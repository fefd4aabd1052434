package agent

import (
	"context"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// reconcileNode is the return of a node that was declared lost: it destroys
// what is no longer its own, says so, and only then takes work again.
//
//	assignment.epoch = 5, observed 4 ─► nothing is started
//	          │ give up: domains, vGPUs, files, local volumes that the store
//	          ▼          gives to others or does not know
//	status.observedEpoch = 5 ─► the planner makes the node Ready
func (a *Agent) reconcileNode(ctx context.Context) (time.Duration, error) {
	n, ok := a.cache.self()
	if !ok || n.Assignment.Epoch <= a.epoch.get() {
		return 0, nil
	}
	a.log.Warn("this node was declared lost: giving up what is no longer its own", "epoch", n.Assignment.Epoch)
	// What this node still believes to be its own is asked about too.
	for _, in := range all(a.cache, a.cache.instances) {
		if err := a.refresh(ctx, api.KindInstance, in.Meta.ID); err != nil {
			return 0, err
		}
	}
	if err := a.sweepRuns(ctx); err != nil {
		return 0, err
	}
	// A volume in the way does not keep the node from working: nobody else has
	// it, and the next sweep tries again.
	if err := a.sweepVolumes(ctx); err != nil {
		a.log.Warn("giving up volumes", "error", err)
	}
	a.epoch.raise(n.Assignment.Epoch)
	if err := a.reporter.reportNode(ctx); err != nil {
		return 0, err
	}
	for _, k := range a.cache.instanceKeys() {
		a.kick(k)
	}
	return 0, nil
}
