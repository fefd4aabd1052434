package api

// VGPUAbility is whether an image's kernel can drive a virtual GPU; empty: it is not known.
type VGPUAbility string

// VGPU abilities of an image.
const (
	VGPUSupported   VGPUAbility = "supported"
	VGPUNewKernel   VGPUAbility = "new-kernel" // once the guest tools have replaced its kernel
	VGPUUnsupported VGPUAbility = "unsupported"
)

// AgentAbility is whether an image has a guest agent of its own; empty: it is not known.
type AgentAbility string

// Agent abilities of an image.
const (
	AgentPresent AgentAbility = "present"
	AgentAbsent  AgentAbility = "absent"
)

func (a ImageAbilities) validate(bad *faults) {
	bad.note(
		oneOf("spec.abilities.vgpu", a.Vgpu, "", VGPUSupported, VGPUNewKernel, VGPUUnsupported),
		oneOf("spec.abilities.guestAgent", a.GuestAgent, "", AgentPresent, AgentAbsent))
}

// Or returns what is known of an image, and where nothing is, what another says.
func (a ImageAbilities) Or(b ImageAbilities) ImageAbilities {
	if a.Vgpu == "" {
		a.Vgpu = b.Vgpu
	}
	if a.GuestAgent == "" {
		a.GuestAgent = b.GuestAgent
	}
	return a
}
