package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

func (a *App) instances() *kind[api.Instance] {
	var node, phase string
	k := &kind[api.Instance]{
		app: a, noun: "instance", about: "Virtual machines",
		columns: []string{"PHASE", "VCPUS", "MEMORY", "VGPU", "NODE", "NOTE"}, row: a.instanceRow,
		refs:   []api.Kind{api.KindNode, api.KindFlavor, api.KindImage, api.KindGPU, api.KindVolume, api.KindNetwork},
		detail: instanceDetail(a), made: a.printWarnings, changed: a.printWarnings,
		ready: instanceReady, flags: instanceFlags,
		filter: func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&node, "node", "", "filter by node, name or ID (operators)")
			cmd.Flags().StringVar(&phase, "phase", "", "filter by state, e.g. Running, Failed or NodeLost")
		},
		narrow: func(q *client.Query) { q.Node, q.Phase = node, phase },
	}
	k.more = []*cobra.Command{
		k.powerCommand("start", "Start an instance", (*client.API).StartInstance),
		k.powerCommand("stop", "Shut down an instance", (*client.API).StopInstance),
		k.powerCommand("restart", "Restart an instance", (*client.API).RestartInstance),
		reinstallCommand(k), rescueCommand(k), k.powerCommand("unrescue", "End the rescue of an instance; restarts it if it is to run", (*client.API).UnrescueInstance), resizeCommand(k), a.migrateCommand(k), consoleCommand(k), screenCommand(k), logCommand(k), execCommand(k), connectCommand(k), openCommand(k), costCommand(k), sshCommand(k), shellCommand(k),
		k.app.historyCommand(k), topCommand(k), samplesCommand(k, (*client.API).InstanceSamples),
	}
	return k
}

// printWarnings prints the warnings of the server about a new or changed instance.
func (a *App) printWarnings(i api.Instance) {
	for _, w := range i.Warnings {
		text := "warning: " + w.Message
		if w.Hint != "" {
			text += " (" + w.Hint + ")"
		}
		fmt.Fprintln(a.Err, printable(text))
	}
}

func (a *App) instanceRow(i api.Instance) []string {
	vgpu, vcpus := "", ""
	if v := i.Spec.Vgpu; v != nil {
		vgpu = formatSize(v.VramBytes)
		if v.SharePercent > 0 {
			vgpu += fmt.Sprintf(", %d%%", v.SharePercent)
		}
		if v.Tier != "" {
			vgpu += ", " + string(v.Tier)
		}
	}
	if i.Assignment.Vcpus > 0 {
		vcpus = fmt.Sprint(i.Assignment.Vcpus)
	}
	note := i.Status.Step
	if i.Assignment.Node == "" || i.Assignment.NodeLost {
		note = i.Assignment.Reason
	}
	if i.Queue != nil {
		note = queueNote(*i.Queue, a.Now())
		if i.Assignment.Node != "" {
			note = "resize: " + note
		}
	}
	if c, known := api.GPUReadyOf(i); known && !c.Status {
		note = cmp.Or(note, "GPU not ready: "+c.Reason)
	}
	return []string{string(api.InstancePhaseOf(i)), vcpus, formatSize(i.Assignment.MemoryBytes), vgpu,
		a.named(string(i.Assignment.Node)), cmp.Or(i.Status.LastError, note)}
}

// instanceReady reports whether the agent has applied this spec and the instance has the
// requested power state.
func instanceReady(i api.Instance) (bool, string, error) {
	st := i.Status
	doing := string(api.InstancePhaseOf(i))
	if note := cmp.Or(st.Step, i.Assignment.Reason); note != "" {
		doing += ": " + note
	}
	if st.LastError != "" {
		doing += " (" + st.LastError + ")"
	}
	want := api.InstanceRunning
	if i.Spec.Power == api.PowerStopped {
		want = api.InstanceStopped
	}
	seen := st.ObservedGeneration >= i.Meta.Generation
	if seen && st.Phase == api.InstanceFailed {
		return false, doing, api.Errorf(api.CodeState, "instance %s failed: %s", i.Meta.Name, st.LastError)
	}
	if i.Assignment.Hold != "" && want == api.InstanceRunning {
		return false, doing, api.Errorf(api.CodeForbidden, "instance %s is held and not started: %s", i.Meta.Name, i.Assignment.Hold).
			WithHint("it is started when the organization is resumed")
	}
	if i.Spec.WhenFull == api.WhenFullQueue && i.Assignment.QueuedAt != nil && i.Assignment.Node == "" {
		return false, "in the queue: " + i.Assignment.Reason, nil
	}
	if i.Assignment.Node == "" && i.Assignment.Reason != "" && want == api.InstanceRunning && i.Meta.DeletedAt == nil {
		return false, doing, api.Errorf(api.CodeNoCapacity, "instance %s: %s", i.Meta.Name, i.Assignment.Reason).
			WithHint("it is started when capacity is available; or choose a smaller flavor or vGPU: basalt instance resize %s", i.Meta.Name)
	}
	return seen && st.Phase == want && st.Restarts >= i.Spec.Restarts, doing, nil
}

// vgpuFlags declares the flags that create, set and resize share.
func vgpuFlags(f *pflag.FlagSet) func(*api.InstanceSpec) {
	var vram int64
	f.Var(sizeFlag{&vram}, "vram", "VRAM of the virtual GPU, e.g. 1GiB")
	pool := f.String("gpu-pool", "", "GPU pool (default \"default\")")
	model := f.String("gpu-model", "", "model of the GPU, as \"basalt offer list\" names it (default any of the pool)")
	share := f.Int64("gpu-share", 0, "guaranteed GPU time, in %")
	tier := f.String("gpu-tier", "", "priority and price of GPU time: premium, standard or basic (default standard)")
	none := f.Bool("no-gpu", false, "no virtual GPU")
	return func(s *api.InstanceSpec) {
		if *none {
			s.Vgpu = nil
			return
		}
		if !f.Changed("vram") && !f.Changed("gpu-pool") && !f.Changed("gpu-model") && !f.Changed("gpu-share") && !f.Changed("gpu-tier") {
			return
		}
		v := api.VGPUSpec{}
		if s.Vgpu != nil {
			v = *s.Vgpu
		}
		if f.Changed("vram") {
			v.VramBytes = vram
		}
		if f.Changed("gpu-pool") {
			v.Pool = *pool
		}
		if f.Changed("gpu-model") {
			v.Model = *model
		}
		if f.Changed("gpu-share") {
			v.SharePercent = *share
		}
		if f.Changed("gpu-tier") {
			v.Tier = api.GPUTier(*tier)
		}
		s.Vgpu = &v
	}
}

// mediaFlags declares the flags for an instance's CD drives.
func mediaFlags(f *pflag.FlagSet) func(*api.InstanceSpec) {
	cdroms := f.StringArray("cdrom", nil, "installation medium in a CD drive: image of format iso, name or ID; repeatable for the second drive; \"\" leaves a drive empty")
	eject := f.Bool("eject", false, "empty the CD drives")
	from := f.String("boot-from", "", "what the firmware tries first: disk (default), or medium")
	return func(s *api.InstanceSpec) {
		switch {
		case *eject:
			s.Media = make([]api.ImageID, min(len(s.Media), 1)) // the drives remain
		case f.Changed("cdrom"):
			s.Media = nil
			for _, id := range *cdroms {
				s.Media = append(s.Media, api.ImageID(id))
			}
		}
		s.BootFrom = cmp.Or(api.BootFrom(*from), s.BootFrom)
	}
}

// instancePolicies are the values of --cpu-policy of an instance.
const instancePolicies = "shared, or dedicated (one for each vCPU) if the flavor permits it; default: the flavor's"

func instanceFlags(f *pflag.FlagSet) func(*api.Instance) error {
	flavor := f.String("flavor", "", "flavor, name or ID")
	image := f.String("image", "", "image, name or ID; default: the app's, or with --cdrom none: a blank root volume")
	app := f.String("app", "", "app to create it from, name or ID (basalt app list)")
	media := mediaFlags(f)
	vgpu := vgpuFlags(f)
	var root int64
	f.Var(sizeFlag{&root}, "root-size", "size of the root volume; default: the flavor's")
	keys := f.StringArray("ssh-key", nil, "file with public keys, or name of one of your SSH keys; repeatable")
	userData := f.String("user-data", "", "file with cloud-init user data")
	stopped := f.Bool("stopped", false, "do not start it")
	priority := f.Int64("priority", 0, "0 to 100; higher priorities start first when capacity is short after a node is lost")
	ephemeral := f.Bool("ephemeral", false, "recreate the root volume from the image when its node is lost; its data is then lost")
	pool := f.String("storage-pool", "", "pool for the root volume: ceph, shared or local; default: the first that is available")
	system := f.String("os", "", "guest operating system that the machine is made for: linux or windows; default: windows if the image is, otherwise linux")
	firmware := f.String("firmware", "", "bios or uefi; default: bios, with an image for Windows uefi with Secure Boot and a TPM")
	secureBoot := f.Bool("secure-boot", false, "UEFI Secure Boot: start only signed software; needs --firmware uefi")
	tpm := f.Bool("tpm", false, "add a TPM 2.0; needs --firmware uefi")
	cpu := f.String("cpu", "", "processor model: baseline (supported by all nodes) or host (that of its node); default: baseline")
	pages := hugePagesFlag(f, "the flavor's")
	policy := cpuPolicyFlag(f, instancePolicies)
	networks := networkFlags(f)
	queue := queueFlags(f)
	return func(i *api.Instance) error {
		s := &i.Spec
		if err := queue(s); err != nil {
			return err
		}
		pages(&s.HugePages)
		policy(&s.CPUPolicy)
		if err := networks(s); err != nil {
			return err
		}
		s.Flavor = cmp.Or(api.FlavorID(*flavor), s.Flavor)
		s.App, s.Image = cmp.Or(api.AppID(*app), s.App), cmp.Or(api.ImageID(*image), s.Image)
		s.RootBytes = cmp.Or(root, s.RootBytes)
		media(s)
		vgpu(s)
		s.StoragePool = cmp.Or(*pool, s.StoragePool)
		s.OS = cmp.Or(api.GuestOS(*system), s.OS)
		s.Firmware = cmp.Or(api.Firmware(*firmware), s.Firmware)
		s.SecureBoot, s.TPM = s.SecureBoot || *secureBoot, s.TPM || *tpm
		if f.Changed("cpu") {
			s.CPU = api.CPUClass(*cpu)
		}
		if f.Changed("priority") {
			s.Priority = *priority
		}
		if f.Changed("ephemeral") {
			s.Ephemeral = *ephemeral
		}
		if *stopped {
			s.Power = api.PowerStopped
		}
		lines, err := instanceKeys(*keys)
		if err != nil {
			return err
		}
		s.SSHKeys = append(s.SSHKeys, lines...)
		if *userData != "" {
			raw, err := os.ReadFile(*userData)
			if err != nil {
				return err
			}
			s.UserData = string(raw)
		}
		return nil
	}
}

// powerCommand builds start, stop or restart.
func (k *kind[T]) powerCommand(verb, about string, do func(*client.API, context.Context, string) (T, error)) *cobra.Command {
	cmd := &cobra.Command{Use: verb + " NAME|ID", Short: about, Args: cobra.ExactArgs(1)}
	w := k.waitFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o, err := k.get(cmd.Context(), args[0])
		if err == nil {
			o, err = do(k.app.api, cmd.Context(), api.MetaOf(&o).ID)
		}
		if err == nil {
			o, err = k.await(cmd.Context(), o, *w)
		}
		if err != nil {
			return err
		}
		return k.printOne(cmd.Context(), o)
	}
	return cmd
}

func reinstallCommand(k *kind[api.Instance]) *cobra.Command {
	cmd := &cobra.Command{Use: "reinstall NAME|ID", Short: "Replace the root volume of a stopped instance by a new one from its image or a backup", Args: cobra.ExactArgs(1),
		Long: "Deletes the root volume with all that is on it, and makes a new one from the instance's image, from another, or from a backup, with the UEFI variables and the TPM that it had then. Name, addresses, other volumes, user data and SSH keys stay. The instance must be stopped, and is not started."}
	image := cmd.Flags().String("image", "", "image, name or ID (default the instance's)")
	backup := cmd.Flags().String("backup", "", "backup of a root volume, name or ID, in place of an image")
	w := k.waitFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o, err := k.get(cmd.Context(), args[0])
		if err == nil {
			o, err = k.app.api.ReinstallInstance(cmd.Context(), o.Meta.ID, api.InstanceReinstall{Image: api.ImageID(*image), Backup: api.BackupID(*backup)})
		}
		if err == nil {
			o, err = k.await(cmd.Context(), o, *w)
		}
		if err != nil {
			return err
		}
		return k.printOne(cmd.Context(), o)
	}
	return cmd
}

func rescueCommand(k *kind[api.Instance]) *cobra.Command {
	cmd := &cobra.Command{Use: "rescue NAME|ID", Short: "Restart an instance from a rescue medium, to repair its system", Args: cobra.ExactArgs(1),
		Long: "Restarts the instance from the medium, or starts it if it is stopped. Its volumes are attached as usual. Each start boots from the medium until basalt instance unrescue."}
	medium := cmd.Flags().String("medium", "", "image of format iso, name or ID (required)")
	_ = cmd.MarkFlagRequired("medium")
	w := k.waitFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o, err := k.get(cmd.Context(), args[0])
		if err == nil {
			o, err = k.app.api.RescueInstance(cmd.Context(), o.Meta.ID, api.InstanceRescue{Medium: api.ImageID(*medium)})
		}
		if err == nil {
			o, err = k.await(cmd.Context(), o, *w)
		}
		if err != nil {
			return err
		}
		return k.printOne(cmd.Context(), o)
	}
	return cmd
}

func resizeCommand(k *kind[api.Instance]) *cobra.Command {
	cmd := &cobra.Command{Use: "resize NAME|ID", Short: "Change the flavor, virtual GPU, huge pages or CPU policy; applies at the next start", Args: cobra.ExactArgs(1),
		Long: "The new size is applied while the instance is stopped: on its node or, if its root volume and volumes are in shared storage, on another node. Without room for it, the command fails, or with --queue the instance waits in the queue while it is stopped; until it has the new size, it can be started with the size that it has."}
	flavor := cmd.Flags().String("flavor", "", "flavor, name or ID")
	vgpu := vgpuFlags(cmd.Flags())
	pages := hugePagesFlag(cmd.Flags(), "the flavor's")
	policy := cpuPolicyFlag(cmd.Flags(), instancePolicies)
	queue := cmd.Flags().Bool("queue", false, "when there is no room for the new size: wait in the queue while the instance is stopped")
	cancel := cmd.Flags().Bool("cancel", false, "keep the size that it has: ends the wait for another one")
	for _, size := range []string{"flavor", "vram", "gpu-pool", "gpu-model", "gpu-share", "gpu-tier", "no-gpu", "huge-pages", "cpu-policy", "queue"} {
		cmd.MarkFlagsMutuallyExclusive("cancel", size)
	}
	w := writing{dry: dryRunFlag(cmd.Flags())}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o, err := k.changeIn(cmd.Context(), k.target(w), args[0], func(i *api.Instance) error {
			if *cancel {
				return cancelResize(i)
			}
			pages(&i.Spec.HugePages)
			policy(&i.Spec.CPUPolicy)
			i.Spec.Flavor = cmp.Or(api.FlavorID(*flavor), i.Spec.Flavor)
			vgpu(&i.Spec)
			switch {
			case *queue:
				i.Spec.WhenFull = api.WhenFullQueue
			case i.Assignment.Node != "" && i.Spec.WhenFull == api.WhenFullQueue: // it was requested for another wait
				i.Spec.WhenFull = ""
			}
			if i.Spec.Power != api.PowerStopped {
				fmt.Fprintf(k.app.Err, "instance %s is not stopped: the new size takes effect when it is next stopped and started\n", i.Meta.Name)
			}
			return nil
		})
		if err != nil {
			return err
		}
		k.changed(o)
		return k.finish(cmd.Context(), o, w, "resized")
	}
	return cmd
}

// cancelResize requests the size that an instance has.
func cancelResize(i *api.Instance) error {
	has := i.Assignment.Size
	if has == nil || i.Spec.SameSize(i.Spec.WithSize(*has)) {
		return api.Errorf(api.CodeState, "instance %s is not waiting to be resized", i.Meta.Name).WithHint("basalt instance get %s", i.Meta.Name)
	}
	i.Spec = i.Spec.WithSize(*has)
	return nil
}
