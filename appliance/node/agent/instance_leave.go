package agent

import (
	"context"
	"errors"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// leave removes what this node has of an instance that is not its own: it was
// assigned to another node, was migrated, or is unknown to the cluster.
func (rec *instanceReconciler) leave(ctx context.Context, id api.InstanceID) error {
	s, err := rec.domain.status(ctx, id)
	if err != nil {
		return err
	}
	if s.State == hypervisor.Missing && !exists(rec.files.dir(id)) && !exists(rec.meter.path(string(id))) {
		return nil
	}
	gone, o, err := rec.notMine(ctx, api.KindInstance, string(id))
	if err != nil || !gone {
		return err
	}
	rec.log.Warn("destroying instance that belongs to another node", "id", id, "state", s.State)
	if err := rec.destroy(ctx, id, s.State); err != nil {
		return err
	}
	if err := rec.domain.undefine(ctx, id); err != nil {
		return err
	}
	if err := rec.ports.unplug(ctx, id); err != nil {
		return err
	}
	if err := rec.meter.leave(ctx, api.KindInstance, string(id), o); err != nil {
		return err
	}
	if rec.o.VGPUs != nil && exists(rec.files.vgpuMark(id)) {
		if err := rec.vgpus.remove(ctx, id); err != nil {
			return err
		}
	}
	r, err := rec.files.readRun(id)
	rec.disks.forgetKeys(ctx, r.Opens)
	if err == nil && r.Volume != "" { // created for a migration that failed
		err = rec.volumes.leave(ctx, string(r.Volume))
	}
	for _, v := range r.Receives { // of a stopped instance's migration that failed
		err = errors.Join(err, rec.volumes.leave(ctx, string(v)))
	}
	if err != nil {
		return err
	}
	return rec.files.drop(id)
}

// destroy ends the domain, whatever its state.
func (rec *instanceReconciler) destroy(ctx context.Context, id api.InstanceID, s hypervisor.State) error {
	if rec.o.Migrator != nil && (s == hypervisor.Incoming || s == hypervisor.Missing) {
		if err := rec.domain.discardMigration(ctx, id); err != nil {
			return err
		}
	}
	if !s.Active() {
		return nil
	}
	return rec.domain.destroy(ctx, id)
}
