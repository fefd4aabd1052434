package agent

import (
	"context"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// nodeReconciler acts on the cluster's decisions about this node.
type nodeReconciler struct {
	*core
	epoch    *observedEpoch
	reporter *reporter
	sweeper  *orphanSweeper
}

// reconcile handles the return of a node that was declared lost: it destroys what
// is no longer the node's, reports the epoch, and only then does the node start
// instances again.
//
//	assignment.epoch = 5, observed 4 ─► nothing is started
//	          │ give up: domains, vGPUs, files, and local volumes that the store
//	          ▼          has assigned to others or does not have
//	status.observedEpoch = 5 ─► the planner makes the node Ready
func (rec *nodeReconciler) reconcile(ctx context.Context, id string) (time.Duration, error) {
	n, ok := rec.cache.self()
	if id != string(rec.o.NodeID) || !ok || n.Assignment.Epoch <= rec.epoch.get() {
		return 0, nil
	}
	rec.log.Warn("this node was declared lost: releasing objects that it no longer owns", "epoch", n.Assignment.Epoch)
	// What this node still takes for its own is refreshed from the store, too.
	for _, in := range all(rec.cache, rec.cache.instances) {
		if err := rec.refresh(ctx, api.KindInstance, in.Meta.ID); err != nil {
			return 0, err
		}
	}
	if err := rec.sweeper.sweepRuns(ctx); err != nil {
		return 0, err
	}
	// A volume that cannot be removed does not keep the node from working: no other
	// node has it, and the next sweep tries again.
	if err := rec.sweeper.sweepVolumes(ctx); err != nil {
		rec.log.Warn("release volumes failed, will try again", "error", err)
	}
	rec.epoch.raise(n.Assignment.Epoch)
	if err := rec.reporter.reportNode(ctx); err != nil {
		return 0, err
	}
	for _, k := range rec.cache.instanceKeys() {
		rec.trigger(k)
	}
	return 0, nil
}
