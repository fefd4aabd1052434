// Package capability finds out how guests can run on this machine, by booting one.
// /dev/kvm may open, and libvirt may promise KVM, where no guest starts: in
// nested machines, in containers, under some cloud hypervisors.
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

// A probe that got no answer, for the machine was starved perhaps, is made again
// later, but not for ever: where KVM only hangs it takes its time each time.
const (
	askPause = 10 * time.Minute
	askTimes = 4
)

// Result of a probe.
type Result struct {
	Accelerator hypervisor.Accelerator `json:"accelerator"`
	// Why it is not KVM, in words; empty for KVM.
	Why string `json:"why,omitempty"`
	// AskAgain is when to ask again, because KVM gave no answer; zero: this is
	// the answer until the machine's next boot.
	AskAgain time.Time `json:"askAgain,omitzero"`
}

// cached is what is kept, with what it holds for: another kernel, QEMU or boot
// of the machine asks for another probe.
type cached struct {
	Key    string `json:"key"`
	Result Result `json:"result"`
	Asked  int    `json:"asked,omitempty"` // times without an answer
}

// booter runs the guest once; nil when it got as far as to say so.
type booter func(ctx context.Context, accel, cpu string, limit time.Duration) error

// Accelerator is how guests run here: the cached answer, or the one of a probe
// now. cache is a file's path; empty: none. It fails only when not even TCG
// boots a guest.
func Accelerator(ctx context.Context, cache string) (Result, error) {
	return accelerator(ctx, cache, time.Now().UTC(), boot)
}

// Cached is the answer of an earlier probe, which holds until there is another;
// empty: there is none.
func Cached(cache string) hypervisor.Accelerator {
	was, _ := load(cache)
	return was.Result.Accelerator
}

// load what is cached, if it holds for this machine as it is.
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
		// A clock that was set back does not put it off for long.
		if at := was.Result.AskAgain; at.IsZero() || now.Before(at) && at.Sub(now) <= askPause {
			return was.Result, nil
		}
		c.Asked = was.Asked
	}
	if awaitDevice(ctx, "/proc/cpuinfo", "/dev/kvm", limitDevice) {
		c.Key = keyOf() // with the device
	}
	var silent bool
	var err error
	if c.Result, silent, err = probe(ctx, boot); err != nil {
		return Result{}, err
	}
	if silent {
		if c.Asked++; c.Asked < askTimes {
			c.Result.AskAgain = now.Add(askPause)
		}
	}
	if cache != "" {
		if err := store(cache, c); err != nil {
			return c.Result, fmt.Errorf("write cache of the probe: %w", err)
		}
	}
	return c.Result, nil
}

// Watch asks again for as long as the result says so, and tells each new one.
func Watch(ctx context.Context, cache string, r Result, tell func(Result)) error {
	for !r.AskAgain.IsZero() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(time.Until(r.AskAgain), askPause)):
		}
		again, err := Accelerator(ctx, cache)
		if err != nil {
			return err
		}
		if r = again; !r.AskAgain.IsZero() && time.Until(r.AskAgain) <= 0 {
			r.AskAgain = time.Now().Add(askPause) // the clock was set
		}
		tell(r)
	}
	return nil
}

// probe; silent: KVM did not say whether it works.
func probe(ctx context.Context, boot booter) (r Result, silent bool, err error) {
	kvm := boot(ctx, "kvm", "host", limitKVM)
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

// noError is QEMU's word that no guest starts with the accelerator.
type noError struct{ text string }

func (e *noError) Error() string { return e.text }

// boot runs the guest once; nil when it got as far as to say so.
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
	// A daemon that is killed meanwhile leaves no QEMU behind. The kernel counts the
	// thread that started it as its parent: the thread must stay.
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
	case err != nil: // killed, or never begun
		return fmt.Errorf("%s: %w", accel, err)
	}
	return &noError{accel + ": QEMU ended before the guest booted"}
}

// bootDisk is a disk with the guest, in memory: there is no file to leave behind.
func bootDisk() (*os.File, error) {
	fd, err := unix.MemfdCreate("basalt-probe", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	disk := os.NewFile(uintptr(fd), "basalt-probe")
	_, err = disk.Write(guest)
	// SeaBIOS boots from no disk that is shorter than a cylinder.
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

// keyOf is what the answer depends on. QEMU is known by its file: running it to ask
// for its version costs an emulated machine seconds.
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
