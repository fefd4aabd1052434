package api

// Codes of an InstanceWarning.
const (
	WarnVGPUUnsupported = "image-vgpu-unsupported"
	WarnVGPUNewKernel   = "image-vgpu-new-kernel"
	WarnNoSSHKey        = "no-ssh-key"
	WarnNoRoom          = "no-room-now"
)

// InstanceWarnings returns warnings about what will probably not work in a new
// instance, given the name and the abilities of its image, and whether the SSH gateway
// signs in to it.
func InstanceWarnings(s InstanceSpec, image string, can ImageAbilities, gateway bool) (all []InstanceWarning) {
	if s.Vgpu != nil {
		all = append(all, vgpuWarnings(image, can)...)
	}
	if s.App == "" && s.Image != "" && WithoutSSH(s) && !gateway { // an app brings its own user data; who installs a system chooses how to sign in
		all = append(all, InstanceWarning{Code: WarnNoSSHKey, Cause: Plain, Message: "the instance has no SSH key and no user data: nobody can sign in to it directly",
			Hint: "create it with an SSH key or with user data; neither can be added later"})
	}
	return all
}

func vgpuWarnings(image string, can ImageAbilities) []InstanceWarning {
	switch can.Vgpu {
	case VGPUUnsupported:
		return []InstanceWarning{{Code: WarnVGPUUnsupported, Cause: Plain, Message: "image " + image + " has no driver for a vGPU: the instance has one and cannot use it",
			Hint: "choose another image, or install a kernel with virtio_gpu in the instance"}}
	case VGPUNewKernel:
		return []InstanceWarning{{Code: WarnVGPUNewKernel, Cause: Plain, Message: "the kernel of image " + image + " has no driver for a vGPU: the guest tools replace it at the first boot, and the instance reboots once",
			Hint: "it needs a network from which it reaches its distribution's packages"}}
	}
	return nil
}

// NoRoom returns the warning that an instance would stay pending, for that reason.
func NoRoom(why Reason) InstanceWarning {
	return InstanceWarning{Code: WarnNoRoom, Message: "the instance would wait: " + why.Text, Cause: why.Cause, Hint: "make it smaller, or create it and let it wait for room"}
}

// NoRoomToResize returns the warning that an instance keeps its size, for that reason.
func NoRoomToResize(why Reason) InstanceWarning {
	return InstanceWarning{Code: WarnNoRoom, Message: "there is no room for the new size now: " + why.Text, Cause: why.Cause, Hint: "it waits in the queue while it is stopped; until it gets the new size it can be started with the size that it has"}
}
