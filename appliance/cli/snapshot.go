package cli

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/basalt-gpu/basalt/api"
)

func (a *App) snapshots() *kind[api.Snapshot] {
	return &kind[api.Snapshot]{
		app: a, noun: "snapshot", about: "Snapshots of volumes",

		refs:    []api.Kind{api.KindVolume},
		columns: []string{"PHASE", "VOLUME", "SIZE", "POOL", "NOTE"},
		row: func(s api.Snapshot) []string {
			return []string{string(snapshotPhase(s)), a.namedResource(a.named(string(s.Spec.Volume)), ""), formatSize(s.Status.SizeBytes), s.Assignment.Pool,
				cmp.Or(s.Status.LastError, s.Assignment.Reason)}
		},
		ready: func(s api.Snapshot) (bool, string, error) {
			phase := snapshotPhase(s)
			if phase == api.SnapshotFailed {
				return false, string(phase), api.Errorf(api.CodeState, "snapshot %s failed: %s", s.Meta.Name, s.Status.LastError)
			}
			return phase == api.SnapshotReady, string(phase), nil
		},
		flags: func(f *pflag.FlagSet) func(*api.Snapshot) error {
			volume := f.String("volume", "", "volume, name or ID")
			return func(s *api.Snapshot) error {
				s.Spec.Volume = cmp.Or(api.VolumeID(*volume), s.Spec.Volume)
				return nil
			}
		},
	}
}

func snapshotPhase(s api.Snapshot) api.SnapshotPhase {
	if s.Meta.DeletedAt != nil {
		return api.SnapshotDeleting
	}
	return cmp.Or(s.Status.Phase, api.SnapshotPending)
}

// volumeCommands returns the commands of volumes beyond those of every kind.
func (a *App) volumeCommands(k *kind[api.Volume]) []*cobra.Command {
	changed := func(use, done, short string, args int, change func(ctx context.Context, v *api.Volume, args []string) error) *cobra.Command {
		cmd := &cobra.Command{Use: use, Short: short, Args: cobra.ExactArgs(args)}
		w := k.writeFlags(cmd)
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			o, err := k.changeIn(cmd.Context(), k.target(*w), args[0], func(v *api.Volume) error { return change(cmd.Context(), v, args[1:]) })
			if err != nil {
				return err
			}
			return k.finish(cmd.Context(), o, *w, done)
		}
		return cmd
	}
	return []*cobra.Command{
		changed("attach VOLUME INSTANCE", "attached", "Attach a volume to an instance, even while it is running", 2, func(_ context.Context, v *api.Volume, args []string) error {
			v.Spec.Instance = api.InstanceID(args[0])
			return nil
		}),
		changed("detach VOLUME", "detached", "Detach a volume from its instance, even while it is running", 1, func(_ context.Context, v *api.Volume, _ []string) error {
			v.Spec.Instance = ""
			return nil
		}),
		changed("resize VOLUME SIZE", "resized", "Increase the size of a volume, even while it is in use", 2, func(_ context.Context, v *api.Volume, args []string) (err error) {
			v.Spec.SizeBytes, err = parseSize(args[0])
			return err
		}),
		changed("rollback VOLUME SNAPSHOT", "rolled back", "Roll a volume back to a snapshot; data written since then is lost", 2, func(ctx context.Context, v *api.Volume, args []string) error {
			s, err := a.snapshots().get(ctx, args[0])
			if err != nil {
				return err
			}
			count := int64(1)
			if v.Spec.Rollback != nil {
				count = v.Spec.Rollback.Count + 1
			}
			v.Spec.Rollback = &api.VolumeRollback{Snapshot: api.SnapshotID(s.Meta.ID), Count: count}
			return nil
		}),
		a.snapshotCommand(k),
	}
}

func (a *App) snapshotCommand(k *kind[api.Volume]) *cobra.Command {
	cmd := &cobra.Command{Use: "snapshot VOLUME NAME", Short: "Create a snapshot of a volume", Args: cobra.ExactArgs(2)}
	snapshots := a.snapshots()
	w := snapshots.writeFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		v, err := k.get(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		s, err := snapshots.target(*w).Create(cmd.Context(), api.Snapshot{
			Meta: api.Meta{Name: args[1], Organization: v.Meta.Organization, Project: v.Meta.Project},
			Spec: api.SnapshotSpec{Volume: api.VolumeID(v.Meta.ID)},
		})
		if err != nil {
			return err
		}
		return snapshots.finish(cmd.Context(), s, *w, "created")
	}
	return cmd
}

// qosFlags declares the limits of a volume.
func qosFlags(f *pflag.FlagSet) func(*api.VolumeSpec) {
	var q api.VolumeQoS
	f.Int64Var(&q.ReadIOPS, "read-iops", 0, "maximum reads per second; 0: no limit")
	f.Int64Var(&q.WriteIOPS, "write-iops", 0, "maximum writes per second; 0: no limit")
	f.Var(sizeFlag{&q.ReadBytesPerSecond}, "read-rate", "maximum read throughput per second, e.g. 100MiB; 0: no limit")
	f.Var(sizeFlag{&q.WriteBytesPerSecond}, "write-rate", "maximum write throughput per second; 0: no limit")
	return func(s *api.VolumeSpec) {
		now := api.VolumeQoS{}
		if s.Qos != nil {
			now = *s.Qos
		}
		for name, limit := range map[string][2]*int64{
			"read-iops": {&now.ReadIOPS, &q.ReadIOPS}, "write-iops": {&now.WriteIOPS, &q.WriteIOPS},
			"read-rate": {&now.ReadBytesPerSecond, &q.ReadBytesPerSecond}, "write-rate": {&now.WriteBytesPerSecond, &q.WriteBytesPerSecond},
		} {
			if f.Changed(name) {
				*limit[0] = *limit[1]
			}
		}
		if s.Qos = nil; now != (api.VolumeQoS{}) {
			s.Qos = &now
		}
	}
}

// volumeDetail returns what get prints below the row.
func (a *App) volumeDetail(v api.Volume) (d detail) {
	d.add("Pool", v.Assignment.Pool)
	if v.Spec.Encrypted {
		d.add("Encrypted", "yes")
	}
	d.add("Cloned from", a.named(string(v.Spec.Snapshot)))
	d.add("Restored from", a.named(string(v.Spec.Backup)))
	d.add("Open in", a.named(string(v.Status.Attached)))
	if q := v.Spec.Qos; q != nil {
		d.add("Limits", fmt.Sprintf("read %s/s and %s, write %s/s and %s (operations a second; -: none)", formatSize(q.ReadBytesPerSecond), limitText(q.ReadIOPS),
			formatSize(q.WriteBytesPerSecond), limitText(q.WriteIOPS)))
	}
	return d
}

func limitText(n int64) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}
