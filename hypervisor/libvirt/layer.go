package libvirt

import (
	"context"
	"errors"
	"time"

	lv "libvirt.org/go/libvirt"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// jobPoll is how often to check the progress of a commit.
const jobPoll = 200 * time.Millisecond

func idle(id api.InstanceID) error {
	return api.Errorf(api.CodeState, "instance %s is not running", id)
}

// SnapshotDisk implements hypervisor.Devices.
func (d *Driver) SnapshotDisk(ctx context.Context, id api.InstanceID, serial, overlay string) error {
	return d.onDisk(ctx, id, serial, idle(id), func(dom *lv.Domain, a hypervisor.Attached, _ string) error {
		if name, _ := a.LayerName(serial, overlay); name != "" {
			return nil // it writes there already, or has done so before
		}
		text, err := a.SnapshotXML(serial, overlay)
		if err != nil {
			return err
		}
		snap, err := dom.CreateSnapshotXML(text, lv.DOMAIN_SNAPSHOT_CREATE_DISK_ONLY|lv.DOMAIN_SNAPSHOT_CREATE_NO_METADATA|
			lv.DOMAIN_SNAPSHOT_CREATE_ATOMIC|lv.DOMAIN_SNAPSHOT_CREATE_REUSE_EXT)
		if err != nil {
			return err
		}
		return snap.Free()
	})
}

// CommitDisk implements hypervisor.Devices.
//
//	         BlockCommit          all is copied            (top written to: pivot)
//	no job ─────────────► a job ─────────────────► no job, top is not in the chain
//
// A caller that ends in between leaves a job that continues; the next call
// waits for it.
func (d *Driver) CommitDisk(ctx context.Context, id api.InstanceID, serial, top, base string) error {
	for started := false; ; {
		done := false
		err := d.onDisk(ctx, id, serial, idle(id), func(dom *lv.Domain, a hypervisor.Attached, device string) error {
			job, err := dom.GetBlockJobInfo(device, 0)
			if err != nil {
				return err
			}
			below, _ := a.LayerName(serial, base)
			above, writes := a.LayerName(serial, top)
			switch {
			case job.Type != lv.DOMAIN_BLOCK_JOB_TYPE_UNKNOWN:
				if !a.Mirrored(serial) {
					return nil
				}
				return dom.BlockJobAbort(device, lv.DOMAIN_BLOCK_JOB_ABORT_PIVOT)
			case below == "":
				return api.Errorf(api.CodeNotFound, "disk %s of instance %s is not based on %s", serial, id, base)
			case above == "":
				done = true
				return nil
			case started:
				return errors.New("libvirt: block commit ended before it was complete")
			}
			var flags lv.DomainBlockCommitFlags
			if writes {
				flags = lv.DOMAIN_BLOCK_COMMIT_ACTIVE
			}
			started = true
			return dom.BlockCommit(device, below, above, 0, flags)
		})
		if err != nil || done {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(jobPoll):
		}
	}
}
