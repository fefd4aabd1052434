// Package probe finds out how guests can run on this machine, by booting one.
// /dev/kvm may open, and libvirt may promise KVM, where no guest starts: in
// nested machines, in containers, under some cloud hypervisors.
package probe

import (
	"bytes"
	"context"
	_ "embed" // of the guest
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/hypervisor"
)

// How long one boot may take. Under KVM the guest is done in a fraction of a
// second. Without, the machine may be an emulated one itself, and busy: there
// is nothing else to try, so it gets time.
const (
	limitKVM = 20 * time.Second
	limitTCG = 5 * time.Minute
)

// guest is a boot sector that turns paging on and then writes one byte to
// QEMU's debug-exit port, which ends QEMU with a status of its own.
//
//go:generate ./guest.sh
//go:embed guest.bin
var guest []byte

// exitOK is QEMU's exit status for the byte that the guest writes: 0x2a << 1 | 1.
const exitOK = 0x2a<<1 | 1

// Result of a probe.
type Result struct {
	Accelerator hypervisor.Accelerator `json:"accelerator"`
	// Why it is not KVM, in words; empty for KVM.
	Why string `json:"why,omitempty"`
}

// cached is what is kept, with what it holds for: another kernel, QEMU or boot
// of the machine asks for another probe.
type cached struct {
	Key    string `json:"key"`
	Result Result `json:"result"`
}

// Accelerator is how guests run here: the cached answer, or the one of a probe
// now. cache is a file's path; empty: none. It fails only when not even TCG
// boots a guest.
func Accelerator(ctx context.Context, cache string) (Result, error) {
	key := key(ctx)
	var c cached
	if raw, err := os.ReadFile(cache); err == nil && json.Unmarshal(raw, &c) == nil && c.Key == key && c.Result.Accelerator != "" {
		return c.Result, nil
	}
	r, err := probe(ctx)
	if err != nil {
		return Result{}, err
	}
	if cache != "" {
		if err := store(cache, cached{key, r}); err != nil {
			return r, fmt.Errorf("probe's cache: %w", err)
		}
	}
	return r, nil
}

func probe(ctx context.Context) (Result, error) {
	kvm := boot(ctx, "kvm", "host", limitKVM)
	if kvm == nil {
		return Result{Accelerator: hypervisor.KVM}, nil
	}
	if err := boot(ctx, "tcg", "max", limitTCG); err != nil {
		return Result{}, fmt.Errorf("no guest starts here: %w", errors.Join(kvm, err))
	}
	return Result{Accelerator: hypervisor.TCG, Why: kvm.Error()}, nil
}

// boot runs the guest once; nil when it got as far as to say so.
func boot(ctx context.Context, accel, cpu string, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	disk, err := os.CreateTemp("", "basalt-probe-")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(disk.Name()) }()
	_, err = disk.Write(guest)
	// SeaBIOS boots from no disk that is shorter than a cylinder.
	if err := errors.Join(err, disk.Truncate(1<<20), disk.Close()); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-machine", "q35,usb=off", "-accel", accel, "-cpu", cpu, "-m", "32", "-smp", "2",
		"-device", "isa-debug-exit,iobase=0xf4,iosize=4",
		"-drive", "file="+strings.ReplaceAll(disk.Name(), ",", ",,")+",format=raw,if=virtio,snapshot=on")
	var says bytes.Buffer
	cmd.Stderr = &says
	cmd.WaitDelay = time.Second
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() == exitOK:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%s: a guest did not boot within %v", accel, limit)
	case exit != nil:
		return fmt.Errorf("%s: %s", accel, lastLine(says.String(), exit))
	case err != nil:
		return fmt.Errorf("%s: %w", accel, err)
	}
	return fmt.Errorf("%s: QEMU ended before the guest booted", accel)
}

func lastLine(says string, exit *exec.ExitError) string {
	lines := strings.Split(strings.TrimSpace(says), "\n")
	if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
		return last[:min(len(last), 300)]
	}
	return exit.String()
}

// key is what the answer depends on.
func key(ctx context.Context) string {
	qemu, _ := exec.CommandContext(ctx, "qemu-system-x86_64", "--version").Output()
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	kvm := "no /dev/kvm"
	if st, err := os.Stat("/dev/kvm"); err == nil {
		kvm = st.Mode().String()
	}
	return strings.Join([]string{string(bytes.TrimSpace(boot)), strings.SplitN(string(qemu), "\n", 2)[0], kvm}, " | ")
}

func store(path string, c cached) error {
	raw, err := json.Marshal(c)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-")
	if err != nil {
		return err
	}
	_, err = f.Write(raw)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
