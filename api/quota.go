package api

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// The names of quotas.
const (
	QuotaInstances   = "instances"
	QuotaVCPUs       = "vcpus"
	QuotaMemory      = "memoryBytes"
	QuotaVRAM        = "vramBytes"
	QuotaGPUShare    = "gpuSharePercent" // guaranteed GPU time; 100 is one GPU
	QuotaVolumes     = "volumeBytes"
	QuotaFloatingIPs = "floatingIPs"

	// QuotaSpend blocks new spending: every object that costs money uses some of it,
	// and its limit is 0 while nothing new may be created. Users cannot set it.
	QuotaSpend = "spend"
)

// amountQuotas are the quotas whose use objects report as amounts (Command.Uses).
var amountQuotas = []string{QuotaInstances, QuotaVCPUs, QuotaMemory, QuotaVRAM, QuotaGPUShare, QuotaVolumes, QuotaFloatingIPs}

// quotaNouns are the nouns for what quotas count.
var quotaNouns = map[string]string{QuotaInstances: "instance", QuotaVCPUs: "vCPU", QuotaMemory: "memory", QuotaVRAM: "VRAM",
	QuotaGPUShare: "GPU time", QuotaVolumes: "volume storage", QuotaFloatingIPs: "floating IP", "apiKeys": "API key"}

// QuotaNoun returns the noun for what a quota counts, for messages: "VRAM", "security
// group".
func QuotaNoun(quota string) string {
	if noun, ok := quotaNouns[quota]; ok {
		return noun
	}
	var b strings.Builder
	for _, r := range strings.TrimSuffix(quota, "s") {
		if unicode.IsUpper(r) {
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// QuotaText returns an amount of a quota with its unit: "18 GiB".
func QuotaText(quota string, n int64) string {
	switch quota {
	case QuotaMemory, QuotaVRAM, QuotaVolumes:
		return sizeText(n)
	case QuotaGPUShare:
		return strconv.FormatInt(n, 10) + "%"
	}
	return strconv.FormatInt(n, 10)
}

// CountQuota returns the quota of which every object of the kind uses one, or "" if
// there is none.
func CountQuota(k Kind) string { return k.Info().Quota }

// DefaultQuota returns the limit of a quota for organizations that set none; limited is
// false if there is no limit.
func DefaultQuota(quota string) (most int64, limited bool) {
	most, limited = defaults[quota]
	return most, limited
}

// quotaNames returns the quotas that an organization or a project may limit.
func quotaNames() []string {
	all := slices.Clone(amountQuotas)
	for _, k := range kinds {
		if k.Quota != "" {
			all = append(all, k.Quota)
		}
	}
	slices.Sort(all)
	return all
}

// ValidateQuota checks the quotas of an organization or a project.
func ValidateQuota(q Amounts) *Error {
	var bad faults
	names := quotaNames()
	for _, name := range slices.Sorted(maps.Keys(q)) {
		if !slices.Contains(names, name) {
			bad.note(invalid("spec.quota", "unknown quota %q", clip(name)).WithHint("want one of %s", strings.Join(names, ", ")))
			continue
		}
		bad.note(between("spec.quota."+name, q[name], 0, MaxAmount, ""))
	}
	return bad.one()
}

// Limits returns the limits of an organization's quotas. While it is suspended or
// restricted, the state machine accepts nothing new, even if an API server has checked
// an outdated state.
func (s OrganizationSpec) Limits() Amounts {
	return limits(s.Quota, s.Suspended != nil || s.Restricted != nil)
}

// Limits returns the limits of a project's quotas.
func (s ProjectSpec) Limits() Amounts { return limits(s.Quota, s.Restricted != nil) }

func limits(quota Amounts, closed bool) Amounts {
	out := Amounts{} // not nil, which would mean unchanged
	maps.Copy(out, quota)
	if closed {
		out[QuotaSpend] = 0
	}
	return out
}

// Uses returns the quotas used by an instance of the flavor, whether it is running or
// not.
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

// Uses returns the quotas used by a volume.
func (s VolumeSpec) Uses() Amounts { return Amounts{QuotaVolumes: s.SizeBytes, QuotaSpend: 1} }

// Uses returns the quotas used by a floating IP.
func (s FloatingIPSpec) Uses() Amounts { return Amounts{QuotaFloatingIPs: 1, QuotaSpend: 1} }
