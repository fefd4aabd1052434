package ceph

import (
	"context"
	"crypto/rand"
	"strings"
	"syscall"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
	"github.com/basalt-gpu/basalt/sds/ceph/command"
)

const closeTime = 2 * time.Minute

// OpenForReading implements sds.Driver. A snapshot is held by a clone of it,
// which is never opened; the volume itself by a snapshot for this reader.
func (d *Driver) OpenForReading(ctx context.Context, v api.VolumeID, id api.SnapshotID) (sds.Reading, error) {
	unlock, err := d.lockVolume(ctx, v, nil)
	if err != nil {
		return sds.Reading{}, err
	}
	defer unlock()
	s, err := d.find(ctx, volumes, string(v))
	if err != nil {
		return sds.Reading{}, err
	}
	mark, letGo := d.hold(readMark + d.session + "." + strings.ToLower(rand.Text()[:8]))
	var r sds.Reading
	if id == "" {
		r, err = d.readVolume(ctx, v, s, mark, letGo)
	} else {
		r, err = d.readSnapshot(ctx, v, id, s, mark, letGo)
	}
	if err != nil {
		letGo() // its remains are swept
	}
	return r, err
}

func (d *Driver) readSnapshot(ctx context.Context, v api.VolumeID, id api.SnapshotID, s state, mark string, letGo func()) (sds.Reading, error) {
	if err := sds.CheckID(string(id)); err != nil {
		return sds.Reading{}, err
	}
	disk, luks := s.made.Disk, s.made.LUKSBytes
	kept, err := d.snapshot(ctx, v, id, s)
	if err != nil {
		return sds.Reading{}, err
	}
	err = d.cloneDisk(ctx, disk+"@"+string(id), mark)
	if command.Is(err, syscall.ENOENT) || command.Is(err, syscall.EINVAL) {
		return sds.Reading{}, sds.SnapshotNotFound(v, id)
	}
	if err != nil {
		return sds.Reading{}, err
	}
	return sds.Reading{
		Source: d.source(disk, string(id), luks > 0), SizeBytes: kept.SizeBytes,
		Close: d.closer(letGo, func(ctx context.Context) error { return d.removeDisk(ctx, mark) }),
	}, nil
}

func (d *Driver) readVolume(ctx context.Context, v api.VolumeID, s state, mark string, letGo func()) (sds.Reading, error) {
	if err := d.closed(ctx, v, s); err != nil {
		return sds.Reading{}, err
	}
	disk := s.made.Disk
	if err := d.keepSnap(ctx, disk, mark); err != nil {
		return sds.Reading{}, err
	}
	said, err := d.volume(ctx, v, s)
	if err != nil {
		return sds.Reading{}, err
	}
	return sds.Reading{
		Source: d.source(disk, mark, s.made.LUKSBytes > 0), SizeBytes: said.SizeBytes,
		Close: d.closer(letGo, func(ctx context.Context) error { return d.removeSnap(ctx, disk, mark) }),
	}, nil
}

func (d *Driver) closer(letGo func(), end func(context.Context) error) func() error {
	return func() error {
		defer letGo()
		ctx, cancel := context.WithTimeout(context.Background(), closeTime)
		defer cancel()
		return end(ctx)
	}
}

// checkNotRead returns an error if the volume is open for reading, before a
// change to it.
func (d *Driver) checkNotRead(ctx context.Context, v api.VolumeID, s state) error {
	snaps, err := d.snaps(ctx, s.made.Disk)
	if err != nil {
		return err
	}
	return d.reading(v, snaps)
}

func (d *Driver) reading(v api.VolumeID, snaps []snap) error {
	for _, s := range snaps {
		session, ok := strings.CutPrefix(s.Name, readMark)
		if ok && s.Protected == "true" && (!d.own(session) || d.held.has(s.Name)) {
			return api.Errorf(api.CodeInUse, "volume %s is being read, probably by a backup", v).WithHint("wait until that has finished")
		}
	}
	return nil
}
