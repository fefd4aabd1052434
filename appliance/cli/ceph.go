package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

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
			return []string{string(st.State), diskUse(d), a.named(string(st.Node)), st.Path, formatSize(st.SizeBytes), st.Model, st.Serial, osd, st.Reason}
		},
		ready: diskReady,
	}
	use := &cobra.Command{
		Use: "use DISK ceph|ceph-db|local|nothing", Short: "Set what a disk is used for", Args: cobra.ExactArgs(2),
		Long: "ceph adds the disk to Ceph. ceph-db uses it for the databases of other disks of its node that are added with --db-disk.\nlocal makes it a storage pool of its node, formatted with XFS, with the name that --pool gives.\nWith nothing, the data of a disk in Ceph is first copied to other disks; a storage pool stays until it has no volumes.\nA disk that contains data is refused unless --wipe is given, which erases it.",
	}
	wipe := use.Flags().Bool("wipe", false, "erase existing data on the disk")
	pool := use.Flags().String("pool", "", "with local: name of the storage pool; disks of several nodes may have the same")
	osd := addOSDFlags(use)
	w := waiting{}
	addWaitFlags(use, &w)
	use.RunE = func(cmd *cobra.Command, args []string) error {
		var what api.DiskUse
		switch args[1] {
		case string(api.DiskCeph):
			what = api.DiskCeph
		case string(api.DiskCephDB):
			what = api.DiskCephDB
		case string(api.DiskLocal):
			what = api.DiskLocal
			if *pool == "" {
				return usagef("--pool is required with local")
			}
		case "nothing":
		default:
			return usagef("unknown use %q, want ceph, ceph-db, local or nothing", args[1])
		}
		d, err := k.change(cmd.Context(), args[0], func(d *api.Disk) error {
			was := d.Spec
			d.Spec = api.DiskSpec{Use: what, Pool: *pool, Wipe: *wipe}
			return osd.set(&d.Spec, was)
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

// osdFlags are the flags of disks that Ceph uses.
type osdFlags struct {
	cmd             *cobra.Command
	class, db, size string
}

func addOSDFlags(cmd *cobra.Command) *osdFlags {
	f := &osdFlags{cmd: cmd}
	cmd.Flags().StringVar(&f.class, "device-class", "", "with ceph: device class (hdd, ssd or nvme); default: as Ceph detects it")
	cmd.Flags().StringVar(&f.db, "db-disk", "", "with ceph: disk of the same node with use ceph-db that stores the database of this one")
	cmd.Flags().StringVar(&f.size, "db-size", "", "with --db-disk: size of the database, e.g. 60GiB; default: 2 % of the disk")
	return f
}

// set sets the fields of a disk with use ceph; those without a flag keep their value
// if Ceph uses the disk already. With another use, the server refuses them.
func (f *osdFlags) set(s *api.DiskSpec, was api.DiskSpec) error {
	if s.Use == api.DiskCeph && was.Use == api.DiskCeph {
		s.DeviceClass, s.DBDisk, s.DBBytes = was.DeviceClass, was.DBDisk, was.DBBytes
	}
	if f.cmd.Flags().Changed("device-class") {
		s.DeviceClass = api.DeviceClass(f.class)
	}
	if f.cmd.Flags().Changed("db-disk") {
		s.DBDisk, s.DBBytes = api.DiskID(f.db), 0
	}
	if f.size == "" {
		return nil
	}
	size, err := parseSize(f.size)
	if err != nil {
		return err
	}
	s.DBBytes = size
	return nil
}

// diskRelease is short for "use DISK nothing".
func diskRelease(k *kind[api.Disk]) *cobra.Command {
	cmd := &cobra.Command{
		Use: "release DISK", Short: "Release a disk: one in Ceph after its data has been copied to other disks, a storage pool when it contains no volumes", Args: cobra.ExactArgs(1),
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

// diskUse describes what a disk is used for, with the name of its storage pool, or its
// device class and whether it is encrypted.
func diskUse(d api.Disk) string {
	class := cmp.Or(d.Spec.DeviceClass, d.Status.DeviceClass)
	switch d.Spec.Use {
	case api.DiskLocal:
		return string(d.Spec.Use) + " (" + d.Spec.Pool + ")"
	case api.DiskCeph:
		notes := []string{string(class), ""}
		if d.Status.Encrypted {
			notes[1] = "encrypted"
		}
		if notes = slices.DeleteFunc(notes, func(s string) bool { return s == "" }); len(notes) > 0 {
			return string(d.Spec.Use) + " (" + strings.Join(notes, ", ") + ")"
		}
	}
	return string(d.Spec.Use)
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
			d.add("Device class", string(c.Spec.DeviceClass))
			if c.Spec.EncryptDisks {
				d.add("New disks", "encrypted")
			}
			for _, p := range c.Status.Pools {
				d.add("Pool "+p.Name, cephPoolLine(p))
			}
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

// cephPoolLine describes a pool of Ceph in one line.
func cephPoolLine(p api.CephPoolStatus) string {
	line := fmt.Sprintf("%s, %d copies, %s used, %s free", cmp.Or(string(p.DeviceClass), "all disks"), p.Replicas, cmp.Or(formatSize(p.UsedBytes), "0"), cmp.Or(formatSize(p.FreeBytes), "0"))
	if p.Reason != "" {
		line += "; " + p.Reason
	}
	return line
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
	class := cmd.Flags().String("device-class", "", "device class of the pool ceph: hdd, ssd, nvme, or \"\" for all disks; a change migrates its data")
	encrypt := cmd.Flags().Bool("encrypt-disks", false, "encrypt disks that are added from now on; those in Ceph are not changed")
	add := cmd.Flags().StringArray("pool", nil, "device class of an additional pool, named ceph-CLASS; CLASS:REPLICAS for another number of replicas")
	remove := cmd.Flags().StringArray("remove-pool", nil, "device class of an additional pool that is removed")
	w := waiting{}
	addWaitFlags(cmd, &w)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		set := func(c *api.CephCluster) error {
			if cmd.Flags().Changed("device-class") {
				c.Spec.DeviceClass = api.DeviceClass(*class)
			}
			if cmd.Flags().Changed("encrypt-disks") {
				c.Spec.EncryptDisks = *encrypt
			}
			if err := setCephPools(&c.Spec, *add, *remove); err != nil {
				return err
			}
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
			if err = set(&c); err == nil {
				c, err = k.objects().Create(ctx, c)
			}
		}
		return k.done(ctx, c, err, w)
	}
	return cmd
}

// setCephPools adds, changes and removes pools of device classes.
func setCephPools(s *api.CephClusterSpec, add, remove []string) error {
	without := func(class string) bool {
		n := len(s.Pools)
		s.Pools = slices.DeleteFunc(slices.Clone(s.Pools), func(p api.CephPool) bool { return string(p.DeviceClass) == class })
		return len(s.Pools) < n
	}
	for _, class := range remove {
		if !without(class) {
			return usagef("--remove-pool %s: Ceph has no pool of this device class", class)
		}
	}
	for _, a := range add {
		class, count, counted := strings.Cut(a, ":")
		p := api.CephPool{DeviceClass: api.DeviceClass(class)}
		if counted {
			var err error
			if p.Replicas, err = strconv.ParseInt(count, 10, 64); err != nil || p.Replicas < 1 {
				return usagef("--pool %s: %q is not a number of replicas, want CLASS or CLASS:REPLICAS", a, count)
			}
		}
		without(class)
		s.Pools = append(s.Pools, p)
	}
	return nil
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
