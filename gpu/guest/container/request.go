package container

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// The variables by which a container asks for GPUs.
const (
	visibleDevices     = "NVIDIA_VISIBLE_DEVICES"
	driverCapabilities = "NVIDIA_DRIVER_CAPABILITIES"
)

// request is what a container asks for.
type request struct {
	libraries bool     // without any device too
	devices   []string // names in the specification
}

// capabilities are the words of NVIDIA_DRIVER_CAPABILITIES. compute and utility are
// always there; behind the others is nothing on a vGPU, and images ask for them in
// passing.
var capabilities = map[string]bool{"": true, "all": true, "compute": true, "utility": true,
	"compat32": true, "display": true, "graphics": true, "ngx": true, "video": true}

// parseRequest reads the environment of a container that asks for GPUs. gpus is how
// many there are.
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
			return request{}, fmt.Errorf("the container requests GPU %q (%s=%s), but %s", name, visibleDevices, asked, choice(gpus))
		}
		r.devices = append(r.devices, name)
	}
	return r, nil
}

// choice returns which GPUs there are to ask for.
func choice(gpus int) string {
	switch gpus {
	case 0:
		return "this machine has none"
	case 1:
		return "this machine has one GPU: 0, or all"
	}
	return fmt.Sprintf("this machine has %d GPUs: 0 to %d, or all", gpus, gpus-1)
}

// environment is a process's variables. Of several of one name the last counts,
// which Docker appends to what image and user have set.
func environment(list []string) map[string]string {
	env := map[string]string{}
	for _, v := range list {
		name, value, _ := strings.Cut(v, "=")
		env[name] = value
	}
	return env
}

// ErrHook is what the hook that Docker adds says when it is run: the runtime in front
// of runc has not taken it out.
var ErrHook = errors.New("docker requested a GPU, but started the container with another runtime than Basalt's: " +
	"run \"basalt-container docker on\" and restart Docker, or add --runtime basalt to docker run")
