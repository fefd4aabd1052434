package agent

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// instanceFiles locates the files of this node's instances: each has a directory
// that is removed with it, and one for its sockets.
type instanceFiles struct{ o *Options }

// dir returns the directory of an instance's own files; it is removed with the
// instance.
func (f *instanceFiles) dir(id api.InstanceID) string {
	return filepath.Join(f.o.DataDir, "instances", string(id))
}

// vgpuMark returns the path of the file that exists while gpud may have a slice for
// the instance.
func (f *instanceFiles) vgpuMark(id api.InstanceID) string { return filepath.Join(f.dir(id), "vgpu") }

func (f *instanceFiles) runDir(id api.InstanceID) string {
	return filepath.Join(f.o.RunDir, string(id))
}

func (f *instanceFiles) seedPath(id api.InstanceID) string {
	return filepath.Join(f.dir(id), "seed.iso")
}

// nvramPath returns the path of the guest's UEFI variables.
func (f *instanceFiles) nvramPath(id api.InstanceID) string {
	return filepath.Join(f.dir(id), "nvram.fd")
}

// tpmPath returns the path of the permanent state of the guest's TPM, which libvirt
// creates and deletes.
func (f *instanceFiles) tpmPath(id api.InstanceID) string {
	return hypervisor.TPMState(f.o.TPMStates, id)
}

func (f *instanceFiles) frozenMark(id api.InstanceID) string {
	return filepath.Join(f.dir(id), "frozen")
}

func (f *instanceFiles) drop(id api.InstanceID) error {
	return errors.Join(os.RemoveAll(f.runDir(id)), os.RemoveAll(f.dir(id)))
}
