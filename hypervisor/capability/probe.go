// Package capability determines how guests can run on this machine, by booting
// one. /dev/kvm may open, and libvirt may list KVM, on machines where no guest
// starts: in nested virtual machines, in containers, under some cloud
// hypervisors.
package capability

import (
	"bytes"
	"context"
	_ "embed" // of the guest
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/appliance/atomicfile"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// limitKVM and limitTCG are how long one boot may take. Under KVM the guest
// finishes in a fraction of a second, but in half a minute on a machine that is
// emulated with its virtualization and busy: each repeated probe may take twice
// as long as the one before. TCG has no further fallback, so its limit is long.
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

// A probe without a result, perhaps because the machine was overloaded, is
// repeated after retryInterval, at most maxAttempts times: where KVM hangs,
// each probe takes all of its limit.
const (
	retryInterval = 10 * time.Minute
	maxAttempts   = 4
)

// Result is the outcome of a probe.
type Result struct {
	Accelerator hypervisor.Accelerator `json:"accelerator"`
	// Why is the reason why it is not KVM; empty for KVM.
	Why string `json:"why,omitempty"`
	// AskAgain is when to probe again, because the probe of KVM had no result;
	// zero: the result is valid until the machine's next boot.
	AskAgain time.Time `json:"askAgain,omitzero"`
}

// cached is the format of the cache file. Key identifies what the result is
// valid for: another kernel, QEMU or boot of the machine requires another
// probe.
type cached struct {
	Key    string `json:"key"`
	Result Result `json:"result"`
	Asked  int    `json:"asked,omitempty"` // number of probes without a result
}

// booter runs the guest once. It returns nil if the guest reported its
// execution.
type booter func(ctx context.Context, accel, cpu string, limit time.Duration) error

// Accelerator returns how guests run on this machine: the cached result, or
// that of a new probe. cache is the path of the cache file; empty: no cache.
// It returns an error only if not even TCG boots a guest.
func Accelerator(ctx context.Context, cache string) (Result, error) {
	return accelerator(ctx, cache, time.Now().UTC(), boot)
}

// Cached returns the result of an earlier probe if it is still valid, or "".
func Cached(cache string) hypervisor.Accelerator {
	was, _ := load(cache)
	return was.Result.Accelerator
}

// load reads the cache file. It returns the cached result if its key is that
// of this machine, and the key.
func load(cache string) (was cached, key string) {
	key = keyOf()
	raw, err := os.ReadFile(cache)
	if err != nil || json.Unmarshal(raw, &was) != nil || was.Key != key {
		return cached{}, key
	}
	return was, key
}

func accelerator(ctx context.Context, cache string, now time.Time, boot booter) (Result, error) {
	was, key := load(cache)
	c := cached{Key: key}
	if was.Result.Accelerator != "" {
		// A clock that was set back delays the next probe by at most retryInterval.
		if at := was.Result.AskAgain; at.IsZero() || now.Before(at) && at.Sub(now) <= retryInterval {
			return was.Result, nil
		}
		c.Asked = was.Asked
	}
	if awaitDevice(ctx, "/proc/cpuinfo", "/dev/kvm", deviceTimeout) {
		c.Key = keyOf() // again, now that the device exists
	}
	var silent bool
	var err error
	if c.Result, silent, err = probe(ctx, boot, limitKVM<<c.Asked); err != nil {
		return Result{}, err
	}
	if silent {
		if c.Asked++; c.Asked < maxAttempts {
			c.Result.AskAgain = now.Add(retryInterval)
		}
	}
	if cache != "" {
		if err := store(cache, c); err != nil {
			return c.Result, fmt.Errorf("write cache of the probe: %w", err)
		}
	}
	return c.Result, nil
}

// Watch probes again for as long as the result has an AskAgain time, and calls
// tell with each new result. It returns when the result is final or ctx is
// done.
func Watch(ctx context.Context, cache string, r Result, tell func(Result)) error {
	for !r.AskAgain.IsZero() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(time.Until(r.AskAgain), retryInterval)):
		}
		again, err := Accelerator(ctx, cache)
		if err != nil {
			return err
		}
		if r = again; !r.AskAgain.IsZero() && time.Until(r.AskAgain) <= 0 {
			r.AskAgain = time.Now().Add(retryInterval) // the clock was changed
		}
		tell(r)
	}
	return nil
}

// probe boots the guest under KVM, for at most limit, and, if that fails, under
// TCG. silent reports whether the boot under KVM had no result.
func probe(ctx context.Context, boot booter, limit time.Duration) (r Result, silent bool, err error) {
	kvm := boot(ctx, "kvm", "host", limit)
	if kvm == nil {
		return Result{Accelerator: hypervisor.KVM}, false, nil
	}
	var no *noError
	silent = !errors.As(kvm, &no)
	if err := boot(ctx, "tcg", "max", limitTCG); err != nil {
		return Result{}, false, fmt.Errorf("no guest can be started on this node: %w", errors.Join(kvm, err))
	}
	return Result{Accelerator: hypervisor.TCG, Why: kvm.Error()}, silent, ctx.Err()
}

// noError is QEMU's own report that no guest starts with the accelerator.
type noError struct{ text string }

func (e *noError) Error() string { return e.text }

// boot runs the guest once. It returns nil if the guest reported its
// execution.
func boot(ctx context.Context, accel, cpu string, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	disk, err := bootDisk()
	if err != nil {
		return fmt.Errorf("create disk of the guest: %w", err)
	}
	defer func() { _ = disk.Close() }()
	cmd := exec.CommandContext(ctx, "qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-machine", "q35,usb=off", "-accel", accel, "-cpu", cpu, "-m", "32", "-smp", "2",
		"-device", "isa-debug-exit,iobase=0xf4,iosize=4",
		"-drive", "file=/dev/fd/3,format=raw,if=virtio")
	cmd.ExtraFiles = []*os.File{disk}
	// If this daemon is killed meanwhile, the kernel kills QEMU. It treats the
	// thread that started QEMU as its parent, so the thread must not exit.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
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
	case exit != nil && exit.Exited():
		return &noError{accel + ": " + lastLine(says.String(), exit)}
	case err != nil: // killed, or not started
		return fmt.Errorf("%s: %w", accel, err)
	}
	return &noError{accel + ": QEMU ended before the guest booted"}
}

// bootDisk returns a disk image with the guest in memory, so that no file can
// be left behind.
func bootDisk() (*os.File, error) {
	fd, err := unix.MemfdCreate("basalt-probe", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	disk := os.NewFile(uintptr(fd), "basalt-probe")
	_, err = disk.Write(guest)
	// SeaBIOS does not boot from a disk that is shorter than a cylinder.
	if err := errors.Join(err, disk.Truncate(1<<20)); err != nil {
		_ = disk.Close()
		return nil, err
	}
	return disk, nil
}

func lastLine(says string, exit *exec.ExitError) string {
	lines := strings.Split(strings.TrimSpace(says), "\n")
	if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
		return last[:min(len(last), 300)]
	}
	return exit.String()
}

// keyOf returns the cache key: everything that the result depends on. QEMU is
// identified by its file: running it to get its version takes seconds on an
// emulated machine.
func keyOf() string {
	qemu := "no QEMU"
	if path, err := exec.LookPath("qemu-system-x86_64"); err == nil {
		if st, err := os.Stat(path); err == nil {
			qemu = fmt.Sprintf("QEMU of %d bytes, %s", st.Size(), st.ModTime().UTC().Format(time.RFC3339))
		}
	}
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	kvm := "no /dev/kvm"
	if st, err := os.Stat("/dev/kvm"); err == nil {
		kvm = st.Mode().String()
	}
	return strings.Join([]string{string(bytes.TrimSpace(boot)), qemu, kvm}, " | ")
}

func store(path string, c cached) error {
	raw, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return atomicfile.WriteFileUnsynced(path, raw, 0o600)
}
