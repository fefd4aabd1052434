package cli

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/basalt-gpu/basalt/api"
)

func (a *App) disks() *kind[api.Disk] {
	k := &kind[api.Disk]{
		app: a, noun: "disk", about: "Disks of the nodes",

		refs:    []api.Kind{api.KindNode},
		columns: []string{"STATE", "USE", "NODE", "PATH", "SIZE", "MODEL", "SERIAL", "OSD", "NOTE"},
		row: func(d api.Disk) []string {
			st, osd := d.Status, ""
			if d.Spec.Use == api.DiskCeph && st.Osd >= 0 {
				osd = fmt.Sprint(st.Osd)
			}
			return []string{string(st.State), diskUse(d.Spec), a.named(string(st.Node)), st.Path, formatSize(st.SizeBytes), st.Model, st.Serial, osd, st.Reason}
		},
		ready: diskReady,
	}
	use := &cobra.Command{
		Use: "use DISK ceph|local|nothing", Short: "Set what a disk is used for", Args: cobra.ExactArgs(2),
		Long: "ceph adds the disk to Ceph. local makes it a storage pool of its node, formatted with XFS, with the name that --pool gives.\nWith nothing, the data of a disk in Ceph is first copied to other disks; a storage pool stays until it has no volumes.\nA disk that contains data is refused unless --wipe is given, which erases it.",
	}
	wipe := use.Flags().Bool("wipe", false, "erase existing data on the disk")
	pool := use.Flags().String("pool", "", "with local: name of the storage pool; disks of several nodes may have the same")
	w := waiting{}
	addWaitFlags(use, &w)
	use.RunE = func(cmd *cobra.Command, args []string) error {
		var what api.DiskUse
		switch args[1] {
		case string(api.DiskCeph):
			what = api.DiskCeph
		case string(api.DiskLocal):
			what = api.DiskLocal
			if *pool == "" {
				return usagef("--pool is required with local")
			}
		case "nothing":
		default:
			return usagef("unknown use %q, want ceph, local or nothing", args[1])
		}
		d, err := k.change(cmd.Context(), args[0], func(d *api.Disk) error {
			d.Spec.Use, d.Spec.Pool, d.Spec.Wipe = what, *pool, *wipe
			return nil
		})
		if err == nil {
			d, err = k.await(cmd.Context(), d, w)
		}
		if err != nil {
			return err
		}
		return k.printOne(cmd.Context(), d)
	}
	k.more = []*cobra.Command{use, diskRelease(k)}
	return k
}

// diskRelease is short for "use DISK nothing".
func diskRelease(k *kind[api.Disk]) *cobra.Command {
	cmd := &cobra.Command{
		Use: "release DISK", Short: "Give a disk back: one in Ceph after its data has been copied to other disks, a storage pool when no volume lies on it", Args: cobra.ExactArgs(1),
	}
	w := waiting{}
	addWaitFlags(cmd, &w)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		d, err := k.change(cmd.Context(), args[0], func(d *api.Disk) error {
			d.Spec = api.DiskSpec{}
			return nil
		})
		return k.done(cmd.Context(), d, err, w)
	}
	return cmd
}

// diskUse describes what a disk is used for, with the name of its storage pool.
func diskUse(s api.DiskSpec) string {
	if s.Use == api.DiskLocal {
		return string(s.Use) + " (" + s.Pool + ")"
	}
	return string(s.Use)
}

func diskReady(d api.Disk) (bool, string, error) {
	st := d.Status
	if st.ObservedGeneration < d.Meta.Generation {
		return false, string(st.State), nil // the state is that of an earlier spec
	}
	if st.State == api.DiskFailed {
		return false, string(st.State), api.Errorf(api.CodeState, "disk %s failed: %s", d.Meta.Name, st.Reason)
	}
	if d.Spec.Use != api.DiskUnused {
		return st.State == api.DiskReady, string(st.State), nil
	}
	return st.State == api.DiskFree || st.State == api.DiskInUse, string(st.State), nil
}

func (a *App) ceph() *kind[api.CephCluster] {
	k := &kind[api.CephCluster]{
		app: a, noun: "ceph", about: "Replicated storage on the nodes' disks (Ceph)", own: true,

		refs:    []api.Kind{api.KindNode},
		columns: []string{"PHASE", "HEALTH", "COPIES", "DISKS", "USED", "SIZE", "NOTE"},
		row: func(c api.CephCluster) []string {
			st, phase := c.Status, string(cmp.Or(c.Status.Phase, api.CephPending))
			if !c.Spec.Enabled {
				phase = "Off"
			}
			return []string{phase, string(st.Health), fmt.Sprint(c.Spec.Replicas), fmt.Sprintf("%d of %d up", st.OsdsUp, st.Osds),
				formatSize(st.UsedBytes), formatSize(st.SizeBytes), cmp.Or(st.LastError, st.Summary)}
		},
		detail: func(c api.CephCluster) (d detail) {
			d.add("Next", c.Status.Next)
			for _, check := range c.Status.Checks {
				d.add(string(cmp.Or(check.Severity, api.CephWarning)), check.Summary+" ("+check.Name+")")
			}
			for _, n := range c.Assignment.Mons {
				d.add("Monitor on", a.named(string(n)))
			}
			d.add("Failure domain", string(c.Spec.FailureDomain))
			d.add("FSID", c.Assignment.Fsid)
			return d
		},
		ready: func(c api.CephCluster) (bool, string, error) {
			st := c.Status
			if st.Phase == api.CephFailed {
				return false, string(st.Phase), api.Errorf(api.CodeState, "Ceph: %s", cmp.Or(st.LastError, st.Summary)).WithHint("%s", st.Next)
			}
			return st.ObservedGeneration >= c.Meta.Generation && (st.Phase == api.CephReady || !c.Spec.Enabled), string(st.Phase), nil
		},
	}
	k.more = []*cobra.Command{cephStatus(k), cephEnable(k), cephDisable(k)}
	return k
}

func cephStatus(k *kind[api.CephCluster]) *cobra.Command {
	get := k.getCommand()
	return &cobra.Command{
		Use: "status", Short: "Show the state of Ceph and the next step", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return get.RunE(cmd, []string{api.CephName}) },
	}
}

func cephEnable(k *kind[api.CephCluster]) *cobra.Command {
	cmd := &cobra.Command{Use: "enable", Short: "Enable Ceph, or change how it replicates data", Args: cobra.NoArgs}
	replicas := cmd.Flags().Int64("replicas", 0, "number of replicas; default: 3")
	domain := cmd.Flags().String("failure-domain", "", "host or osd: no two replicas in the same one; default: host")
	w := waiting{}
	addWaitFlags(cmd, &w)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		set := func(c *api.CephCluster) error {
			c.Spec.Enabled = true
			c.Spec.Replicas, c.Spec.FailureDomain = cmp.Or(*replicas, c.Spec.Replicas), cmp.Or(api.FailureDomain(*domain), c.Spec.FailureDomain)
			return nil
		}
		ctx := cmd.Context()
		_, err := k.get(ctx, api.CephName)
		var c api.CephCluster
		switch {
		case err == nil:
			c, err = k.change(ctx, api.CephName, set)
		case api.CodeOf(err) == api.CodeNotFound:
			c.Meta.Name = api.CephName
			_ = set(&c) // cannot fail
			c, err = k.objects().Create(ctx, c)
		}
		return k.done(ctx, c, err, w)
	}
	return cmd
}

func cephDisable(k *kind[api.CephCluster]) *cobra.Command {
	return &cobra.Command{
		Use: "disable", Short: "Disable Ceph, once it stores no volumes and uses no disks", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := k.change(cmd.Context(), api.CephName, func(c *api.CephCluster) error {
				c.Spec.Enabled = false
				return nil
			})
			return k.done(cmd.Context(), c, err, waiting{})
		},
	}
}

// done waits if that was requested, and prints the resulting object.
func (k *kind[T]) done(ctx context.Context, o T, err error, w waiting) error {
	if err == nil {
		o, err = k.await(ctx, o, w)
	}
	if err != nil {
		return err
	}
	return k.printOne(ctx, o)
}
