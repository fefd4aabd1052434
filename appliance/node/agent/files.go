package agent

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/basalt-gpu/basalt/api"
)

// instanceFiles are the files of this node's instances: each has a folder that
// goes with it, and one for its sockets.
type instanceFiles struct{ o *Options }

// dir is where an instance's own files lie; they go with it.
func (f *instanceFiles) dir(id api.InstanceID) string {
	return filepath.Join(f.o.DataDir, "instances", string(id))
}

// vgpuMark is there while gpud may hold a slice for the instance.
func (f *instanceFiles) vgpuMark(id api.InstanceID) string { return filepath.Join(f.dir(id), "vgpu") }

func (f *instanceFiles) runDir(id api.InstanceID) string {
	return filepath.Join(f.o.RunDir, string(id))
}

func (f *instanceFiles) seedPath(id api.InstanceID) string {
	return filepath.Join(f.dir(id), "seed.iso")
}

// nvramPath is the file of the guest's UEFI variables.
func (f *instanceFiles) nvramPath(id api.InstanceID) string {
	return filepath.Join(f.dir(id), "nvram.fd")
}

func (f *instanceFiles) frozenMark(id api.InstanceID) string {
	return filepath.Join(f.dir(id), "frozen")
}

func (f *instanceFiles) drop(id api.InstanceID) error {
	return errors.Join(os.RemoveAll(f.runDir(id)), os.RemoveAll(f.dir(id)))
}
