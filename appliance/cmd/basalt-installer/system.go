package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/node/hardware"
	"github.com/basalt-gpu/basalt/appliance/node/hostnet"
	"github.com/basalt-gpu/basalt/installer/answers"
	"github.com/basalt-gpu/basalt/installer/install"
	"github.com/basalt-gpu/basalt/installer/machine"
	"github.com/basalt-gpu/basalt/installer/machine/network"
	"github.com/basalt-gpu/basalt/installer/tui"
)

// system is this machine, for the interactive and the unattended installation.
type system struct {
	source string
	log    *logFile
}

// newSystem returns the system, with its log in the file log, which the live system has in
// memory.
func newSystem(source, log string) (*system, error) {
	if err := os.MkdirAll(filepath.Dir(log), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	return &system{source: source, log: &logFile{f: f}}, nil
}

func (s *system) Disks(ctx context.Context) ([]machine.Disk, error) {
	// After a failed attempt the target is still mounted.
	return machine.ReadDisks(ctx, install.Target)
}

func (s *system) NICs(ctx context.Context) ([]machine.NIC, error) {
	machine.LinksUp(ctx)
	return machine.ReadNICs()
}

// Hardware implements tui.System. It also writes the checks to the log.
func (s *system) Hardware(ctx context.Context) []api.HardwareCheck {
	all := hardware.Checks(hardware.Probe(ctx, hardware.Options{}))
	for _, c := range all {
		fmt.Fprintf(s.log, "%s hardware %s, %s: %s\n", time.Now().UTC().Format("15:04:05"), c.ID, c.State, c.Found)
	}
	return all
}

// GPUs implements tui.System.
func (s *system) GPUs() []hardware.GPU { return hardware.NVIDIA(os.DirFS("/")) }

// CheckPackages implements tui.System.
func (s *system) CheckPackages(ctx context.Context, p answers.Place) error {
	e := &install.Executor{Log: s.log, Command: install.Exec}
	return e.CheckPackages(ctx, p)
}

func (s *system) Try(ctx context.Context, name string, nic machine.NIC, p answers.Path, gateway netip.Addr, dns []netip.Addr) (network.Up, []network.Check) {
	up, checks := network.Try(ctx, name, nic.Name, nic.MAC, p, gateway, dns)
	s.logChecks("network "+name+" on "+nic.Name, checks)
	return up, checks
}

func (s *system) TryDeclared(ctx context.Context, n *hostnet.Network) ([]network.Up, []network.Check) {
	ups, checks := network.TryDeclared(ctx, n)
	s.logChecks("network as declared", checks)
	return ups, checks
}

func (s *system) Reach(ctx context.Context, t answers.Token) []network.Check {
	checks := network.Reach(ctx, t, time.Now())
	s.logChecks("members of the cluster", checks)
	return checks
}

func (s *system) logChecks(what string, checks []network.Check) {
	for _, c := range checks {
		fmt.Fprintf(s.log, "%s %s: %s %s\n", time.Now().UTC().Format("15:04:05"), what, c.Text, c.Hint)
	}
}

// Install implements tui.System. Only one installation may run at a time, because the installer
// may run on a screen and a serial line.
func (s *system) Install(ctx context.Context, r install.Request, progress func(install.Progress)) error {
	lock, err := os.OpenFile(filepath.Join(filepath.Dir(s.log.f.Name()), "lock"), os.O_CREATE|os.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return api.Errorf(api.CodeConflict, "this computer is being installed from another screen or line").WithHint("go on there; F3 shows the log here too")
	}
	var random [36]byte
	_, _ = rand.Read(random[:]) // crypto/rand.Read never returns an error
	e := &install.Executor{Target: install.Target, Log: s.log, Progress: progress, Disks: machine.ReadDisks, Command: install.Exec}
	return e.Run(ctx, install.Plan(install.Job{
		Request: r, Source: s.source, SourceBytes: unpackedBytes(s.source), Target: install.Target,
		IDs: install.NewIDs(random), Version: version, Now: time.Now(), NoTimerCheck: startedWith(install.NoTimerCheck),
		NVRAM: takesBootEntries(), SerialPorts: machine.SerialPorts(os.DirFS("/")),
	}))
}

// takesBootEntries reports whether the firmware is UEFI and its variables can be written.
func takesBootEntries() bool {
	return unix.Access("/sys/firmware/efi/efivars", unix.W_OK) == nil
}

// startedWith reports whether the kernel's command line contains the word.
func startedWith(word string) bool {
	line, err := os.ReadFile("/proc/cmdline")
	return err == nil && slices.Contains(strings.Fields(string(line)), word)
}

// unpackedBytes returns the unpacked size of an image from the .size file beside it; 0:
// unknown.
func unpackedBytes(image string) uint64 {
	data, err := os.ReadFile(strings.TrimSuffix(image, filepath.Ext(image)) + ".size")
	if err != nil {
		return 0
	}
	n, _ := strconv.ParseUint(strings.TrimSpace(string(data)), 10, 64) // 0 is unknown
	return n
}

func (s *system) Log() string { return s.log.tail() }

func (s *system) Shell() *exec.Cmd {
	shell := "/bin/bash"
	if _, err := os.Stat(shell); err != nil {
		shell = "/bin/sh"
	}
	cmd := exec.Command(shell, "-l")
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), `PS1=installer:\w# `)
	return cmd
}

// End implements tui.System. The live system has nothing to save, so its services are killed
// instead of stopped one after the other.
func (s *system) End(a answers.After) error {
	unix.Sync()
	out, err := exec.Command("systemctl", "--force", string(a)).CombinedOutput()
	if err != nil {
		return errors.New(strings.TrimSpace(err.Error() + " " + string(out)))
	}
	return nil
}

// logFile is written by one step at a time and read by the screen.
type logFile struct {
	mu sync.Mutex
	f  *os.File
}

func (l *logFile) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.f.Write(p)
}

// tail returns the end of the log, at most 64 KiB.
func (l *logFile) tail() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	const most = 64 << 10
	info, err := l.f.Stat()
	if err != nil {
		return err.Error()
	}
	data := make([]byte, min(info.Size(), most))
	n, err := l.f.ReadAt(data, info.Size()-int64(len(data)))
	if err != nil && !errors.Is(err, io.EOF) {
		return err.Error()
	}
	return string(data[:n])
}

var _ tui.System = (*system)(nil)
