package ceph

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
	"github.com/basalt-gpu/basalt/sds/ceph/command"
	"github.com/basalt-gpu/basalt/sds/imagefile"
	"github.com/basalt-gpu/basalt/sds/qemuimg"
)

func (d *Driver) receiver() imagefile.Receiver {
	return imagefile.Receiver{Limits: d.opt.Limits, Room: d.room, AllowFileURL: d.opt.AllowFileURL, URLs: d.opt.URLs}
}

// ImportImage implements sds.Driver.
func (d *Driver) ImportImage(ctx context.Context, in sds.ImageImport) (sds.Image, error) {
	if err := in.Validate(); err != nil {
		return sds.Image{}, err
	}
	id := string(in.ID)
	unlock, err := d.locks.Lock(ctx, string(images)+"/"+id)
	if err != nil {
		return sds.Image{}, err
	}
	defer unlock()
	s, err := d.read(ctx, images, id)
	if err != nil || s.made != nil {
		return d.image(in.ID, s), err
	}
	disk, letGo := d.newDisk(images, id)
	defer letGo()
	r, err := d.receive(ctx, in, disk)
	if err != nil {
		d.clear(ctx, r.disks())
		return sds.Image{}, err
	}
	if s, err = d.write(ctx, images, id, r); err != nil {
		d.discard(ctx, images, id, disk)
		return sds.Image{}, err
	}
	if !s.names(disk) {
		d.clear(ctx, r.disks()) // another import was first
	}
	if s.made == nil {
		return sds.Image{}, images.notFound(id)
	}
	return d.image(in.ID, s), nil
}

// sent returns the name of the disk with an image's received file.
func sent(disk string) string { return disk + sentMark }

const sentMark = ".f"

// inFlight is the number of concurrent writes of a copy into the cluster: one
// at a time would take a round trip per 2 MiB.
const inFlight = "16"

// receive imports an image into a disk with its snapshot.
func (d *Driver) receive(ctx context.Context, in sds.ImageImport, disk string) (record, error) {
	r := record{Do: create, Disk: disk, Format: in.Format}
	source, size, err := d.receiver().Open(ctx, in)
	if err != nil {
		return r, fmt.Errorf("open the source of image %s: %w", in.ID, err)
	}
	defer source.Close()
	dir, err := os.MkdirTemp(d.opt.Staging, stagingMark)
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "image")
	got, err := d.receiver().Receive(ctx, in, source, size, file)
	if err != nil {
		return r, fmt.Errorf("receive image %s: %w", in.ID, err)
	}
	r.SHA256, r.SizeBytes, r.VirtualBytes = got.SHA256, got.SizeBytes, got.VirtualBytes
	if in.Format != sds.QCOW2 {
		err = d.longRBD(ctx, "import", file, d.spec(disk))
	} else {
		r.Sent = sent(disk)
		if err = d.longRBD(ctx, "import", file, d.spec(r.Sent)); err == nil {
			err = qemuimg.Export(ctx, file, dir, in.Format, func(name string) error {
				return d.qemuImg(ctx, nil, "convert", "-q", "-W", "-m", inFlight, "-f", "raw", "-O", "raw", name, d.file(disk))
			})
		}
	}
	if err != nil {
		return r, fmt.Errorf("copy image %s into the cluster: %w", in.ID, err)
	}
	return r, d.keepSnap(ctx, disk, base)
}

func (d *Driver) image(id api.ImageID, s state) sds.Image {
	m := s.made
	if m == nil {
		return sds.Image{}
	}
	return sds.Image{
		ID: id, Format: m.Format, SHA256: m.SHA256, SizeBytes: m.SizeBytes, VirtualBytes: m.VirtualBytes, Path: d.spec(m.Disk) + "@" + base,
	}
}

// Image implements sds.Driver.
func (d *Driver) Image(ctx context.Context, id api.ImageID) (sds.Image, error) {
	if err := sds.CheckID(string(id)); err != nil {
		return sds.Image{}, err
	}
	s, err := d.find(ctx, images, string(id))
	return d.image(id, s), err
}

// Images implements sds.Driver.
func (d *Driver) Images(ctx context.Context) ([]sds.Image, error) {
	disks, err := d.disks(ctx)
	if err != nil {
		return nil, err
	}
	var all []sds.Image
	seen := map[string]bool{}
	for _, disk := range disks {
		k, id, _, ok := ownerOf(disk)
		if !ok || k != images || seen[id] {
			continue
		}
		seen[id] = true
		s, err := d.read(ctx, images, id)
		if err != nil {
			return nil, err
		}
		if s.made != nil {
			all = append(all, d.image(api.ImageID(id), s))
		}
	}
	slices.SortFunc(all, func(a, b sds.Image) int { return cmp.Compare(a.ID, b.ID) })
	return all, nil
}

// deletions limits the attempts to delete an image while volumes of it are
// created and deleted.
const deletions = 3

// DeleteImage implements sds.Driver. It first writes the deletion to the log;
// if there are volumes after all, it writes that the image exists again.
func (d *Driver) DeleteImage(ctx context.Context, id api.ImageID) error {
	if err := sds.CheckID(string(id)); err != nil {
		return err
	}
	unlock, err := d.locks.Lock(ctx, string(images)+"/"+string(id))
	if err != nil {
		return err
	}
	defer unlock()
	s, err := d.read(ctx, images, string(id))
	for try := 0; err == nil && s.made != nil; try++ {
		if try == deletions {
			return api.Errorf(api.CodeInUse, "a volume is being created from image %s", id).WithHint("try again")
		}
		s, err = d.tryDelete(ctx, id, *s.made)
	}
	if err != nil {
		return err
	}
	_, err = d.removeUnneeded(ctx, images, string(id), s)
	return err
}

func (d *Driver) tryDelete(ctx context.Context, id api.ImageID, made record) (state, error) {
	if err := d.unused(ctx, id, made.Disk); err != nil {
		return state{}, err
	}
	s, err := d.remove(ctx, images, string(id))
	if err != nil || s.made != nil {
		return s, err
	}
	err = d.removeSnap(ctx, made.Disk, base)
	if command.Is(err, syscall.EBUSY) {
		return d.write(ctx, images, string(id), made)
	}
	if command.Is(err, syscall.ENOENT) {
		err = nil
	}
	return s, err
}

// unused returns in_use if volumes are created from the image.
func (d *Driver) unused(ctx context.Context, id api.ImageID, disk string) error {
	clones, err := d.clones(ctx, disk, base)
	if command.Is(err, syscall.ENOENT) {
		return nil
	}
	if err != nil || len(clones) == 0 {
		return err
	}
	_, volume, _, _ := ownerOf(clones[0])
	return api.Errorf(api.CodeInUse, "volume %s was created from image %s", volume, id).WithHint("delete the volume first")
}

// ExportImage implements sds.Driver. The file is in the staging directory,
// without a name, until it is closed.
func (d *Driver) ExportImage(ctx context.Context, id api.ImageID) (io.ReadSeekCloser, sds.Image, error) {
	if err := sds.CheckID(string(id)); err != nil {
		return nil, sds.Image{}, err
	}
	s, err := d.find(ctx, images, string(id))
	if err != nil {
		return nil, sds.Image{}, err
	}
	dir, err := os.MkdirTemp(d.opt.Staging, stagingMark)
	if err != nil {
		return nil, sds.Image{}, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "image")
	disk := cmp.Or(s.made.Sent, s.made.Disk+"@"+base)
	err = d.longRBD(ctx, "export", d.spec(disk), file)
	if command.Is(err, syscall.ENOENT) {
		return nil, sds.Image{}, images.notFound(string(id))
	}
	if err != nil {
		return nil, sds.Image{}, err
	}
	f, err := os.Open(file)
	return f, d.image(id, s), err
}

// stagingMark is the prefix of directories in the staging directory.
const stagingMark = "ceph-"

// clearStaging removes what a killed process left.
func (d *Driver) clearStaging() error {
	if err := os.MkdirAll(d.opt.Staging, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(d.opt.Staging)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), stagingMark) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(d.opt.Staging, e.Name())))
		}
	}
	return err
}
