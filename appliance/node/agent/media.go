package agent

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
	"github.com/basalt-gpu/basalt/sds"
)

// mediaSet finds the media of instances' CD drives on this node.
type mediaSet struct {
	*core
	images interface {
		need(ctx context.Context, pool string, img api.Image, key string) (bool, error)
	}
}

// drives returns the CD drives that the instance's machine has at its next start. If a
// medium is not on this node, it is fetched, waits is what it waits for, and the key is
// triggered when it is there.
func (ms *mediaSet) drives(ctx context.Context, in api.Instance, key string) (drives []hypervisor.Drive, waits api.Reason, err error) {
	if !in.Spec.HasDrives() {
		return nil, waits, nil
	}
	drives = make([]hypervisor.Drive, api.MaxMedia)
	for i, id := range in.Spec.Drives()[:min(len(in.Spec.Drives()), api.MaxMedia)] {
		if id == "" {
			continue
		}
		path, missing, err := ms.file(ctx, id, key)
		if err != nil {
			return nil, waits, err
		}
		if missing.Text != "" {
			waits = missing // the other one is fetched meanwhile
		}
		drives[i].Medium = path
	}
	return drives, waits, nil
}

// file returns the path of an image in one of this node's pools of files. The local
// pool comes first, because the others depend on more than this node.
func (ms *mediaSet) file(ctx context.Context, id api.ImageID, key string) (path string, waits api.Reason, err error) {
	local, err := ms.pools.driver(api.PoolLocal)
	if err != nil {
		return "", waits, err
	}
	if path, err := imagePath(ctx, local, id); path != "" || err != nil {
		return path, waits, err
	}
	for name, p := range ms.pools.inOrder() {
		if name == api.PoolLocal || api.InCeph(name) {
			continue
		}
		if path, err := imagePath(ctx, p, id); path != "" || err != nil {
			return path, waits, err
		}
	}
	img, ok := get(ms.cache, ms.cache.images, string(id))
	if !ok {
		return "", waits, api.Errorf(api.CodeNotFound, "image %s in a CD drive does not exist any more", id).WithHint("eject it").Because(api.Cause{Code: api.CauseImageGone}, "")
	}
	there, err := ms.images.need(ctx, api.PoolLocal, img, key)
	switch {
	case err != nil:
		return "", waits, err
	case there:
		path, err = imagePath(ctx, local, id)
		return path, waits, err
	case img.Status.Phase != api.ImageReady:
		return "", about(api.CauseImageNotReady, "waiting for image", img.Meta.Name), nil
	}
	return "", about(api.CauseImageCopying, "fetching image", img.Meta.Name), nil
}

// imagePath returns the path of the image in a pool of files, or "" if it is not there.
func imagePath(ctx context.Context, p sds.Driver, id api.ImageID) (string, error) {
	img, err := p.Image(ctx, id)
	if api.CodeOf(err) == api.CodeNotFound {
		return "", nil
	}
	if err == nil && !filepath.IsAbs(img.Path) {
		err = fmt.Errorf("the path of image %s is %q, want an absolute one", id, img.Path)
	}
	return img.Path, wrap(err, "find image %s in its pool", id)
}

// driveState compares the CD drives of a machine with those that its instance has.
type driveState struct {
	waits   api.Reason // what a medium waits for
	missing bool       // the machine was started without the drives
	change  bool       // a medium is to be inserted or ejected
}

// compare returns the state of the drives of a running machine.
func (ms *mediaSet) compare(ctx context.Context, in api.Instance) (s driveState, err error) {
	have, err := ms.domain.drives(ctx, api.InstanceID(in.Meta.ID))
	if err != nil {
		return s, err
	}
	want, waits, err := ms.drives(ctx, in, key(api.KindInstance, in.Meta.ID))
	if err != nil {
		return s, err
	}
	media := slices.ContainsFunc(want, func(v hypervisor.Drive) bool { return v.Medium != "" })
	switch {
	case waits.Text != "":
		return driveState{waits: waits}, nil
	case len(have) == 0:
		return driveState{missing: media}, nil
	}
	for i, v := range have {
		s.change = s.change || v.Medium != mediumAt(want, i)
	}
	return s, nil
}

func mediumAt(drives []hypervisor.Drive, i int) string {
	if i < len(drives) {
		return drives[i].Medium
	}
	return ""
}

// exchange inserts and ejects media until the drives of a running machine are as its
// instance has them.
func (ms *mediaSet) exchange(ctx context.Context, in api.Instance) error {
	id := api.InstanceID(in.Meta.ID)
	have, err := ms.domain.drives(ctx, id)
	if err != nil {
		return err
	}
	want, waits, err := ms.drives(ctx, in, key(api.KindInstance, in.Meta.ID))
	if err != nil || waits.Text != "" {
		return err
	}
	for i, v := range have {
		if path := mediumAt(want, i); path != v.Medium {
			if err := ms.o.Machines.SetMedium(ctx, id, i, path); err != nil {
				return fmt.Errorf("change the medium in drive %d of instance %s: %w", i+1, id, err)
			}
		}
	}
	return nil
}
