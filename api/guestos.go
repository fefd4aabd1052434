package api

// GuestOS is the operating system that an instance's virtual machine is configured for.
type GuestOS string

// Operating systems.
const (
	OSLinux   GuestOS = "linux"
	OSWindows GuestOS = "windows"
)

// guestOS checks that an instance has nothing that its operating system does not
// support.
func guestOS(s InstanceSpec) *Error {
	if s.OS == OSWindows && s.Vgpu != nil {
		return invalid("spec.os", "Windows has no driver for virtual GPUs").WithHint("create the instance without a virtual GPU")
	}
	return nil
}
