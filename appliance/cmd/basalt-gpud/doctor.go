package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/basalt-gpu/basalt/gpu/gpud"
	"github.com/basalt-gpu/basalt/gpu/worker/sandbox"
)

// doctor checks what workers need of this machine's GPUs and NVIDIA driver, in the order of
// their dependencies, and returns what to do about the first thing that is missing.
type doctor struct {
	root         string // of the file system, for tests
	worker, user string
	out          io.Writer
}

const doctorUsage = `basalt-gpud doctor checks whether the NVIDIA GPUs of this machine can be used for
virtual GPUs, and prints what to do if one cannot. It uses each GPU as a program of an
instance does, in a worker with full confinement. It can run while basalt-gpud runs.

`

// checkTime limits all steps of one GPU: a first context takes seconds on a machine without
// persistence mode.
const checkTime = 2 * time.Minute

func runDoctor(ctx context.Context, args []string) error {
	o := doctor{root: "/", out: os.Stdout}
	f := flag.NewFlagSet("basalt-gpud doctor", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&o.user, "worker-user", "", "`user` that workers run as when started by root (default: basalt-worker if it exists)")
	f.StringVar(&o.worker, "worker", besideThis("basalt-worker"), "`path` of basalt-worker")
	if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
		f.SetOutput(os.Stdout)
		fmt.Print(doctorUsage)
		f.PrintDefaults()
		return err
	} else if err != nil {
		return fmt.Errorf("doctor: %w (see --help)", err)
	}
	if f.NArg() > 0 {
		return fmt.Errorf("doctor: unexpected argument %q", f.Arg(0))
	}
	return o.run(ctx)
}

// besideThis returns the path of a program in the folder of this one.
func besideThis(name string) string {
	exe, err := os.Executable()
	if err != nil {
		return name
	}
	return filepath.Join(filepath.Dir(exe), name)
}

func (d doctor) run(ctx context.Context) error {
	box, open, err := sandbox.For(d.user)
	if err != nil {
		return fmt.Errorf("--worker-user: %w", err)
	}
	if err := d.driver(); err != nil {
		return err
	}
	if err := d.devices(box); err != nil {
		return err
	}
	cards, err := gpud.NVIDIACards()
	if err != nil {
		return fmt.Errorf("list GPUs through NVML: %w. Run nvidia-smi: it prints the driver's own reason", err)
	}
	if len(cards) == 0 {
		return errors.New("the NVIDIA driver is loaded, but lists no GPU. Look for NVRM in the kernel's log (dmesg)")
	}
	as := "with full confinement"
	if open != "" {
		as = "without full confinement (" + open + ")"
	}
	for _, c := range cards {
		fmt.Fprintf(d.out, "%s: %s, %s of VRAM for virtual GPUs, %d multiprocessors\n", c.ID, c.Name, gpud.FormatSize(c.VRAMBytes), c.Multiprocessors)
		fmt.Fprintf(d.out, "  worker %s:\n", as)
		if err := d.card(ctx, c.ID, box); err != nil {
			return err
		}
	}
	fmt.Fprintln(d.out, "all GPUs can be used for virtual GPUs")
	return nil
}

// driver checks that the kernel's module is loaded.
func (d doctor) driver() error {
	b, err := os.ReadFile(filepath.Join(d.root, "proc/driver/nvidia/version"))
	if err != nil {
		return errors.New("no NVIDIA driver is loaded: /proc/driver/nvidia/version does not exist. Install NVIDIA's driver for CUDA 12.4 or newer (550 or newer): basalt-gpud driver install shows how, and basalt-gpud driver status what is missing")
	}
	first, _, _ := strings.Cut(string(b), "\n")
	fmt.Fprintln(d.out, strings.Join(strings.Fields(first), " "))
	return nil
}

// devices checks the device files for the workers' user.
func (d doctor) devices(box sandbox.Sandbox) error {
	paths := []string{"dev/nvidiactl", "dev/nvidia-uvm"}
	cards, _ := filepath.Glob(filepath.Join(d.root, "dev/nvidia[0-9]*"))
	for _, c := range cards {
		paths = append(paths, strings.TrimPrefix(c, d.root))
	}
	for _, p := range paths {
		path := filepath.Join(d.root, p)
		i, err := os.Stat(path)
		switch {
		case errors.Is(err, os.ErrNotExist) && strings.HasSuffix(p, "uvm"):
			return fmt.Errorf("/%s does not exist. Load the module and create its file: modprobe nvidia-uvm && nvidia-modprobe -u -c 0", p)
		case err != nil:
			return fmt.Errorf("device file: %w. Create it with nvidia-modprobe -c 0", err)
		}
		if !mayUse(i, box.User) {
			return fmt.Errorf("/%s has mode %v: want one that lets the user of the workers read and write it. Add that user to the group of the file, or set the option NVreg_DeviceFileMode=0666 of the module", p, i.Mode().Perm())
		}
	}
	fmt.Fprintf(d.out, "device files: /%s\n", strings.Join(paths, " /"))
	return nil
}

// mayUse reports whether a user may read and write a file; nil: this process's user.
func mayUse(i os.FileInfo, u *syscall.Credential) bool {
	owner, ok := i.Sys().(*syscall.Stat_t)
	if u == nil {
		u = &syscall.Credential{Uid: uint32(os.Geteuid()), Gid: uint32(os.Getegid())}
	}
	const both = 0o6
	mode := i.Mode().Perm()
	switch {
	case u.Uid == 0 || !ok || mode&both == both:
		return true
	case owner.Uid == u.Uid:
		return mode>>6&both == both
	}
	for _, g := range append([]uint32{u.Gid}, u.Groups...) {
		if g == owner.Gid {
			return mode>>3&both == both
		}
	}
	return false
}

// less lists the parts of the confinement that a check can leave out to find the part that
// causes a failure.
var less = []struct{ part, without, remedy string }{
	{"the list of files that a worker may open (Landlock)", "landlock", "If the libraries of the driver are in a directory of their own, start basalt-gpud with it in LD_LIBRARY_PATH"},
	{"the filter of system calls (seccomp)", "seccomp", "This driver needs a system call that basalt-worker's filter (seccomp.go) does not allow: report it with the version of the driver"},
}

// card has a worker check a GPU; if that fails, it repeats the check with less confinement.
func (d doctor) card(ctx context.Context, id string, box sandbox.Sandbox) error {
	failed := d.check(ctx, id, box, "", d.out)
	if failed == nil {
		return nil
	}
	for _, l := range less {
		if d.check(ctx, id, box, l.without, io.Discard) == nil {
			return fmt.Errorf("%w. It works without %s. %s", failed, l.part, l.remedy)
		}
	}
	if d.check(ctx, id, sandbox.Sandbox{}, "", io.Discard) == nil {
		return fmt.Errorf("%w. It works as this user, outside of the namespaces of the workers: check the permissions of the user of the workers (%v)", failed, box.User)
	}
	return fmt.Errorf("%w. It fails without confinement too: run a CUDA program of NVIDIA on this machine, e.g. deviceQuery", failed)
}

// check runs one check and writes its steps; the error is that of the failed step.
func (d doctor) check(ctx context.Context, id string, box sandbox.Sandbox, without string, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	args := []string{"--check", id}
	if without != "" {
		args = append(args, "--check-without", without)
	}
	cmd := exec.CommandContext(ctx, d.worker, args...)
	cmd.SysProcAttr = box.Apply(&syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL})
	said, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return fmt.Errorf("start a worker: %w", err)
	}
	last, failed := readSteps(said, out)
	switch err := cmd.Wait(); {
	case failed != nil:
		return failed
	case err != nil:
		return fmt.Errorf("worker exited (%w) after %q", err, last)
	}
	return nil
}

// readSteps prints the steps of a check, and returns the last line and the error of the first
// failed step.
func readSteps(from io.Reader, out io.Writer) (last string, failed error) {
	for lines := bufio.NewScanner(from); lines.Scan(); {
		last = lines.Text()
		step, ok := strings.CutPrefix(last, "check: ")
		if !ok {
			continue
		}
		fmt.Fprintf(out, "    %s\n", step)
		if name, result, _ := strings.Cut(step, ": "); result != "ok" && failed == nil {
			failed = fmt.Errorf("%s: %s", name, result)
		}
	}
	return last, failed
}
