package agent

import (
	"context"
	"fmt"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// domainCalls has the calls of the hypervisor that several tasks make. Their errors
// name the operation and the instance.
type domainCalls struct{ o *Options }

// list returns the domains of this node.
func (d *domainCalls) list(ctx context.Context) ([]hypervisor.Status, error) {
	all, err := d.o.Machines.List(ctx)
	return all, wrap(err, "list the domains of this node")
}

// abilities returns what machines the hypervisor supports.
func (d *domainCalls) abilities(ctx context.Context) (hypervisor.Abilities, error) {
	have, err := d.o.Machines.Abilities(ctx)
	return have, wrap(err, "query which machines the hypervisor supports")
}

// status returns the state of the instance's domain.
func (d *domainCalls) status(ctx context.Context, id api.InstanceID) (hypervisor.Status, error) {
	s, err := d.o.Machines.Status(ctx, id)
	return s, wrap(err, "query the domain state of instance %s", id)
}

// disks returns the disks that the instance's domain has open.
func (d *domainCalls) disks(ctx context.Context, id api.InstanceID) ([]hypervisor.OpenDisk, error) {
	open, err := d.o.Machines.Disks(ctx, id)
	return open, wrap(err, "list the open disks of instance %s", id)
}

// drives returns the CD drives of the instance's domain.
func (d *domainCalls) drives(ctx context.Context, id api.InstanceID) ([]hypervisor.Drive, error) {
	drives, err := d.o.Machines.Drives(ctx, id)
	return drives, wrap(err, "list the CD drives of instance %s", id)
}

// resume resumes the instance's paused domain.
func (d *domainCalls) resume(ctx context.Context, id api.InstanceID) error {
	return wrap(d.o.Machines.Resume(ctx, id), "resume the domain of instance %s", id)
}

// destroy ends the instance's domain without the guest.
func (d *domainCalls) destroy(ctx context.Context, id api.InstanceID) error {
	return wrap(d.o.Machines.Destroy(ctx, id), "destroy the domain of instance %s", id)
}

// undefine removes the definition of the instance's domain.
func (d *domainCalls) undefine(ctx context.Context, id api.InstanceID) error {
	return wrap(d.o.Machines.Undefine(ctx, id), "undefine the domain of instance %s", id)
}

// migration returns the state of the instance's migration, outgoing or incoming. The
// node must have a Migrator, here and below.
func (d *domainCalls) migration(ctx context.Context, id api.InstanceID) (hypervisor.MigrationStatus, error) {
	s, err := d.o.Migrator.MigrationStatus(ctx, id)
	return s, wrap(err, "query the migration of instance %s", id)
}

// abortMigration ends an outgoing migration; the domain continues on this node.
func (d *domainCalls) abortMigration(ctx context.Context, id api.InstanceID) error {
	return wrap(d.o.Migrator.AbortMigration(ctx, id), "abort the migration of instance %s", id)
}

// discardMigration removes what this node has received of an incoming instance.
func (d *domainCalls) discardMigration(ctx context.Context, id api.InstanceID) error {
	return wrap(d.o.Migrator.DiscardMigration(ctx, id), "discard the incoming migration of instance %s", id)
}

// wrap returns err with the operation that failed and its object before it, or nil if
// err is nil.
func wrap(err error, operation string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(operation, args...), err)
}
