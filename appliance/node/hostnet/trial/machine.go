package trial

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// RollbackUnit is the name of the timer that rolls a network back, and of the
// service that it starts.
const RollbackUnit = "basalt-network-rollback"

// Host is the real machine.
type Host struct {
	Program string // absolute path of the program with the command "network rollback"

	scope []string // options that select a systemd instance; empty for the system's
}

// networkd are the service, and the socket that would start it at the next change of an
// interface.
var networkd = []string{"systemd-networkd.socket", "systemd-networkd.service"}

// Stop implements Machine.
func (h Host) Stop(ctx context.Context) error { return h.systemctl(ctx, "stop") }

// Start implements Machine.
func (h Host) Start(ctx context.Context) error { return h.systemctl(ctx, "start") }

func (Host) systemctl(ctx context.Context, verb string) error {
	return run(ctx, "systemctl", append([]string{"--quiet", verb}, networkd...)...)
}

// Delete implements Machine.
func (Host) Delete(ctx context.Context, device string) error {
	if _, err := os.Lstat("/sys/class/net/" + device); err != nil {
		return nil //nolint:nilerr // it is not there
	}
	return run(ctx, "ip", "link", "delete", "dev", device)
}

// PacketSizes implements Machine.
func (Host) PacketSizes() (map[string]int, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("list network interfaces: %w", err)
	}
	sizes := map[string]int{}
	for _, i := range all {
		if i.Flags&net.FlagLoopback == 0 && !stacked(i.Name) {
			sizes[i.Name] = i.MTU
		}
	}
	return sizes, nil
}

// SetPacketSize implements Machine.
func (Host) SetPacketSize(ctx context.Context, device string, mtu int) error {
	i, err := net.InterfaceByName(device)
	if err != nil || i.MTU == mtu {
		return nil //nolint:nilerr // it is not there
	}
	return run(ctx, "ip", "link", "set", "dev", device, "mtu", strconv.Itoa(mtu))
}

// Arm implements Machine. A unit left by an earlier trial is stopped first.
func (h Host) Arm(ctx context.Context, after time.Duration) error {
	if err := h.Disarm(ctx); err != nil {
		return err
	}
	return run(ctx, "systemd-run", append(h.scope[:len(h.scope):len(h.scope)],
		"--quiet", "--collect", "--unit="+RollbackUnit, fmt.Sprintf("--on-active=%ds", int(after.Seconds())), "--timer-property=AccuracySec=1s",
		"--property=Restart=on-failure", "--property=RestartSec=2s", "--property=StartLimitIntervalSec=0", "--description=Take back a network that nobody has confirmed",
		"--", h.Program, "network", "rollback", "--when-due")...)
}

// Disarm implements Machine. The service is not stopped, because this may be
// running in it.
func (h Host) Disarm(ctx context.Context) error {
	timer := RollbackUnit + ".timer"
	systemctl := func(verb string) []string {
		return append(h.scope[:len(h.scope):len(h.scope)], "--quiet", verb, timer)
	}
	if exec.CommandContext(ctx, "systemctl", systemctl("is-active")...).Run() != nil {
		return nil // the timer does not exist
	}
	return run(ctx, "systemctl", systemctl("stop")...)
}

// commandTime is the timeout of one command: systemd's own for starting a service, and a
// little more.
const commandTime = 100 * time.Second

func run(ctx context.Context, name string, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
