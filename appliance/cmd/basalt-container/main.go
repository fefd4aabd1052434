// Command basalt-container gives containers access to a guest's virtual GPU. It has several
// names: the OCI runtimes that Docker starts, the hook that Docker looks for, and nvidia-smi in
// a container (gpu/guest/container).
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/basalt-gpu/basalt/gpu/guest/container"
)

const usage = `usage:
  basalt-container cdi [--output FILE] [--print]    write the CDI specification of this machine's vGPU (Podman)
  basalt-container docker on|off [--config FILE] [--root DIR] [--programs DIR]
                                                    register with Docker for docker run --gpus, or take that back
`

func main() {
	name := filepath.Base(os.Args[0])
	var err error
	switch name {
	case "basalt-container-runtime":
		os.Exit(exit(container.Runtime(os.Args, false))) // Runtime has reported its error
	case "nvidia-container-runtime":
		os.Exit(exit(container.Runtime(os.Args, true)))
	case "nvidia-container-runtime-hook":
		err = container.ErrHook
	case "nvidia-smi":
		fmt.Fprintln(os.Stderr, "nvidia-smi:", container.Smi(os.Args)) // Smi returns only on an error
		os.Exit(127)                                                   // the exit status of a shell if a program cannot be run
	default:
		name = "basalt-container"
		err = run(os.Args[1:], os.Stdout)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
	}
	if errors.Is(err, errUsage) {
		fmt.Fprint(os.Stderr, usage)
	}
	os.Exit(exit(err))
}

func exit(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errUsage):
		return 2
	}
	return 1
}

// errUsage is returned for an invalid command line.
var errUsage = errors.New("unknown command line")

func run(args []string, out io.Writer) error {
	if len(args) == 0 {
		return errUsage
	}
	switch args[0] {
	case "cdi":
		return runCDI(args[1:], out)
	case "docker":
		return runDocker(args[1:], out)
	case "help", "-h", "--help":
		fmt.Fprint(out, usage)
		return nil
	}
	return fmt.Errorf("%q: %w", args[0], errUsage)
}

func runCDI(args []string, out io.Writer) error {
	f := flag.NewFlagSet("cdi", flag.ContinueOnError)
	output := f.String("output", container.SpecFile, "`path` to write the specification to")
	print := f.Bool("print", false, "print the specification and write nothing")
	if err := f.Parse(args); err != nil || f.NArg() > 0 {
		return errUsage
	}
	m, err := container.ThisMachine()
	if err != nil {
		return fmt.Errorf("find out about this machine: %w", err)
	}
	if *print {
		text, err := m.Text()
		if err != nil {
			return fmt.Errorf("write the specification: %w", err)
		}
		_, err = out.Write(text)
		return err
	}
	done, err := m.Renew(*output)
	if done != "" {
		fmt.Fprintln(out, done)
	}
	if err != nil {
		return fmt.Errorf("write the specification to %s: %w", *output, err)
	}
	return nil
}

func runDocker(args []string, out io.Writer) error {
	if len(args) == 0 || args[0] != "on" && args[0] != "off" {
		return errUsage
	}
	f := flag.NewFlagSet("docker", flag.ContinueOnError)
	config := f.String("config", "", "`path` of the configuration of the Docker daemon (default /etc/docker/daemon.json)")
	root := f.String("root", "/", "root `directory` of the system to configure")
	programs := f.String("programs", "", "`directory` of basalt-container-runtime in that system")
	if err := f.Parse(args[1:]); err != nil || f.NArg() > 0 {
		return errUsage
	}
	if *programs == "" {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("find this program: %w", err)
		}
		*programs = filepath.Dir(self)
	}
	if *config == "" {
		*config = filepath.Join(*root, container.DockerConfig)
	}
	notes, err := container.Docker(*root, *config, *programs, args[0] == "on")
	for _, n := range notes {
		fmt.Fprintln(out, n)
	}
	if err != nil {
		return fmt.Errorf("turn Docker's support %s: %w", args[0], err)
	}
	return nil
}
