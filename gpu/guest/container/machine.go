package container

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Machine describes what a container can be given: the installed guest tools, and the
// vGPUs.
type Machine struct {
	// Libraries is the folder with libcuda.so.1 and libnvidia-ml.so.1.
	Libraries string
	// Programs is the folder with nvidia-smi and this program.
	Programs string
	// Nodes are the paths of the vGPUs' render nodes, in the order of their numbers.
	Nodes []string
	// Socket is the socket of a basalt-gpud on this machine itself. It represents one
	// GPU and replaces the render nodes. It is empty in a virtual machine.
	Socket string
	// Absent is the reason why there is no GPU, for the user, or empty.
	Absent string
}

const (
	installedLibraries = "/usr/lib/basalt"
	nodeFolder         = "/dev/dri"
)

// ThisMachine returns a description of the machine that it runs on. As in the libraries,
// the variable BASALT_GPU may name the socket of a basalt-gpud on this machine; it is an
// error if that is not a socket. A machine without a vGPU is not an error.
func ThisMachine() (*Machine, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	m := &Machine{Libraries: installedLibraries, Programs: filepath.Dir(self)}
	// On the tools disc the libraries are in a folder beside the programs' folder.
	if disc := filepath.Dir(m.Programs); isFile(filepath.Join(disc, "install.sh")) {
		m.Libraries = filepath.Join(disc, "lib")
	}
	if where := os.Getenv("BASALT_GPU"); where != "" {
		socket, ok := strings.CutPrefix(where, "unix:")
		if !ok || !filepath.IsAbs(socket) {
			return nil, fmt.Errorf("BASALT_GPU is %q, want unix: and an absolute path", where)
		}
		m.Socket = socket
		if st, err := os.Stat(socket); err != nil || st.Mode().Type() != os.ModeSocket {
			return nil, fmt.Errorf("BASALT_GPU is %q, which is not a socket: check that basalt-gpud is running", where)
		}
		return m, nil
	}
	m.Nodes, m.Absent = vgpus(nodeFolder, isVGPU)
	return m, nil
}

func isFile(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular()
}

// GPUs returns the number of GPUs of the machine.
func (m *Machine) GPUs() int {
	if m.Socket != "" {
		return 1
	}
	return len(m.Nodes)
}

// noGPU returns the error for a machine without a GPU.
func (m *Machine) noGPU() error {
	return errors.New("this machine has no vGPU: " + m.Absent)
}

// vgpus returns the render nodes of the folder for which ours returns nil, in the order of
// their numbers. If there are none, absent is the reason.
func vgpus(folder string, ours func(path string) error) (nodes []string, absent string) {
	all, _ := filepath.Glob(filepath.Join(folder, "renderD*")) // fails only for an invalid pattern
	slices.SortFunc(all, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
	if len(all) == 0 {
		return nil, folder + " has no render nodes: check that the kernel module virtio_gpu is loaded"
	}
	var others []string
	for _, path := range all {
		if err := ours(path); err != nil {
			others = append(others, fmt.Sprintf("%s: %v", path, err))
		} else {
			nodes = append(nodes, path)
		}
	}
	if len(nodes) == 0 {
		return nil, strings.Join(others, "; ")
	}
	return nodes, ""
}
