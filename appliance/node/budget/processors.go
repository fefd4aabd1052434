package budget

import "github.com/basalt-gpu/basalt/api"

// The CPU time of each component while it is busy, in thousandths of a CPU.
// docs/operations.md has the source of the numbers.
const (
	systemCPUPart = 32 // of all CPUs: kernel, interrupts, libvirtd, QEMU's I/O threads
	basaltCPU     = 125
	networksCPU   = 125
	osdCPU        = 1000
	monitorCPU    = 500
	managerCPU    = 500
	gpuCPU        = 1000 // basalt-gpud, and the workers that submit to the GPU

	// mostOfCPUs is the divisor for the part of all CPUs that the components get at
	// most: CPU time is shared, so that a small machine can run instances too.
	mostOfCPUs = 2

	// vcpusPerCPU is how many vCPUs of instances share one CPU.
	vcpusPerCPU = 4

	// dedicatedPart is the divisor for the part of all CPUs that is never dedicated:
	// instances that share CPUs run there, too.
	dedicatedPart = 8
)

// Processors returns how the CPU time of a machine with so many CPUs is divided. If
// reserved is not 0, it is the number of CPUs that the node keeps instead of what is
// computed from what it runs.
func Processors(r Runs, cpus, reserved int64) api.NodeProcessors {
	out := api.NodeProcessors{CPUs: cpus, VCPUsPerCPU: vcpusPerCPU}
	if cpus <= 0 {
		return api.NodeProcessors{}
	}
	if reserved > 0 {
		reserved = min(reserved, cpus)
		out.Parts = []api.NodeProcessorPart{{Name: api.NodePartOperator, Count: reserved, MilliCPUs: reserved * 1000}}
		out.InstancesMilliCPUs = (cpus - reserved) * 1000
		return out
	}
	left := cpus * 1000 / mostOfCPUs
	add := func(part api.NodePartName, count int, each int64) {
		if milli := min(int64(count)*each, left); milli > 0 {
			out.Parts = append(out.Parts, api.NodeProcessorPart{Name: part, Count: int64(count), MilliCPUs: milli})
			left -= milli
		}
	}
	add(api.NodePartSystem, 1, cpus*1000/systemCPUPart)
	add(api.NodePartBasalt, 1, basaltCPU)
	add(api.NodePartNetworks, one(r.Networks), networksCPU)
	add(api.NodePartMonitors, one(r.Monitor), monitorCPU)
	add(api.NodePartManagers, one(r.Manager), managerCPU)
	add(api.NodePartOSDs, r.OSDs, osdCPU)
	add(api.NodePartGPUs, r.GPUs, gpuCPU)
	out.InstancesMilliCPUs = cpus*1000 - own(out)
	return out
}

// own returns what a node keeps for itself, in thousandths of a CPU.
func own(p api.NodeProcessors) (sum int64) {
	for _, part := range p.Parts {
		sum += part.MilliCPUs
	}
	return sum
}

// VCPUs returns how many vCPUs instances may have.
func VCPUs(p api.NodeProcessors) int64 { return p.InstancesMilliCPUs * p.VCPUsPerCPU / 1000 }

// ReservedCPUs returns the CPUs that are never dedicated to an instance: the first cores
// of the first cell, and so on. They are at least as many as the node keeps for itself
// and, unless an operator has set their number, at least an eighth of all and one.
func ReservedCPUs(cells []api.NodeCell, p api.NodeProcessors) string {
	var count, n int64
	for _, c := range cells {
		for _, core := range c.Cores() {
			count += int64(len(core))
		}
	}
	n = (own(p) + 999) / 1000
	if len(p.Parts) == 0 || p.Parts[0].Name != api.NodePartOperator {
		n = max(n, (count+dedicatedPart-1)/dedicatedPart)
	}
	var kept []int
	for _, c := range cells {
		for _, core := range c.Cores() {
			if int64(len(kept)) < n {
				kept = append(kept, core...)
			}
		}
	}
	return api.FormatCPUs(kept)
}
