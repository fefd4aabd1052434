package cli

import (
	"cmp"
	"context"

	"github.com/spf13/pflag"

	"github.com/basalt-gpu/basalt/api"
)

func (a *App) volumes() *kind[api.Volume] {
	k := &kind[api.Volume]{
		app: a, noun: "volume", about: "Volumes: disks that are independent of an instance",
		columns: []string{"PHASE", "SIZE", "USED", "INSTANCE", "NODE", "NOTE"}, refs: []api.Kind{api.KindNode, api.KindInstance, api.KindSnapshot, api.KindBackup},
		detail: a.volumeDetail,
		remove: func(f *pflag.FlagSet) func(context.Context, string) (api.Volume, error) {
			cascade := f.Bool("cascade", false, "delete its snapshots as well")
			return func(ctx context.Context, id string) (api.Volume, error) { return a.api.DeleteVolume(ctx, id, *cascade) }
		},
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
			done := v.Spec.Rollback == nil || v.Status.Rollbacks >= v.Spec.Rollback.Count
			return seen && done && phase == api.VolumeReady, string(phase), nil
		},
		flags: func(f *pflag.FlagSet) func(*api.Volume) error {
			var size int64
			f.Var(sizeFlag{&size}, "size", "size, e.g. 10GiB")
			image := f.String("image", "", "create from this image")
			instance := f.String("instance", "", "attach to this instance")
			detach := f.Bool("detach", false, "detach from its instance")
			snapshot := f.String("snapshot", "", "create from this snapshot")
			backup := f.String("backup", "", "create from this backup")
			encrypted := f.Bool("encrypted", false, "encrypt with its own key")
			pool := f.String("storage-pool", "", "ceph, shared, local or the name of a pool on a disk; default: the first of ceph, shared and local that is available")
			qos := qosFlags(f)
			return func(v *api.Volume) error {
				qos(&v.Spec)
				v.Spec.Snapshot = cmp.Or(api.SnapshotID(*snapshot), v.Spec.Snapshot)
				v.Spec.Backup = cmp.Or(api.BackupID(*backup), v.Spec.Backup)
				v.Spec.Pool = cmp.Or(*pool, v.Spec.Pool)
				if f.Changed("encrypted") {
					v.Spec.Encrypted = *encrypted
				}
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
	k.more = append(a.volumeCommands(k), a.migrateVolumeCommand(k))
	return k
}
