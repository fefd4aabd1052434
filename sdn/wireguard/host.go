package wireguard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"time"
)

// Links creates and removes interfaces. The kernel does; tests have processes of
// wireguard-go. They are configured through wgctrl, which knows both.
type Links interface {
	Create(ctx context.Context, name string, mtu int) error
	Remove(ctx context.Context, name string) error
}

// Host is the machine whose network is changed.
type Host struct {
	// Prefix precedes the commands ip and nft: in tests, a program that selects a network
	// namespace.
	Prefix []string
}

// commandTime is the limit for one command.
const commandTime = 20 * time.Second

func (h Host) run(ctx context.Context, input string, argv ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	argv = append(h.Prefix[:len(h.Prefix):len(h.Prefix)], argv...)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...) //nolint:gosec // the programs are constants, and the arguments are ours
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.WaitDelay = time.Second
	cmd.Stdin = strings.NewReader(input)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return string(out), &commandError{argv: argv, words: strings.TrimSpace(errs.String()), err: err}
	}
	return string(out), nil
}

type commandError struct {
	argv  []string
	words string
	err   error
}

func (e *commandError) Error() string {
	return fmt.Sprintf("%s: %v: %s", strings.Join(e.argv, " "), e.err, e.words)
}

func (e *commandError) Unwrap() error { return e.err }

// says reports whether a command failed with a message that has these words.
func says(err error, words string) bool {
	var e *commandError
	return errors.As(err, &e) && strings.Contains(e.words, words)
}

// link is a network interface.
type link struct {
	MTU   int      `json:"mtu"`
	Flags []string `json:"flags"`
}

// link returns an interface, or nil if there is none of that name.
func (h Host) link(ctx context.Context, name string) (*link, error) {
	out, err := h.run(ctx, "", "ip", "-json", "link", "show", "dev", name)
	if says(err, "does not exist") {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []link
	if err := json.Unmarshal([]byte(out), &all); err != nil || len(all) != 1 {
		return nil, fmt.Errorf("ip link show dev %s: %d interfaces: %w", name, len(all), err)
	}
	return &all[0], nil
}

// Create implements Links.
func (h Host) Create(ctx context.Context, name string, mtu int) error {
	_, err := h.run(ctx, "", "ip", "link", "add", "dev", name, "mtu", fmt.Sprint(mtu), "type", "wireguard")
	if says(err, "Unknown device type") || says(err, "Operation not supported") {
		return errors.New("the kernel of this node has no WireGuard: boot a kernel with the module wireguard (Debian's has it), or turn the encryption of tunnels off")
	}
	return err
}

// Remove implements Links.
func (h Host) Remove(ctx context.Context, name string) error {
	_, err := h.run(ctx, "", "ip", "link", "delete", "dev", name)
	if says(err, "Cannot find device") {
		return nil
	}
	return err
}

// linkAddress is an address of interfaces that is not used.
const linkAddress = "169.254.60.81/32"

// acceptPlainWayBack has the kernel accept packets from other nodes on an interface,
// although the way back to their address is another interface for all ports but the
// tunnels'. Where it checks that (rp_filter), the interface needs an address, and the loose
// mode of RFC 3704. IPv6 has no such check.
func (h Host) acceptPlainWayBack(ctx context.Context, own netip.Addr, name string) error {
	if !own.Is4() {
		return nil
	}
	if _, err := h.run(ctx, "", "ip", "address", "replace", linkAddress, "dev", name, "scope", "link"); err != nil {
		return err
	}
	_, err := h.run(ctx, "2\n", "tee", "/proc/sys/net/ipv4/conf/"+name+"/rp_filter")
	return err
}
