package ceph

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
	"github.com/basalt-gpu/basalt/sds/ceph/command"
)

// lockVolume locks the volume in this process, if the request is valid.
func (d *Driver) lockVolume(ctx context.Context, id api.VolumeID, valid error) (unlock func(), err error) {
	if err := errors.Join(valid, sds.CheckID(string(id))); err != nil {
		return nil, err
	}
	return d.locks.Lock(ctx, string(volumes)+"/"+string(id))
}

// CreateVolume implements sds.Driver.
func (d *Driver) CreateVolume(ctx context.Context, v sds.VolumeCreate) (sds.Volume, error) {
	unlock, err := d.lockVolume(ctx, v.ID, v.Validate())
	if err != nil {
		return sds.Volume{}, err
	}
	defer unlock()
	s, err := d.read(ctx, volumes, string(v.ID))
	if err != nil {
		return sds.Volume{}, err
	}
	if s.made != nil {
		if err := v.Same(d.describe(v.ID, s)); err != nil {
			return sds.Volume{}, err
		}
		return d.volume(ctx, v.ID, s)
	}
	return d.publish(ctx, v, create)
}

// RecreateVolume implements sds.Driver.
func (d *Driver) RecreateVolume(ctx context.Context, v sds.VolumeCreate) (sds.Volume, error) {
	unlock, err := d.lockVolume(ctx, v.ID, v.Validate())
	if err != nil {
		return sds.Volume{}, err
	}
	defer unlock()
	s, err := d.read(ctx, volumes, string(v.ID))
	switch {
	case err != nil:
		return sds.Volume{}, err
	case s.made == nil:
		return d.publish(ctx, v, create)
	}
	if anew, err := v.MustRecreate(d.describe(v.ID, s)); err != nil || !anew {
		if err != nil {
			return sds.Volume{}, err
		}
		return d.volume(ctx, v.ID, s)
	}
	if err := errors.Join(d.closed(ctx, v.ID, s), d.checkNoSnapshots(ctx, v.ID, s)); err != nil {
		return sds.Volume{}, err
	}
	return d.publish(ctx, v, recreate)
}

// publish creates a volume: its disk is completed under a unique name, and
// belongs to the volume from the line in the log on, if that was the first.
// Otherwise it is removed.
func (d *Driver) publish(ctx context.Context, v sds.VolumeCreate, do verb) (sds.Volume, error) {
	disk, letGo := d.newDisk(volumes, string(v.ID))
	defer letGo()
	r, e, err := d.build(ctx, v, disk)
	if err != nil {
		d.clear(ctx, []string{disk})
		return sds.Volume{}, err
	}
	r.Do, r.Disk = do, disk
	s, err := d.write(ctx, volumes, string(v.ID), r)
	if err != nil {
		d.discard(ctx, volumes, string(v.ID), disk)
		return sds.Volume{}, err
	}
	if !s.names(disk) {
		d.clear(ctx, []string{disk})
	}
	if s.made == nil {
		return sds.Volume{}, volumes.notFound(string(v.ID)) // deleted already
	}
	if err := v.Same(d.describe(v.ID, s)); err != nil {
		return sds.Volume{}, err
	}
	if len(s.past) > 0 {
		d.clear(ctx, s.past[len(s.past)-1:]) // earlier ones were removed when they were replaced
	}
	if s.names(disk) && v.Fill == nil && v.Encryption == nil { // it is empty
		return d.sized(v.ID, s, usage{bytes: e.bytes}), nil
	}
	return d.volume(ctx, v.ID, s)
}

// discard voids a disk after its line was sent without an answer: the line may
// have arrived, or may still arrive.
func (d *Driver) discard(ctx context.Context, k kind, id, disk string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), clearTime)
	defer cancel()
	s, err := d.void(ctx, k, id, disk)
	if err != nil || s.names(disk) {
		return
	}
	_, _ = d.removeUnneeded(ctx, k, id, s)
}

const clearTime = time.Minute

// clear removes unneeded disks as far as possible now, also after the end of
// ctx: the rest is swept.
func (d *Driver) clear(ctx context.Context, disks []string) {
	if ctx.Err() != nil {
		var cancel func()
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), clearTime)
		defer cancel()
	}
	for _, disk := range disks {
		_ = d.removeDisk(ctx, disk)
	}
}

// describe returns the volume as described by its log, without querying its
// disk.
func (d *Driver) describe(id api.VolumeID, s state) sds.Volume {
	m := s.made
	return sds.Volume{
		ID: id, Image: m.Image, Snapshot: sds.SnapshotRef{Volume: m.FromVolume, ID: m.Snapshot},
		Epoch: m.Epoch, Rollbacks: s.rollbacks, Standalone: m.Standalone, Source: d.source(m.Disk, "", m.LUKSBytes > 0),
	}
}

func (d *Driver) source(disk, snapshot string, encrypted bool) sds.Source {
	return sds.Source{Format: sds.Raw, Encrypted: encrypted, RBD: &sds.RBD{
		Pool: d.opt.Pool, Image: disk, Snapshot: snapshot, Monitors: *d.mons.Load(), User: d.opt.User,
	}}
}

// volume returns the volume of s. If it was replaced meanwhile it is read
// again.
func (d *Driver) volume(ctx context.Context, id api.VolumeID, s state) (sds.Volume, error) {
	for range 3 {
		u, err := d.usage(ctx, s.made.Disk)
		if err == nil {
			return d.sized(id, s, u), nil
		}
		if !command.Is(err, syscall.ENOENT) {
			return sds.Volume{}, err
		}
		if s, err = d.find(ctx, volumes, string(id)); err != nil {
			return sds.Volume{}, err
		}
	}
	return sds.Volume{}, volumes.notFound(string(id))
}

func (d *Driver) sized(id api.VolumeID, s state, u usage) sds.Volume {
	v := d.describe(id, s)
	v.SizeBytes = u.bytes - s.made.LUKSBytes
	v.AllocatedBytes = max(u.allocated, 4096) // at least its header
	return v
}

// Volume implements sds.Driver.
func (d *Driver) Volume(ctx context.Context, id api.VolumeID) (sds.Volume, error) {
	if err := sds.CheckID(string(id)); err != nil {
		return sds.Volume{}, err
	}
	s, err := d.find(ctx, volumes, string(id))
	if err != nil {
		return sds.Volume{}, err
	}
	return d.volume(ctx, id, s)
}

const atOnce = 4 // logs that are read concurrently

// Volumes implements sds.Driver. A volume's age is measured by the clocks of
// the nodes, which the cluster requires to be synchronized.
func (d *Driver) Volumes(ctx context.Context) ([]sds.Volume, error) {
	used, ids, err := d.listed(ctx)
	if err != nil {
		return nil, err
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var all []sds.Volume
	var errs []error
	tokens := make(chan struct{}, atOnce)
	for id := range ids {
		tokens <- struct{}{}
		wg.Go(func() {
			defer func() { <-tokens }()
			v, there, err := d.listedVolume(ctx, api.VolumeID(id), used)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, err)
			} else if there {
				all = append(all, v)
			}
		})
	}
	wg.Wait()
	slices.SortFunc(all, func(a, b sds.Volume) int { return cmp.Compare(a.ID, b.ID) })
	return all, errors.Join(errs...)
}

// listed returns the IDs of volumes that have disks, and their usage: nil if
// one was removed meanwhile, for which Ceph returns only an error.
func (d *Driver) listed(ctx context.Context) (used map[string]usage, ids map[string]bool, err error) {
	var names []string
	raw, err := d.rbd(ctx, "du", "--format", "json", "--pool", d.opt.Pool)
	if command.Is(err, syscall.ENOENT) {
		names, err = d.disks(ctx)
	} else if err == nil {
		used, err = decodeUsage(raw)
		names = slices.Collect(maps.Keys(used))
	}
	ids = map[string]bool{}
	for _, disk := range names {
		if k, id, _, ok := ownerOf(disk); ok && k == volumes {
			ids[id] = true
		}
	}
	return used, ids, err
}

func (d *Driver) listedVolume(ctx context.Context, id api.VolumeID, used map[string]usage) (v sds.Volume, there bool, err error) {
	s, err := d.read(ctx, volumes, string(id))
	if err != nil || s.made == nil {
		return v, false, err
	}
	if u, ok := used[s.made.Disk]; ok {
		v = d.sized(id, s, u)
	} else if v, err = d.volume(ctx, id, s); err != nil { // created or replaced in between
		if api.CodeOf(err) == api.CodeNotFound {
			err = nil
		}
		return v, false, err
	}
	v.Age = max(0, d.opt.Now().Sub(time.UnixMilli(s.at)))
	return v, true, nil
}

// ResizeVolume implements sds.Driver.
func (d *Driver) ResizeVolume(ctx context.Context, id api.VolumeID, bytes int64, a sds.Access) (sds.Volume, error) {
	unlock, err := d.lockVolume(ctx, id, nil)
	if err != nil {
		return sds.Volume{}, err
	}
	defer unlock()
	s, err := d.find(ctx, volumes, string(id))
	if err != nil {
		return sds.Volume{}, err
	}
	want, err := d.opt.Limits.VolumeBytes(bytes, 0)
	if err != nil {
		return sds.Volume{}, err
	}
	if err := a.CheckKey(id, s.made.LUKSBytes > 0); err != nil {
		return sds.Volume{}, err
	}
	v, err := d.volume(ctx, id, s)
	switch {
	case err != nil:
		return sds.Volume{}, err
	case want < v.SizeBytes:
		return v, nil
	case want == v.SizeBytes:
		if a.Live != nil { // the machine may not know the new size
			err = resize(ctx, a.Live, id, want)
		}
		return v, err
	}
	if err := errors.Join(d.checkKey(ctx, id, s, a, ""), d.checkNotRead(ctx, id, s)); err != nil {
		return sds.Volume{}, err
	}
	return d.grow(ctx, id, s, v, want, a.Live)
}

// resize sets the size of the volume's disk in the machine that has it open.
func resize(ctx context.Context, live sds.Live, id api.VolumeID, bytes int64) error {
	if err := live.Resize(ctx, bytes); err != nil {
		return fmt.Errorf("resize volume %s in its instance: %w", id, err)
	}
	return nil
}

// grow grows a volume; if a machine has it open, its disk first.
func (d *Driver) grow(ctx context.Context, id api.VolumeID, s state, v sds.Volume, want int64, live sds.Live) (sds.Volume, error) {
	if live == nil {
		if err := d.closed(ctx, id, s); err != nil {
			return sds.Volume{}, err
		}
	} else {
		if err := resize(ctx, live, id, want); err != nil {
			return sds.Volume{}, err
		}
		// QEMU grows an RBD image itself.
		if v, err := d.volume(ctx, id, s); err != nil || v.SizeBytes >= want {
			return v, err
		}
	}
	err := d.resizeDisk(ctx, s.made.Disk, want+s.made.LUKSBytes)
	if command.Is(err, syscall.ENOENT) { // recreated meanwhile by another node
		return d.volume(ctx, id, s)
	}
	if err != nil {
		return sds.Volume{}, err
	}
	v.SizeBytes = want
	return v, nil
}

// DeleteVolume implements sds.Driver. The volume is deleted from the line in
// the log on; a disk that is still in use for a moment is swept.
func (d *Driver) DeleteVolume(ctx context.Context, id api.VolumeID) error {
	unlock, err := d.lockVolume(ctx, id, nil)
	if err != nil {
		return err
	}
	defer unlock()
	s, err := d.read(ctx, volumes, string(id))
	if err != nil {
		return err
	}
	if s.made != nil {
		if err := errors.Join(d.checkNoSnapshots(ctx, id, s), d.closed(ctx, id, s)); err != nil {
			return err
		}
		if s, err = d.remove(ctx, volumes, string(id)); err != nil || s.made != nil {
			return err // it was created again
		}
	}
	_, err = d.removeUnneeded(ctx, volumes, string(id), s)
	return err
}

// closed returns in_use while a hypervisor on any node has the volume open.
func (d *Driver) closed(ctx context.Context, id api.VolumeID, s state) error {
	used, err := d.open(ctx, s.made.Disk)
	if command.Is(err, syscall.ENOENT) {
		return nil
	}
	if err == nil && used {
		err = sds.InUse(id)
	}
	return err
}

// checkNoSnapshots returns in_use while the volume has snapshots or is open
// for reading.
func (d *Driver) checkNoSnapshots(ctx context.Context, id api.VolumeID, s state) error {
	snaps, err := d.snaps(ctx, s.made.Disk)
	if command.Is(err, syscall.ENOENT) {
		return nil
	}
	n := 0
	for _, s := range snaps {
		if s.kept() {
			n++
		}
	}
	if err == nil && n > 0 {
		err = sds.HasSnapshots(id, n)
	}
	return errors.Join(err, d.reading(id, snaps))
}

// Movable implements sds.Driver: disks are never copied, because all nodes
// share them.
func (d *Driver) Movable(ctx context.Context, id api.VolumeID) error {
	if err := sds.CheckID(string(id)); err != nil {
		return err
	}
	_, err := d.find(ctx, volumes, string(id))
	return err
}
