package container

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// The environment variables by which a container requests GPUs.
const (
	visibleDevices     = "NVIDIA_VISIBLE_DEVICES"
	driverCapabilities = "NVIDIA_DRIVER_CAPABILITIES"
)

// request is what a container requests.
type request struct {
	libraries bool     // the libraries, even if devices is empty
	devices   []string // the devices' names in the specification
}

// capabilities lists the words of NVIDIA_DRIVER_CAPABILITIES. compute and utility are
// always provided. The others have no effect on a vGPU; they are accepted because many
// images request them without need.
var capabilities = map[string]bool{"": true, "all": true, "compute": true, "utility": true,
	"compat32": true, "display": true, "graphics": true, "ngx": true, "video": true}

// parseRequest decodes the request in a container's environment. gpus is the number of GPUs
// of the machine; it returns an error for a GPU that does not exist, and for an unknown
// capability.
func parseRequest(env map[string]string, gpus int) (request, error) {
	for word := range strings.SplitSeq(env[driverCapabilities], ",") {
		if !capabilities[strings.TrimSpace(word)] {
			return request{}, fmt.Errorf("%s has %q, want all or of compute, utility, graphics, video, display, ngx and compat32", driverCapabilities, word)
		}
	}
	asked := env[visibleDevices]
	switch asked {
	case "", "void":
		return request{}, nil
	case "none":
		return request{libraries: true}, nil
	}
	r := request{libraries: true}
	for name := range strings.SplitSeq(asked, ",") {
		name = strings.TrimPrefix(strings.TrimSpace(name), Kind+"=")
		if name == all {
			return request{libraries: true, devices: []string{all}}, nil
		}
		if n, err := strconv.ParseUint(name, 10, 31); err != nil || n >= uint64(gpus) {
			return request{}, fmt.Errorf("the container requests GPU %q (%s=%s), but %s", name, visibleDevices, asked, availableGPUs(gpus))
		}
		r.devices = append(r.devices, name)
	}
	return r, nil
}

// availableGPUs describes, for an error message, the GPUs that a container can request.
func availableGPUs(gpus int) string {
	switch gpus {
	case 0:
		return "this machine has none"
	case 1:
		return "this machine has one GPU: 0, or all"
	}
	return fmt.Sprintf("this machine has %d GPUs: 0 to %d, or all", gpus, gpus-1)
}

// environment returns a process's variables by name. If a name occurs several times, the
// last value is used: Docker appends its own after those of image and user.
func environment(list []string) map[string]string {
	env := map[string]string{}
	for _, v := range list {
		name, value, _ := strings.Cut(v, "=")
		env[name] = value
	}
	return env
}

// ErrHook is the error of the hook that Docker adds. It is reported when the hook runs,
// because that means that our runtime has not removed it.
var ErrHook = errors.New("docker requested a GPU, but started the container with another runtime than Basalt's: " +
	"run \"basalt-container docker on\" and restart Docker, or add --runtime basalt to docker run")
