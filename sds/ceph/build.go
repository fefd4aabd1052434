package ceph

import (
	"context"
	"syscall"

	"github.com/basalt-gpu/basalt/sds"
	"github.com/basalt-gpu/basalt/sds/ceph/command"
)

// build the disk of a volume that is to be, and say what it is.
func (d *Driver) build(ctx context.Context, v sds.VolumeCreate, disk string) (record, error) {
	r := record{
		Image: v.Image, FromVolume: v.Snapshot.Volume, Snapshot: v.Snapshot.ID, Standalone: v.Standalone, Epoch: v.Epoch,
	}
	if err := d.room(ctx, 1<<20); err != nil {
		return r, err
	}
	var err error
	switch {
	case v.Clones():
		r.LUKSBytes, err = d.buildClone(ctx, v, disk)
	case v.Image != "" && !v.Standalone:
		r.LUKSBytes, err = d.buildFromImage(ctx, v, disk)
	default:
		r.LUKSBytes, err = d.buildBlank(ctx, v, disk, 0)
	}
	if err != nil {
		return r, err
	}
	if v.Fill != nil {
		err = v.Fill(ctx, d.source(disk, "", r.LUKSBytes > 0))
	}
	return r, err
}

// buildBlank is at least as large as from, which it will hold.
func (d *Driver) buildBlank(ctx context.Context, v sds.VolumeCreate, disk string, from int64) (luks int64, err error) {
	bytes, err := d.opt.Limits.VolumeBytes(v.SizeBytes, from)
	if err != nil {
		return 0, err
	}
	if v.Encryption != nil {
		return d.createLUKS(ctx, disk, bytes, *v.Encryption)
	}
	return 0, d.createDisk(ctx, disk, bytes)
}

func (d *Driver) buildFromImage(ctx context.Context, v sds.VolumeCreate, disk string) (luks int64, err error) {
	img, err := d.find(ctx, images, string(v.Image))
	if err != nil {
		return 0, err
	}
	from := img.made.Disk + "@" + base
	if v.Encryption != nil {
		// What the image holds is not encrypted: it is copied.
		if luks, err = d.buildBlank(ctx, v, disk, img.made.VirtualBytes); err != nil {
			return luks, err
		}
		return luks, d.copyIntoLUKS(ctx, from, disk, *v.Encryption)
	}
	bytes, err := d.opt.Limits.VolumeBytes(v.SizeBytes, img.made.VirtualBytes)
	if err != nil {
		return 0, err
	}
	err = d.cloneDisk(ctx, from, disk)
	if command.Is(err, syscall.ENOENT) || command.Is(err, syscall.EINVAL) { // its protection is gone: it is being deleted
		return 0, images.notFound(string(v.Image))
	}
	if err != nil || bytes == img.made.VirtualBytes {
		return 0, err
	}
	return 0, d.resizeDisk(ctx, disk, bytes)
}

func (d *Driver) buildClone(ctx context.Context, v sds.VolumeCreate, disk string) (luks int64, err error) {
	ref := v.Snapshot
	from, err := d.find(ctx, volumes, string(ref.Volume))
	if err != nil {
		return 0, err
	}
	kept, err := d.snapshot(ctx, ref.Volume, ref.ID, from)
	if err != nil {
		return 0, err
	}
	bytes, err := d.opt.Limits.VolumeBytes(v.SizeBytes, kept.SizeBytes)
	if err != nil {
		return 0, err
	}
	a := sds.Access{Encryption: v.Encryption}
	if err := d.checkKey(ctx, ref.Volume, from, a, string(ref.ID)); err != nil {
		return 0, err
	}
	err = d.cloneDisk(ctx, from.made.Disk+"@"+string(ref.ID), disk)
	if command.Is(err, syscall.ENOENT) || command.Is(err, syscall.EINVAL) {
		return 0, sds.SnapshotNotFound(ref.Volume, ref.ID)
	}
	luks = from.made.LUKSBytes
	if err != nil || bytes == kept.SizeBytes {
		return luks, err
	}
	return luks, d.resizeDisk(ctx, disk, bytes+luks)
}
