package api

// GuestOS is the operating system that an instance's machine is made for.
type GuestOS string

// Operating systems.
const (
	OSLinux   GuestOS = "linux"
	OSWindows GuestOS = "windows"
)

// guestOS checks what an instance's operating system can have.
func guestOS(s InstanceSpec) *Error {
	if s.OS == OSWindows && s.Vgpu != nil {
		return invalid("spec.os", "Windows has no driver for virtual GPUs").WithHint("create the instance without a virtual GPU")
	}
	return nil
}
