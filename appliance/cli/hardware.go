package cli

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

func (a *App) nodes() *kind[api.Node] {
	k := &kind[api.Node]{
		app: a, noun: "node", about: "Nodes of the cluster",
		columns: []string{"STATE", "VCPUS", "MEMORY", "DISK FREE", "GUESTS", "VERSION", "SEEN", "NOTE"},
		row: func(n api.Node) []string {
			st := n.Status
			state, why := readiness(a.Now(), st.SeenAt, st.Conditions)
			if at := n.Assignment; at.State != "" && at.State != api.NodeReady {
				state, why = string(at.State), cmp.Or(at.Reason, why)
			}
			return []string{state, fmt.Sprint(st.Vcpus), formatSize(st.MemoryBytes), formatSize(st.StorageFreeBytes), st.Accelerator,
				st.Version, formatAge(a.Now(), st.SeenAt), cmp.Or(why, shuttingDown(st.ShuttingDown), unschedulable(n.Spec.Unschedulable))}
		},
		detail: func(n api.Node) (d detail) {
			d.add("Hypervisor", n.Status.Hypervisor)
			d.add("Memory", memoryParts(n.Status.Memory))
			d.add("Processors", processorParts(n.Status))
			d.add("Huge pages", hugePages(n.Status.HugePages))
			d.add("NUMA cells", numaCells(n.Status))
			d.add("Local storage", localStorage(n.LocalStorage()))
			d.conditions(a.Now(), n.Status.Conditions)
			return d
		},
		flags: func(f *pflag.FlagSet) func(*api.Node) error {
			no := f.Bool("unschedulable", false, "cordon: accept no new instances")
			cpus := f.Int64("reserved-cpus", 0, "CPUs that the node keeps for its own services; 0: reserved-cpus of its configuration, or else computed from what it runs")
			return func(n *api.Node) error {
				if f.Changed("unschedulable") {
					n.Spec.Unschedulable = *no
				}
				if f.Changed("reserved-cpus") {
					n.Spec.ReservedCPUs = *cpus
				}
				return nil
			}
		},
		ready: nodeReady,
	}
	k.more = append(a.nodeCommands(k), samplesCommand(k, (*client.API).NodeSamples))
	return k
}

// memoryParts describes how a node's memory is divided.
func memoryParts(m api.NodeMemory) string {
	if m.TotalBytes == 0 {
		return ""
	}
	var parts []string
	for _, p := range m.Parts {
		text := string(p.Name)
		if p.Count > 1 {
			text = fmt.Sprintf("%d %s", p.Count, p.Name)
		}
		parts = append(parts, text+" "+size(p.Bytes))
	}
	return fmt.Sprintf("%s of %s for instances; reserved: %s", size(m.InstancesBytes), size(m.TotalBytes), strings.Join(parts, ", "))
}

// processorParts describes how the time of a node's CPUs is divided.
func processorParts(st api.NodeStatus) string {
	p := st.Processors
	if p.CPUs == 0 {
		return ""
	}
	var parts []string
	for _, part := range p.Parts {
		text := string(part.Name)
		if part.Count > 1 && part.Name != api.NodePartOperator {
			text = fmt.Sprintf("%d %s", part.Count, part.Name)
		}
		parts = append(parts, text+" "+thousandths(part.MilliCPUs))
	}
	return fmt.Sprintf("%s of %d CPUs for instances, %d vCPUs on each; reserved: %s", thousandths(p.InstancesMilliCPUs), p.CPUs, p.VCPUsPerCPU, strings.Join(parts, ", "))
}

// thousandths formats a number of thousandths: "1.5".
func thousandths(n int64) string { return strconv.FormatFloat(float64(n)/1000, 'f', -1, 64) }

// hugePages describes how much is reserved of each page size, and how much of it is free.
func hugePages(all []api.NodeHugePages) string {
	var parts []string
	for _, p := range all {
		parts = append(parts, fmt.Sprintf("%s in pages of %s, %s free", size(p.TotalBytes), size(p.Size.Bytes()), size(p.FreeBytes)))
	}
	return strings.Join(parts, "; ")
}

// hugePagesFlag declares --huge-pages for commands that create or resize instances and flavors.
func hugePagesFlag(f *pflag.FlagSet, otherwise string) func(*api.HugePages) {
	pages := f.String("huge-pages", "", "back the memory with huge pages: 2Mi or 1Gi; default: "+otherwise)
	return func(to *api.HugePages) {
		if f.Changed("huge-pages") {
			*to = api.HugePages(*pages)
		}
	}
}

// numaCells describes the NUMA cells of a node, and which CPUs are not dedicated to
// instances.
func numaCells(st api.NodeStatus) string {
	var parts []string
	for _, c := range st.Cells {
		part := fmt.Sprintf("%d: CPUs %s, %s of %s free", c.ID, c.CPUs, size(c.FreeBytes), size(c.MemoryBytes))
		if pages := hugePages(c.HugePages); pages != "" {
			part += ", " + pages
		}
		parts = append(parts, part)
	}
	if st.ReservedCPUs != "" {
		parts = append(parts, "never dedicated: CPUs "+st.ReservedCPUs)
	}
	return strings.Join(parts, "; ")
}

// dedicatedCPUs describes the CPUs that an instance has of its own.
func dedicatedCPUs(cells []api.InstanceCell) string {
	var parts []string
	for _, c := range cells {
		parts = append(parts, fmt.Sprintf("%s in NUMA cell %d with %s of memory", c.CPUs, c.Cell, size(c.MemoryBytes)))
	}
	return strings.Join(parts, "; ")
}

// cpuPolicyFlag declares --cpu-policy for commands that create or resize instances and
// flavors.
func cpuPolicyFlag(f *pflag.FlagSet, values string) func(*api.CPUPolicy) {
	policy := f.String("cpu-policy", "", "CPUs of the node: "+values)
	return func(to *api.CPUPolicy) {
		if f.Changed("cpu-policy") {
			*to = api.CPUPolicy(*policy)
		}
	}
}

// localStorage describes what a node's own pool has allocated and reserved.
func localStorage(p api.StoragePool) string {
	if p.LimitBytes == 0 {
		return "" // the node runs an older version that does not report it
	}
	return fmt.Sprintf("%s of %s allocated (images: %s), %s of %s free beside the reserve of %s", size(p.PromisedBytes), size(p.LimitBytes),
		size(p.ImageBytes), size(p.FreeBytes), size(p.SizeBytes), size(p.ReserveBytes))
}

// size is formatSize that prints 0 as a number.
func size(n int64) string {
	if n == 0 {
		return "0 B"
	}
	return formatSize(n)
}

func shuttingDown(is bool) string {
	if is {
		return "is shutting down"
	}
	return ""
}

func unschedulable(no bool) string {
	if no {
		return "cordoned"
	}
	return ""
}

func (a *App) gpus() *kind[api.GPU] {
	k := &kind[api.GPU]{
		app: a, noun: "gpu", about: "GPUs",

		refs:    []api.Kind{api.KindNode},
		columns: []string{"STATE", "MODEL", "DRIVER", "POOL", "VRAM", "USED", "VGPUS", "NODE", "NOTE"},
		row: func(g api.GPU) []string {
			st := g.Status
			state, why := readiness(a.Now(), st.SeenAt, st.Conditions)
			return []string{state, st.Model, st.Driver, cmp.Or(g.Spec.Pool, api.DefaultPool), formatSize(st.VramBytes), formatSize(st.VramUsedBytes),
				fmt.Sprint(st.Vgpus), a.named(string(st.Node)), cmp.Or(why, unschedulable(g.Spec.Unschedulable))}
		},
		detail: func(g api.GPU) (d detail) {
			d.add("Device", g.Status.Device)
			d.add("UUID", g.Status.UUID)
			d.conditions(a.Now(), g.Status.Conditions)
			return d
		},
		flags: func(f *pflag.FlagSet) func(*api.GPU) error {
			pool := f.String("pool", "", "GPU pool")
			no := f.Bool("unschedulable", false, "cordon: accept no new virtual GPUs")
			return func(g *api.GPU) error {
				g.Spec.Pool = cmp.Or(*pool, g.Spec.Pool)
				if f.Changed("unschedulable") {
					g.Spec.Unschedulable = *no
				}
				return nil
			}
		},
	}
	k.more = []*cobra.Command{tenantsCommand(k), samplesCommand(k, (*client.API).GPUSamples), a.interopCommand()}
	return k
}

func (a *App) pools() *kind[api.GPUPool] {
	return &kind[api.GPUPool]{
		app: a, noun: "gpu-pool", about: "Sets of GPUs that are shared in the same way",
		columns: []string{"MODE", "VGPUS PER GPU", "VRAM OVERCOMMIT"},
		row: func(p api.GPUPool) []string {
			most := "any"
			if n := p.Spec.MaxVgpusPerGpu; n > 0 {
				most = fmt.Sprint(n)
			}
			return []string{p.Spec.Mode, most, fmt.Sprintf("%d %%", max(p.Spec.VramOvercommitPercent, 100))}
		},
		flags: func(f *pflag.FlagSet) func(*api.GPUPool) error {
			mode := f.String("mode", "", "time-sliced")
			most := f.Int64("max-vgpus-per-gpu", 0, "maximum vGPUs per GPU; 0: unlimited")
			percent := f.Int64("vram-overcommit-percent", 100, "VRAM overcommit in % of physical VRAM, 100 to 400; the excess is swapped to node memory")
			return func(p *api.GPUPool) error {
				if f.Changed("vram-overcommit-percent") {
					p.Spec.VramOvercommitPercent = *percent
				}
				p.Spec.Mode = cmp.Or(*mode, p.Spec.Mode)
				if f.Changed("max-vgpus-per-gpu") {
					p.Spec.MaxVgpusPerGpu = *most
				}
				return nil
			}
		},
	}
}

func (a *App) flavors() *kind[api.Flavor] {
	return &kind[api.Flavor]{
		app: a, noun: "flavor", about: "Instance sizes",
		columns: []string{"VCPUS", "MEMORY", "ROOT"},
		row: func(f api.Flavor) []string {
			memory := formatSize(f.Spec.MemoryBytes)
			if f.Spec.HugePages != "" {
				memory += fmt.Sprintf(" (%s pages)", f.Spec.HugePages)
			}
			vcpus := fmt.Sprint(f.Spec.Vcpus)
			if f.Spec.CPUPolicy != "" {
				vcpus += fmt.Sprintf(" (%s)", f.Spec.CPUPolicy)
			}
			return []string{vcpus, memory, formatSize(f.Spec.RootBytes)}
		},
		flags: func(f *pflag.FlagSet) func(*api.Flavor) error {
			vcpus := f.Int64("vcpus", 0, "number of vCPUs")
			var memory, root int64
			f.Var(sizeFlag{&memory}, "memory", "memory, e.g. 1GiB")
			f.Var(sizeFlag{&root}, "root-size", "size of the root volume; default: the image's size")
			pages := hugePagesFlag(f, "ordinary pages")
			policy := cpuPolicyFlag(f, "shared, dedicated (one for each vCPU) or optional (instances choose); default: shared")
			return func(o *api.Flavor) error {
				pages(&o.Spec.HugePages)
				policy(&o.Spec.CPUPolicy)
				o.Spec.Vcpus, o.Spec.MemoryBytes = cmp.Or(*vcpus, o.Spec.Vcpus), cmp.Or(memory, o.Spec.MemoryBytes)
				o.Spec.RootBytes = cmp.Or(root, o.Spec.RootBytes)
				return nil
			}
		},
	}
}
