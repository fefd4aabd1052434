package container

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	specs "tags.cncf.io/container-device-interface/specs-go"
)

// Kind is the kind of the specification's devices. It is NVIDIA's, because programs and
// manuals use it.
const Kind = "nvidia.com/gpu"

// all is the name of the device that means every GPU of the machine.
const all = "all"

// hiddenProgram is the path of the real nvidia-smi in a container. This program is at the
// usual path, to explain what the image lacks (Smi).
const hiddenProgram = "/usr/libexec/basalt/nvidia-smi"

// triplets maps GOARCH to Debian's name of the folder of libraries.
var triplets = map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}

// libraryFolders returns the folders that the loaders of glibc search without a cache:
// that of Debian and its derivatives, if arch has one, and that of all others.
func libraryFolders(arch string) []string {
	folders := []string{"/usr/lib64"}
	if t := triplets[arch]; t != "" {
		folders = append([]string{"/usr/lib/" + t}, folders...)
	}
	return folders
}

// Spec returns the CDI specification of the machine. Without a GPU its list of devices is
// empty, which CDI does not allow in a file. It returns an error if the guest tools are not
// installed.
func (m *Machine) Spec() (*specs.Spec, error) {
	mounts, err := m.mounts()
	if err != nil {
		return nil, err
	}
	s := &specs.Spec{Kind: Kind, ContainerEdits: specs.ContainerEdits{
		Env: []string{
			// Prevents other runtimes, such as NVIDIA's, from adding GPUs too.
			visibleDevices + "=void",
			// Triton searches ldconfig's cache, which does not contain mounted files.
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
	// The lowest possible version, because engines refuse versions that are newer than they are.
	if s.Version, err = specs.MinimumRequiredVersion(s); err != nil {
		return nil, fmt.Errorf("determine version of the CDI specification: %w", err)
	}
	return s, nil
}

// nodeDevice returns a device that consists of render nodes.
func nodeDevice(name string, nodes ...string) specs.Device {
	d := specs.Device{Name: name}
	for _, path := range nodes {
		// Every user may open it, as on the machine itself.
		mode := os.FileMode(0o666)
		d.ContainerEdits.DeviceNodes = append(d.ContainerEdits.DeviceNodes, &specs.DeviceNode{Path: path, Permissions: "rw", FileMode: &mode})
	}
	return d
}

// socketDevice returns the device for a basalt-gpud on the machine itself.
func (m *Machine) socketDevice(name string) specs.Device {
	return specs.Device{Name: name, ContainerEdits: specs.ContainerEdits{
		Env:    []string{"BASALT_GPU=unix:" + m.Socket},
		Mounts: []*specs.Mount{{HostPath: m.Socket, ContainerPath: m.Socket, Options: []string{"bind", "nosuid", "nodev"}}},
	}}
}

// mounts returns the mounts of libraries and programs. It returns an error if one of them
// is not installed, or if they are linked with musl.
func (m *Machine) mounts() (list []*specs.Mount, err error) {
	// install.sh creates this file on machines with musl, such as Alpine.
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
			add(from, filepath.Join(folder, lib)) // for linking, and for programs that open this name
		}
		// libcuda loads it from its own folder if the host's operator allows it.
		add(filepath.Join(m.Libraries, "libbasalt-interop.so.1"), filepath.Join(folder, "libbasalt-interop.so.1"))
	}
	// Our libcudart and libcublas, for basalt-cuda-run.
	add(m.Libraries, installedLibraries)
	add(filepath.Join(m.Programs, "basalt-cuda-run"), "/usr/bin/basalt-cuda-run")
	add(filepath.Join(m.Programs, "nvidia-smi"), hiddenProgram)
	add(filepath.Join(m.Programs, "basalt-container"), "/usr/bin/nvidia-smi")
	return list, err
}
