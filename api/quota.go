package api

import (
	"maps"
	"slices"
	"strings"
)

// The quotas that there are.
const (
	QuotaInstances   = "instances"
	QuotaVCPUs       = "vcpus"
	QuotaMemory      = "memoryBytes"
	QuotaVRAM        = "vramBytes"
	QuotaGPUShare    = "gpuSharePercent" // guaranteed shares: 100 is one card
	QuotaVolumes     = "volumeBytes"
	QuotaFloatingIPs = "floatingIPs"

	// QuotaSpend is the gate for money's sake: everything that costs takes of it
	// while it costs, and its limit is 0 while nothing new may. Nobody sets it.
	QuotaSpend = "spend"
)

var quotas = []string{QuotaInstances, QuotaVCPUs, QuotaMemory, QuotaVRAM, QuotaGPUShare, QuotaVolumes, QuotaFloatingIPs}

// ValidateQuota checks the quotas of an organization or a project.
func ValidateQuota(q Amounts) *Error {
	for _, name := range slices.Sorted(maps.Keys(q)) {
		if !slices.Contains(quotas, name) {
			return invalid("spec.quota", "%q is no quota", clip(name)).WithHint("one of %s", strings.Join(quotas, ", "))
		}
		if err := between("spec.quota."+name, q[name], 0, MaxAmount, ""); err != nil {
			return err
		}
	}
	return nil
}

// Limits of an organization's quotas. While it is suspended or restricted the
// state machine lets nothing new in, whatever a server has seen before.
func (s OrganizationSpec) Limits() Amounts {
	return limits(s.Quota, s.Suspended != nil || s.Restricted != nil)
}

// Limits of a project's quotas.
func (s ProjectSpec) Limits() Amounts { return limits(s.Quota, s.Restricted != nil) }

func limits(quota Amounts, closed bool) Amounts {
	out := Amounts{} // not nil, which would say "as before"
	maps.Copy(out, quota)
	if closed {
		out[QuotaSpend] = 0
	}
	return out
}

// Uses of quotas by an instance of the flavor, running or not.
func (s InstanceSpec) Uses(f FlavorSpec) Amounts {
	a := Amounts{QuotaInstances: 1, QuotaVCPUs: f.Vcpus, QuotaMemory: f.MemoryBytes}
	if s.Power != PowerStopped {
		a[QuotaSpend] = 1
	}
	if s.Vgpu != nil {
		a[QuotaVRAM] = s.Vgpu.VramBytes
		if s.Vgpu.SharePercent > 0 {
			a[QuotaGPUShare] = s.Vgpu.SharePercent
		}
	}
	return a
}

// Uses of quotas by a volume.
func (s VolumeSpec) Uses() Amounts { return Amounts{QuotaVolumes: s.SizeBytes, QuotaSpend: 1} }

// Uses of quotas by a floating IP.
func (s FloatingIPSpec) Uses() Amounts { return Amounts{QuotaFloatingIPs: 1, QuotaSpend: 1} }
