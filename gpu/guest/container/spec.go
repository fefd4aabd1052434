package container

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	specs "tags.cncf.io/container-device-interface/specs-go"
)

// Kind is the kind of the specification's devices, the one that programs and
// manuals know.
const Kind = "nvidia.com/gpu"

// all is the device that is every GPU of the machine.
const all = "all"

// hiddenProgram is where nvidia-smi itself lies in a container: at its usual place is
// this program, which explains what the image lacks (Smi).
const hiddenProgram = "/usr/libexec/basalt/nvidia-smi"

// triplets are Debian's names for the folders of libraries.
var triplets = map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}

// libraryFolders returns the folders that the loaders of glibc search without a
// cache: Debian's and its relatives', and those of all others.
func libraryFolders(arch string) []string {
	folders := []string{"/usr/lib64"}
	if t := triplets[arch]; t != "" {
		folders = append([]string{"/usr/lib/" + t}, folders...)
	}
	return folders
}

// Spec returns the CDI specification of the machine. Without a GPU its list of
// devices is empty, which CDI does not allow in a file.
func (m *Machine) Spec() (*specs.Spec, error) {
	mounts, err := m.mounts()
	if err != nil {
		return nil, err
	}
	s := &specs.Spec{Kind: Kind, ContainerEdits: specs.ContainerEdits{
		Env: []string{
			// Nobody else, NVIDIA's runtime for instance, is to add GPUs too.
			visibleDevices + "=void",
			// Triton asks ldconfig's cache, which a mount is not in.
			"TRITON_LIBCUDA_PATH=" + installedLibraries,
		},
		Mounts: mounts,
	}}
	if m.Socket != "" {
		s.Devices = []specs.Device{m.socketDevice("0"), m.socketDevice(all)}
	} else if len(m.Nodes) > 0 {
		for i, node := range m.Nodes {
			s.Devices = append(s.Devices, nodeDevice(strconv.Itoa(i), node))
		}
		s.Devices = append(s.Devices, nodeDevice(all, m.Nodes...))
	}
	// As old as can be: engines refuse versions that they do not know.
	if s.Version, err = specs.MinimumRequiredVersion(s); err != nil {
		return nil, fmt.Errorf("determine version of the CDI specification: %w", err)
	}
	return s, nil
}

// nodeDevice is a device of render nodes.
func nodeDevice(name string, nodes ...string) specs.Device {
	d := specs.Device{Name: name}
	for _, path := range nodes {
		// As on the machine itself, every user may open it.
		mode := os.FileMode(0o666)
		d.ContainerEdits.DeviceNodes = append(d.ContainerEdits.DeviceNodes, &specs.DeviceNode{Path: path, Permissions: "rw", FileMode: &mode})
	}
	return d
}

// socketDevice is the device of a basalt-gpud on the machine itself.
func (m *Machine) socketDevice(name string) specs.Device {
	return specs.Device{Name: name, ContainerEdits: specs.ContainerEdits{
		Env:    []string{"BASALT_GPU=unix:" + m.Socket},
		Mounts: []*specs.Mount{{HostPath: m.Socket, ContainerPath: m.Socket, Options: []string{"bind", "nosuid", "nodev"}}},
	}}
}

// mounts are those of libraries and programs, which must be installed.
func (m *Machine) mounts() (list []*specs.Mount, err error) {
	// install.sh leaves this mark in a machine like Alpine.
	if mark := filepath.Join(m.Libraries, "musl"); isFile(mark) {
		return nil, fmt.Errorf("the guest tools of this machine are musl's (%s), and containers need those of a machine with glibc", mark)
	}
	add := func(from, to string) {
		if _, e := os.Stat(from); e != nil && err == nil {
			err = fmt.Errorf("the guest tools are not installed: %w", e)
		}
		list = append(list, &specs.Mount{HostPath: from, ContainerPath: to, Options: []string{"bind", "ro", "nosuid", "nodev"}})
	}
	for _, folder := range libraryFolders(runtime.GOARCH) {
		for _, lib := range []string{"libcuda.so", "libnvidia-ml.so"} {
			from := filepath.Join(m.Libraries, lib+".1")
			add(from, filepath.Join(folder, lib+".1"))
			add(from, filepath.Join(folder, lib)) // programs link with it, and some open it
		}
		// libcuda looks for it beside itself, where the host's operator allows it.
		add(filepath.Join(m.Libraries, "libbasalt-interop.so.1"), filepath.Join(folder, "libbasalt-interop.so.1"))
	}
	// libcudart and libcublas of ours, for basalt-cuda-run.
	add(m.Libraries, installedLibraries)
	add(filepath.Join(m.Programs, "basalt-cuda-run"), "/usr/bin/basalt-cuda-run")
	add(filepath.Join(m.Programs, "nvidia-smi"), hiddenProgram)
	add(filepath.Join(m.Programs, "basalt-container"), "/usr/bin/nvidia-smi")
	return list, err
}
