package container

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// call is the part of an OCI runtime's command line that this package needs.
type call struct {
	command     string // for example "create"; "" for "runc --version"
	bundle      string
	log, format string // the values of --log and --log-format
}

// valueOptions lists the options of runc and crun whose value may be the next argument. The value
// of an option that is missing here would be mistaken for the command. The only effect would
// be that the container gets no GPU.
var valueOptions = []string{"log", "log-format", "log-level", "root", "criu", "rootless", "cgroup-manager",
	"bundle", "b", "pid-file", "console-socket", "preserve-fds"}

// parseCall reads the arguments of an OCI runtime, without its name.
func parseCall(args []string) call {
	c := call{bundle: ".", format: "text"}
	for i := 0; i < len(args); i++ {
		if !strings.HasPrefix(args[i], "-") || args[i] == "-" {
			if c.command != "" { // the container's name and its arguments follow
				break
			}
			c.command = args[i]
			continue
		}
		if args[i] == "--" {
			break
		}
		name, value, has := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		if !has && slices.Contains(valueOptions, name) && i+1 < len(args) {
			i++
			value = args[i]
		}
		switch name {
		case "bundle", "b":
			c.bundle = value
		case "log":
			c.log = value
		case "log-format":
			c.format = value
		}
	}
	return c
}

// createsContainer reports whether the command creates a container from a bundle.
func (c call) createsContainer() bool {
	return slices.Contains([]string{"create", "run", "restore"}, c.command)
}

// report writes the error to stderr and to the file of --log, which the engine reads.
func (c call) report(name string, err error, stderr io.Writer) {
	fmt.Fprintf(stderr, "%s: %v\n", name, err)
	if c.log == "" {
		return
	}
	f, e := os.OpenFile(c.log, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if e != nil {
		return
	}
	defer f.Close()
	now := time.Now().UTC().Format(time.RFC3339)
	if c.format != "json" {
		fmt.Fprintf(f, "time=%q level=error msg=%q\n", now, name+": "+err.Error())
		return
	}
	line, _ := json.Marshal(map[string]string{"level": "error", "msg": name + ": " + err.Error(), "time": now}) // strings always encode
	fmt.Fprintf(f, "%s\n", line)
}

// Runtime is the OCI runtime in front of runc. For commands that create a container, it adds
// the GPUs that the container requests to its bundle. It then executes runc in its place.
// With believeImages, the environment variable that CUDA images set is a request; without it,
// only Docker's --gpus is. It returns only if it fails, and has then reported the error.
func Runtime(args []string, believeImages bool) error {
	name := filepath.Base(args[0])
	c := parseCall(args[1:])
	program, err := nextRuntime()
	if err == nil && c.createsContainer() {
		err = configureBundle(c.bundle, believeImages)
	}
	if err == nil {
		err = unix.Exec(program, append([]string{program}, args[1:]...), os.Environ())
		err = fmt.Errorf("start %s: %w", program, err)
	}
	c.report(name, err, os.Stderr)
	return err
}

// nextRuntime returns the path of the runtime that creates the containers.
func nextRuntime() (string, error) {
	for _, name := range []string{"runc", "crun"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("neither runc nor crun was found in PATH")
}

// configureBundle changes the config.json of a bundle. It examines the machine only if the
// container requests a GPU, so that a failure cannot affect other containers.
func configureBundle(bundle string, believeImages bool) error {
	file := filepath.Join(bundle, "config.json")
	config, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read bundle of the container: %w", err)
	}
	asks := strings.Contains(string(config), hookName) || believeImages && strings.Contains(string(config), visibleDevices)
	if !asks {
		return nil
	}
	m, err := ThisMachine()
	if err != nil {
		return err
	}
	config, changed, err := m.Configure(config, believeImages)
	if err != nil || !changed {
		return err
	}
	if err := replaceFile(file, config, modeOf(file, 0o600)); err != nil {
		return fmt.Errorf("write bundle of the container: %w", err)
	}
	return nil
}
