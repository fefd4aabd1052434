package dmcrypttest

import (
	"os"
	"testing"

	"github.com/basalt-gpu/basalt/sds/dmcrypt"
)

// HasKernel reports whether this machine's kernel has a device mapper. The device that
// controls it may exist without the module.
func HasKernel() bool {
	control, err := os.OpenFile("/dev/mapper/control", os.O_RDWR, 0)
	if err != nil {
		return false
	}
	return control.Close() == nil
}

// Here returns the kernel's devices, or a fake if the kernel has no device mapper.
func Here(t *testing.T) All {
	t.Helper()
	if HasKernel() {
		return dmcrypt.Kernel{}
	}
	t.Log("the kernel has no device mapper: the content of the disks is not encrypted")
	fake := &Loop{}
	t.Cleanup(func() {
		if err := fake.CloseAll(); err != nil {
			t.Error(err)
		}
	})
	return fake
}
