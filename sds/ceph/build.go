package ceph

import (
	"context"
	"syscall"

	"github.com/basalt-gpu/basalt/sds"
	"github.com/basalt-gpu/basalt/sds/ceph/command"
)

// extent is the size of a disk: the bytes for the instance, and the LUKS
// header before them.
type extent struct{ bytes, luks int64 }

// build creates the disk of a volume, and returns its record.
func (d *Driver) build(ctx context.Context, v sds.VolumeCreate, disk string) (r record, e extent, err error) {
	r = record{
		Image: v.Image, FromVolume: v.Snapshot.Volume, Snapshot: v.Snapshot.ID, Standalone: v.Standalone, Epoch: v.Epoch,
	}
	if err := d.room(ctx, 1<<20); err != nil {
		return r, e, err
	}
	switch {
	case v.Clones():
		e, err = d.buildClone(ctx, v, disk)
	case v.Image != "" && !v.Standalone:
		e, err = d.buildFromImage(ctx, v, disk)
	default:
		e, err = d.buildBlank(ctx, v, disk, 0)
	}
	r.LUKSBytes = e.luks
	if err == nil && v.Fill != nil {
		err = v.Fill(ctx, d.source(disk, "", e.luks > 0))
	}
	return r, e, err
}

// buildBlank creates a blank disk that is at least as large as from, whose
// content it will have.
func (d *Driver) buildBlank(ctx context.Context, v sds.VolumeCreate, disk string, from int64) (e extent, err error) {
	if e.bytes, err = d.opt.Limits.VolumeBytes(v.SizeBytes, from); err != nil {
		return e, err
	}
	if v.Encryption != nil {
		e.luks, err = d.createLUKS(ctx, disk, e.bytes, *v.Encryption)
		return e, err
	}
	return e, d.createDisk(ctx, disk, e.bytes)
}

func (d *Driver) buildFromImage(ctx context.Context, v sds.VolumeCreate, disk string) (e extent, err error) {
	img, err := d.find(ctx, images, string(v.Image))
	if err != nil {
		return e, err
	}
	if img.made.Format == sds.ISO {
		return e, sds.NoVolume(v.Image)
	}
	from := img.made.Disk + "@" + base
	if v.Encryption != nil {
		// The image's content is not encrypted: it is copied.
		if e, err = d.buildBlank(ctx, v, disk, img.made.VirtualBytes); err != nil {
			return e, err
		}
		return e, d.copyIntoLUKS(ctx, from, disk, *v.Encryption)
	}
	if e.bytes, err = d.opt.Limits.VolumeBytes(v.SizeBytes, img.made.VirtualBytes); err != nil {
		return e, err
	}
	err = d.cloneDisk(ctx, from, disk)
	if command.Is(err, syscall.ENOENT) || command.Is(err, syscall.EINVAL) { // it is not protected any more: it is being deleted
		return e, images.notFound(string(v.Image))
	}
	if err != nil || e.bytes == img.made.VirtualBytes {
		return e, err
	}
	return e, d.resizeDisk(ctx, disk, e.bytes)
}

func (d *Driver) buildClone(ctx context.Context, v sds.VolumeCreate, disk string) (e extent, err error) {
	ref := v.Snapshot
	from, err := d.find(ctx, volumes, string(ref.Volume))
	if err != nil {
		return e, err
	}
	kept, err := d.snapshot(ctx, ref.Volume, ref.ID, from)
	if err != nil {
		return e, err
	}
	if e.bytes, err = d.opt.Limits.VolumeBytes(v.SizeBytes, kept.SizeBytes); err != nil {
		return e, err
	}
	e.luks = from.made.LUKSBytes
	a := sds.Access{Encryption: v.Encryption}
	if err := d.checkKey(ctx, ref.Volume, from, a, string(ref.ID)); err != nil {
		return e, err
	}
	err = d.cloneDisk(ctx, from.made.Disk+"@"+string(ref.ID), disk)
	if command.Is(err, syscall.ENOENT) || command.Is(err, syscall.EINVAL) {
		return e, sds.SnapshotNotFound(ref.Volume, ref.ID)
	}
	if err != nil || e.bytes == kept.SizeBytes {
		return e, err
	}
	return e, d.resizeDisk(ctx, disk, e.bytes+e.luks)
}
