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

// Codes of an InstanceWarning.
const (
	WarnVGPUUnsupported = "image-vgpu-unsupported"
	WarnVGPUNewKernel   = "image-vgpu-new-kernel"
)

// InstanceWarnings are what is likely not to work of a new instance, whose image is of that
// name and has those abilities.
func InstanceWarnings(s InstanceSpec, image string, can ImageAbilities) []InstanceWarning {
	switch {
	case s.Vgpu == nil:
		return nil
	case can.Vgpu == VGPUUnsupported:
		return []InstanceWarning{{Code: WarnVGPUUnsupported, Message: "image " + image + " has no driver for a vGPU: the instance has one and cannot use it",
			Hint: "choose another image, or install a kernel with virtio_gpu in the instance"}}
	case can.Vgpu == VGPUNewKernel:
		return []InstanceWarning{{Code: WarnVGPUNewKernel, Message: "the kernel of image " + image + " has no driver for a vGPU: the guest tools replace it at the first boot, and the instance reboots once",
			Hint: "it needs a network from which it reaches its distribution's packages"}}
	}
	return nil
}
