package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/basalt-gpu/basalt/appliance/node/gpudriver"
	"github.com/basalt-gpu/basalt/gpu/gpud"
)

const driverUsage = `basalt-gpud driver installs NVIDIA's driver on this node, with Debian's packages: the
open kernel modules, which are built for the running kernel, and the libraries.

  basalt-gpud driver install --accept-nvidia-license [--from DIR]…
  basalt-gpud driver status

status shows each step, and which one is missing (exit status 1). install performs the
missing steps and then runs basalt-gpud doctor; it can be run again after a failure or a
power cut. Its exit status is 2 if somebody has to change something before it is run
again. Without --from, the packages come from the configured package archives, to which
the sections contrib and non-free are added.

`

// driverOptions are the options of basalt-gpud driver.
type driverOptions struct {
	gpudriver.Options
	kernel string
	once   string // removed, with the packages that the installer kept, after a success
}

// stringList collects an option that can be repeated.
type stringList []string

func (l *stringList) String() string { return "" }

func (l *stringList) Set(v string) error {
	*l = append(*l, v)
	return nil
}

func parseDriver(verb string, args []string) (o driverOptions, err error) {
	f := flag.NewFlagSet("basalt-gpud driver "+verb, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&o.kernel, "kernel", "", "`release` of the installed kernel that the modules are for; if it is not the running one, they are not loaded (default: the running kernel)")
	f.BoolVar(&o.WithoutCard, "without-card", false, "the node may be without an NVIDIA card: one that is added later is used without further steps")
	f.BoolVar(&o.KeyEnrolled, "secure-boot-key-enrolled", false, "with Secure Boot: the firmware accepts the key that dkms signs modules with")
	if verb == "install" {
		f.BoolVar(&o.AcceptLicense, "accept-nvidia-license", false, "you accept NVIDIA's license of the driver (https://www.nvidia.com/en-us/drivers/nvidia-license/)")
		f.Var((*stringList)(&o.From), "from", "`directory` with packages, or the mounted installation medium; no archive is used; can be repeated")
		f.StringVar(&o.once, "once", "", "`file` that is removed after a success, with the packages that the installer has kept")
	}
	if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
		f.SetOutput(os.Stdout)
		fmt.Print(driverUsage)
		f.PrintDefaults()
		return o, err
	} else if err != nil {
		return o, fmt.Errorf("driver %s: %w (see --help)", verb, err)
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("driver %s: unexpected argument %q", verb, f.Arg(0))
	}
	return o, nil
}

func runDriver(ctx context.Context, args []string) error {
	if len(args) == 0 || !slices.Contains([]string{"install", "status"}, args[0]) {
		fmt.Print(driverUsage)
		if len(args) > 0 && slices.Contains([]string{"-h", "-help", "--help"}, args[0]) {
			return flag.ErrHelp
		}
		return errors.New("driver: want install or status")
	}
	o, err := parseDriver(args[0], args[1:])
	if err != nil {
		return err
	}
	n := &gpudriver.Installer{
		Root: "/", Kernel: o.kernel, Out: os.Stdout, Command: gpudriver.Exec, Report: gpud.DriverReport,
		Doctor: func(ctx context.Context) error { return runDoctor(ctx, nil) },
	}
	if args[0] == "status" {
		return n.Status(ctx, o.Options)
	}
	if err := n.Install(ctx, o.Options); err != nil {
		return fmt.Errorf("install the driver: %w", err)
	}
	return forgetRequest(n.Root, o.once)
}

// forgetRequest removes the installer's request, so that it is not performed again, and
// the packages that belong to it.
func forgetRequest(root, file string) error {
	if file == "" {
		return nil
	}
	if err := os.RemoveAll(filepath.Join(root, gpudriver.Kept)); err != nil {
		return err
	}
	return os.Remove(file)
}

// exitStatus returns the exit status for an error: 2 if trying again does not help.
func exitStatus(err error) int {
	var refusal *gpudriver.Refusal
	if errors.As(err, &refusal) {
		return 2
	}
	return 1
}
