package api

// VGPUAbility reports whether an image's kernel can drive a virtual GPU; empty if
// unknown.
type VGPUAbility string

// VGPU abilities of an image.
const (
	VGPUSupported   VGPUAbility = "supported"
	VGPUNewKernel   VGPUAbility = "new-kernel" // once the guest tools have replaced its kernel
	VGPUUnsupported VGPUAbility = "unsupported"
)

// AgentAbility reports whether an image includes a guest agent; empty if unknown.
type AgentAbility string

// Agent abilities of an image.
const (
	AgentPresent AgentAbility = "present"
	AgentAbsent  AgentAbility = "absent"
)

func (a ImageAbilities) validate(bad *faults) {
	bad.note(
		oneOf("spec.abilities.vgpu", a.Vgpu, "", VGPUSupported, VGPUNewKernel, VGPUUnsupported),
		oneOf("spec.abilities.guestAgent", a.GuestAgent, "", AgentPresent, AgentAbsent),
		oneOf("spec.abilities.os", a.OS, "", OSLinux, OSWindows, OSOther))
	if len(a.OSName) > maxOSName || hasControl(a.OSName) {
		bad.note(invalid("spec.abilities.osName", "%q is not a valid name, want up to %d bytes without control characters", clip(a.OSName), maxOSName))
	}
}

// Or returns the abilities in a, completed from b where a is empty.
func (a ImageAbilities) Or(b ImageAbilities) ImageAbilities {
	if a.Vgpu == "" {
		a.Vgpu = b.Vgpu
	}
	if a.GuestAgent == "" {
		a.GuestAgent = b.GuestAgent
	}
	if a.OS == "" {
		a.OS = b.OS
	}
	if a.OSName == "" {
		a.OSName = b.OSName
	}
	return a
}
