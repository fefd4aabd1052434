package agent

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

const orphansEvery = time.Minute

// orphans removes what lies on the node and belongs to no object of the
// cluster: what a restore or a crash of the control plane left behind. Nothing
// is removed on the cache's word alone: the store is asked, and only its clear
// "not found", or another node's name on it, counts.
func (a *Agent) orphans(ctx context.Context) {
	for ctx.Err() == nil {
		if a.cache.isSynced() {
			if err := a.sweep(ctx); err != nil && ctx.Err() == nil {
				a.log.Warn("looking for orphans", "error", err)
			}
			sleep(ctx, orphansEvery)
		} else {
			sleep(ctx, 200*time.Millisecond)
		}
	}
}

func (a *Agent) sweep(ctx context.Context) error {
	domains, err := a.o.Machines.List(ctx)
	if err != nil {
		return err
	}
	for _, d := range domains {
		if gone, err := a.notMine(ctx, api.KindInstance, string(d.ID)); err != nil || !gone {
			continue
		}
		a.log.Warn("removing a virtual machine that no instance owns", "id", d.ID)
		if err := a.o.Machines.Destroy(ctx, d.ID); err != nil {
			return err
		}
		if err := a.o.Machines.Undefine(ctx, d.ID); err != nil {
			return err
		}
	}
	if a.o.VGPUs != nil {
		ids, err := a.o.VGPUs.List(ctx)
		if err != nil {
			return err
		}
		for _, id := range ids {
			if gone, err := a.notMine(ctx, api.KindInstance, string(id)); err != nil || !gone {
				continue
			}
			a.log.Warn("removing a vGPU that no instance owns", "id", id)
			if err := a.o.VGPUs.Remove(ctx, id); err != nil {
				return err
			}
		}
	}
	if err := a.sweepFiles(ctx); err != nil {
		return err
	}
	volumes, err := a.o.Volumes.Volumes(ctx)
	if err != nil {
		return err
	}
	for _, v := range volumes {
		if gone, err := a.notMine(ctx, api.KindVolume, string(v.ID)); err != nil || !gone {
			continue
		}
		a.log.Warn("removing a volume that the cluster does not know", "id", v.ID)
		if err := a.o.Volumes.DeleteVolume(ctx, v.ID); err != nil {
			return err
		}
	}
	return nil
}

func (a *Agent) sweepFiles(ctx context.Context) error {
	dir := filepath.Join(a.o.DataDir, "instances")
	entries, err := os.ReadDir(dir)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if gone, err := a.notMine(ctx, api.KindInstance, e.Name()); err != nil || !gone {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// notMine is true when the store says that the object does not exist or lives
// on another node.
func (a *Agent) notMine(ctx context.Context, kind api.Kind, id string) (bool, error) {
	o, err := a.o.Store.Get(ctx, kind, id)
	if api.CodeOf(err) == api.CodeNotFound {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	switch kind {
	case api.KindInstance:
		in, err := api.Decode[api.Instance](o)
		return err == nil && in.Assignment.Node != "" && in.Assignment.Node != a.o.NodeID, err
	default:
		v, err := api.Decode[api.Volume](o)
		return err == nil && v.Assignment.Node != "" && v.Assignment.Node != a.o.NodeID, err
	}
}
