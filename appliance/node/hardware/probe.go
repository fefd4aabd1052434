package hardware

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/appliance/node/bootloader"
)

// Limits of the probes.
const (
	maxDisks  = 64
	maxPaths  = 32
	diskTime  = 10 * time.Second
	pingTime  = 5 * time.Second // of three packets, with a second for the answers
	kvmCreate = 0xae01          // KVM_CREATE_VM in linux/kvm.h
)

// Target is an IP address of another node.
type Target struct{ Node, Address string }

// Options configures Probe.
type Options struct {
	AllowEmulation bool
	Accelerator    string // see Facts
	Targets        []Target
	// LeaderOffset returns this clock's time minus the leader's. If it is nil or
	// returns an error, the offset is unknown.
	LeaderOffset func(context.Context) (time.Duration, error)
}

// Probe probes this machine. It changes nothing, and takes a second for each disk
// and each address that does not answer.
func Probe(ctx context.Context, o Options) Facts {
	f := Facts{FS: os.DirFS("/"), AllowEmulation: o.AllowEmulation, Accelerator: o.Accelerator,
		KVM: tryKVM("/dev/kvm"), Disks: askDisks(ctx), Clock: askClock()}
	if o.LeaderOffset != nil {
		if off, err := o.LeaderOffset(ctx); err == nil {
			f.Clock.OffsetKnown, f.Clock.Offset = true, off
		}
	}
	f.BootLoader.State, f.BootLoader.Err = bootloader.System().Observe(ctx)
	for i, t := range o.Targets {
		if i == maxPaths {
			break
		}
		f.Paths = append(f.Paths, askPath(ctx, t))
	}
	return f
}

// tryKVM creates an empty virtual machine, and closes it.
func tryKVM(path string) Outcome {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return Outcome{Tried: !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EACCES), Err: fmt.Errorf("open %s: %w", path, err)}
	}
	defer func() { _ = unix.Close(fd) }()
	vm, err := unix.IoctlRetInt(fd, kvmCreate)
	if err != nil {
		return Outcome{Tried: true, Err: fmt.Errorf("make a virtual machine: %w", err)}
	}
	return Outcome{Tried: true, Err: unix.Close(vm)}
}

// askDisks runs smartctl for every disk of the machine; it returns nil if smartctl
// is not installed.
func askDisks(ctx context.Context) []DiskReport {
	tool, err := exec.LookPath("smartctl")
	if err != nil { // /usr/sbin may be missing from another user's PATH
		tool, err = exec.LookPath("/usr/sbin/smartctl")
	}
	if err != nil {
		return nil
	}
	all := []DiskReport{}
	for _, name := range diskNames(os.DirFS("/")) {
		out, err := run(ctx, diskTime, maxSMART+1, tool, "--json", "--info", "--health", "--attributes", "--nocheck=standby,0", "/dev/"+name)
		var exit *exec.ExitError
		if errors.As(err, &exit) && len(out) > 0 { // the exit status has bits for problems of the disk
			err = nil
		}
		all = append(all, DiskReport{name, out, err})
	}
	return all
}

func askClock() Clock {
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	if err != nil {
		return Clock{}
	}
	return Clock{Known: true, Synchronized: state != unix.TIME_ERROR && t.Status&unix.STA_UNSYNC == 0}
}

// askPath sends packets that must not be fragmented (ping -M do): of the size of
// the interface's MTU, then of the usual sizes of Ethernet and tunnels, then small
// ones. One of three has to arrive, so that a lost packet does not count as too
// large.
func askPath(ctx context.Context, t Target) Path {
	p := Path{Node: t.Node, Address: t.Address}
	if p.Interface, p.LocalMTU, p.Err = route(t.Address); p.Err != nil {
		return p
	}
	p.MTU, p.Err = largest(p.LocalMTU, func(size int) (bool, error) {
		header := 28 // of IPv4 and ICMP; IPv6 has 48
		if strings.Contains(t.Address, ":") {
			header = 48
		}
		_, err := run(ctx, pingTime, 4096, "ping", "-n", "-q", "-c", "3", "-i", "0.3", "-W", "1", "-M", "do", "-s", fmt.Sprint(size-header), t.Address)
		var exit *exec.ExitError
		if err == nil || errors.As(err, &exit) || ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
			return err == nil, nil
		}
		return false, err
	})
	return p
}

// sizes are the packet sizes to try besides the interface's own, the largest first. The
// smallest is tried early, so that a silent node costs two attempts.
var sizes = []int{9000, 1500, 1400, 1280, smallest}

const smallest = 576

// largest returns the largest of the sizes that arrives, or 0 if none does.
func largest(local int, arrives func(size int) (bool, error)) (int, error) {
	if there, err := arrives(local); there || err != nil {
		return local, err
	}
	if there, err := arrives(smallest); !there || err != nil {
		return 0, err
	}
	for _, size := range sizes {
		if size >= local || size == smallest {
			continue
		}
		if there, err := arrives(size); there || err != nil {
			return size, err
		}
	}
	return smallest, nil
}

// route returns the interface from which packets to the address are sent, and its
// MTU.
func route(address string) (string, int, error) {
	c, err := net.Dial("udp", net.JoinHostPort(address, "9")) // sends nothing
	if err != nil {
		return "", 0, fmt.Errorf("route to %s: %w", address, err)
	}
	from := c.LocalAddr().(*net.UDPAddr).IP
	if err := c.Close(); err != nil {
		return "", 0, err
	}
	all, err := net.Interfaces()
	if err != nil {
		return "", 0, fmt.Errorf("list network interfaces: %w", err)
	}
	for _, i := range all {
		addresses, err := i.Addrs()
		if err != nil {
			continue
		}
		for _, a := range addresses {
			if n, ok := a.(*net.IPNet); ok && n.IP.Equal(from) {
				return i.Name, i.MTU, nil
			}
		}
	}
	return "", 0, fmt.Errorf("route to %s: no interface has address %s", address, from)
}

// run runs a program for at most limit, and returns the first bytes of its output.
func run(ctx context.Context, limit time.Duration, most int, name string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.WaitDelay = time.Second
	out := &head{most: most}
	cmd.Stdout = out
	err := cmd.Run()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return out.kept, err
}

// head is a writer that keeps the first bytes, and drops the others.
type head struct {
	kept []byte
	most int
}

// Write implements io.Writer.
func (h *head) Write(p []byte) (int, error) {
	h.kept = append(h.kept, p[:min(len(p), h.most-len(h.kept))]...)
	return len(p), nil
}
