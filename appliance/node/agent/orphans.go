package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
)

const orphansEvery = time.Minute

// youngVolume is the age below which another node may still be creating a volume.
const youngVolume = 10 * time.Minute

// orphanSweeper removes from the node what is not its own.
type orphanSweeper struct {
	*core
	vgpus     *vgpuSlices
	ports     *portSet
	retention *retention
	instances *instanceReconciler
	volumes   *volumeReconciler
	backups   *backupReconciler
	media     *mediaSweeper
}

// run sweeps periodically: it removes what a restore or a crash of the control
// plane has left, and what was assigned to another node meanwhile. Nothing is
// removed because of the cache alone: the store is asked, and only its "not found",
// or an assignment to another node, counts. Volumes and images that are unknown to
// the store are even then kept for a while (retention.go).
func (s *orphanSweeper) run(ctx context.Context) {
	for ctx.Err() == nil {
		if s.cache.isSynced() {
			if err := s.sweep(ctx); err != nil && ctx.Err() == nil {
				s.log.Warn("find orphans failed", "error", err)
			}
			sleep(ctx, orphansEvery)
		} else {
			sleep(ctx, 200*time.Millisecond)
		}
	}
}

func (s *orphanSweeper) sweep(ctx context.Context) error {
	if !s.cache.isSynced() {
		return nil
	}
	return errors.Join(s.sweepRuns(ctx), s.ports.sweep(ctx), s.sweepVolumes(ctx), s.sweepReceipts(), s.backups.sweepReadings(ctx), s.sweepImages(ctx), s.media.sweep(ctx))
}

// sweepRuns removes whatever can run, or has run: domains, vGPUs, files. If it
// returns nil, nothing is left of other nodes' instances.
func (s *orphanSweeper) sweepRuns(ctx context.Context) error {
	ids, err := s.runs(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		if _, mine := get(s.cache, s.cache.instances, id); mine {
			continue // its own reconcile handles its assignment
		}
		errs = append(errs, s.instances.leave(ctx, api.InstanceID(id)), s.vgpus.leave(ctx, api.InstanceID(id)))
	}
	return errors.Join(errs...)
}

// runs returns the instances of which something is on the node, with what there is.
func (s *orphanSweeper) runs(ctx context.Context) (map[string][]string, error) {
	ids := map[string][]string{}
	domains, err := s.domain.list(ctx)
	if err != nil {
		return nil, err
	}
	for _, d := range domains {
		ids[string(d.ID)] = append(ids[string(d.ID)], "machine")
	}
	if s.o.VGPUs != nil {
		vgpus, err := s.o.VGPUs.List(ctx)
		if err != nil {
			return nil, fmt.Errorf("list the vGPUs of this node: %w", err)
		}
		for _, id := range vgpus {
			ids[string(id)] = append(ids[string(id)], "virtual GPU")
		}
	}
	entries, err := os.ReadDir(filepath.Join(s.o.DataDir, "instances"))
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	for _, e := range entries {
		ids[e.Name()] = append(ids[e.Name()], "files")
	}
	usage, err := os.ReadDir(filepath.Join(s.o.DataDir, "usage"))
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	for _, e := range usage {
		if id, ok := strings.CutSuffix(e.Name(), ".json"); ok && strings.HasPrefix(id, "ins-") {
			ids[id] = append(ids[id], "meter")
		}
	}
	return ids, nil
}

// sweepVolumes deletes from the node's own pools what is not its own, and from
// shared pools what is unknown to the store.
func (s *orphanSweeper) sweepVolumes(ctx context.Context) error {
	var errs []error
	for name, p := range s.pools.inOrder() {
		volumes, err := p.Volumes(ctx)
		if err != nil {
			errs = append(errs, fmt.Errorf("list the volumes of pool %s: %w", name, err))
			continue
		}
		if s.pools.shared(name) {
			errs = append(errs, s.sweepShared(ctx, name, p, volumes))
			continue
		}
		for _, v := range volumes {
			errs = append(errs, ignoreInUse(s.volumes.leave(ctx, string(v.ID))))
		}
	}
	usage, err := os.ReadDir(filepath.Join(s.o.DataDir, "usage"))
	if err != nil && !os.IsNotExist(err) {
		return errors.Join(append(errs, err)...)
	}
	for _, e := range usage { // meters of shared volumes that other nodes have now
		id, ok := strings.CutSuffix(e.Name(), ".json")
		if _, mine := get(s.cache, s.cache.volumes, id); ok && !mine && strings.HasPrefix(id, "vol-") {
			errs = append(errs, ignoreInUse(s.volumes.leave(ctx, id)))
		}
	}
	return errors.Join(errs...)
}

// sweepShared deletes the volumes of a shared pool that are unknown to the store.
// One node does that, and not for volumes younger than youngVolume.
func (s *orphanSweeper) sweepShared(ctx context.Context, name string, p sds.Driver, volumes []sds.Volume) error {
	if !s.members.onDutyFor(name, p) {
		return nil
	}
	var errs []error
	known := func(id api.VolumeID) bool { // asked after the volumes were listed
		_, err := s.read(ctx, api.KindVolume, string(id))
		return api.CodeOf(err) != api.CodeNotFound
	}
	for _, v := range sds.Orphans(volumes, youngVolume, known) {
		if s.retention.stays(name, api.KindVolume, string(v.ID)) {
			continue
		}
		s.log.Warn("removing a volume that is unknown to the cluster", "id", v.ID)
		errs = append(errs, ignoreInUse(s.volumes.drop(ctx, p, v.ID, api.Volume{})))
	}
	return errors.Join(errs...)
}

// sweepImages deletes copies of images that were deleted while this node was
// unreachable.
func (s *orphanSweeper) sweepImages(ctx context.Context) error {
	var errs []error
	for name, p := range s.pools.inOrder() {
		if s.pools.shared(name) && !s.members.onDutyFor(name, p) {
			continue
		}
		images, err := p.Images(ctx)
		errs = append(errs, wrap(err, "list the images of pool %s", name))
		for _, img := range images {
			if _, ok := get(s.cache, s.cache.images, string(img.ID)); ok {
				continue
			}
			if _, err := s.read(ctx, api.KindImage, string(img.ID)); api.CodeOf(err) != api.CodeNotFound {
				continue
			}
			if s.retention.stays(name, api.KindImage, string(img.ID)) {
				continue
			}
			s.log.Warn("removing an image that is unknown to the cluster", "id", img.ID)
			errs = append(errs, ignoreInUse(wrap(p.DeleteImage(ctx, img.ID), "delete image %s from pool %s", img.ID, name)))
		}
	}
	return errors.Join(errs...)
}

func ignoreInUse(err error) error {
	if api.CodeOf(err) == api.CodeInUse || api.CodeOf(err) == api.CodeNotFound {
		return nil
	}
	return err
}
