package cli

import (
	"cmp"

	"github.com/spf13/pflag"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

func (a *App) volumes() *kind[api.Volume] {
	return &kind[api.Volume]{
		app: a, kind: api.KindVolume, noun: "volume", about: "Disks of virtual machines", scope: ofProject,
		all: (*client.API).Volumes, meta: func(v *api.Volume) *api.Meta { return &v.Meta },
		columns: []string{"PHASE", "SIZE", "USED", "INSTANCE", "NODE", "NOTE"}, refs: []api.Kind{api.KindNode, api.KindInstance},
		row: func(v api.Volume) []string {
			phase := cmp.Or(v.Status.Phase, api.VolumePending)
			if v.Meta.DeletedAt != nil {
				phase = api.VolumeDeleting
			}
			return []string{string(phase), formatSize(cmp.Or(v.Status.SizeBytes, v.Spec.SizeBytes)), formatSize(v.Status.AllocatedBytes),
				a.named(string(v.Spec.Instance)), a.named(string(v.Assignment.Node)), cmp.Or(v.Status.LastError, v.Assignment.Reason)}
		},
		ready: func(v api.Volume) (bool, string, error) {
			phase := cmp.Or(v.Status.Phase, api.VolumePending)
			seen := v.Status.ObservedGeneration >= v.Meta.Generation
			if seen && phase == api.VolumeFailed {
				return false, string(phase), api.Errorf(api.CodeState, "volume %s failed: %s", v.Meta.Name, v.Status.LastError)
			}
			return seen && phase == api.VolumeReady, string(phase), nil
		},
		flags: func(f *pflag.FlagSet) func(*api.Volume) error {
			var size int64
			f.Var(sizeFlag{&size}, "size", "its size, as 10GiB")
			image := f.String("image", "", "start from this image")
			instance := f.String("instance", "", "attach to this instance")
			detach := f.Bool("detach", false, "take it off its instance")
			return func(v *api.Volume) error {
				v.Spec.SizeBytes = cmp.Or(size, v.Spec.SizeBytes)
				v.Spec.Image = cmp.Or(api.ImageID(*image), v.Spec.Image)
				v.Spec.Instance = cmp.Or(api.InstanceID(*instance), v.Spec.Instance)
				if *detach {
					v.Spec.Instance = ""
				}
				return nil
			}
		},
	}
}
