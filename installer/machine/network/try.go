package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/installer/answers"
)

// Outcome is the outcome of one check.
type Outcome int

// Outcomes of a check. The installation may continue after a Warning.
const (
	OK Outcome = iota
	Warning
	Failure
)

// Check is a check and its result.
type Check struct {
	Outcome Outcome
	Text    string
	Hint    string // what to do; empty for OK
}

// Worst returns the worst outcome of the checks.
func Worst(checks []Check) Outcome {
	worst := OK
	for _, c := range checks {
		worst = max(worst, c.Outcome)
	}
	return worst
}

// Failed reports whether one of the checks failed.
func Failed(checks []Check) bool { return Worst(checks) == Failure }

const (
	runtimeDir  = "/run/systemd/network"
	filePrefix  = "05-basalt-"
	linkTimeout = 8 * time.Second
	dhcpTimeout = 30 * time.Second
)

// Try applies the path to this machine and reports what works. name is "main" or
// "second"; a repeated call replaces what it has set up.
func Try(ctx context.Context, name, card, mac string, p answers.Path, gateway netip.Addr, dns []netip.Addr) (Up, []Check) {
	up := static(card, mac, p, gateway, dns)
	fail := func(checks []Check, hint, text string, args ...any) (Up, []Check) {
		return up, append(checks, Check{Failure, fmt.Sprintf(text, args...), hint})
	}
	var checks []Check
	if err := run(ctx, "ip", "link", "set", card, "up"); err != nil {
		return fail(checks, "choose another card", "%s cannot be brought up: %v", card, err)
	}
	if !await(ctx, linkTimeout, func() bool { return carrier(card) }) {
		return fail(checks, "plug the cable in, or choose another card", "%s has no link", card)
	}
	checks = append(checks, Check{OK, card + " has a link", ""})
	if !p.DHCP && p.Address.Addr().Is4() {
		if mac, err := ask(ctx, card, netip.Addr{}, p.Address.Addr()); err != nil {
			checks = append(checks, Check{Warning, fmt.Sprintf("whether %s is free could not be asked: %v", p.Address.Addr(), err), "make sure that no other machine has it"})
		} else if mac != nil {
			return fail(checks, "choose another address, or switch that machine off", "%s is in use by %s", p.Address.Addr(), mac)
		} else {
			checks = append(checks, Check{OK, p.Address.Addr().String() + " is free", ""})
		}
	}
	if err := apply(ctx, name, card, Unit(Card(card, mac, p, gateway, name != "main"), dns)); err != nil {
		return fail(checks, "see the log", "the network could not be set up: %v", err)
	}
	if p.DHCP {
		if !await(ctx, dhcpTimeout, func() bool { up.Address = ipv4(card); return up.Address.IsValid() }) {
			return fail(checks, "choose a static address, or look after the network's DHCP server", "no DHCP server answered in %v", dhcpTimeout)
		}
		if dev, err := net.InterfaceByName(card); err == nil {
			lease, _ := os.ReadFile("/run/systemd/netif/leases/" + strconv.Itoa(dev.Index)) // without it, no gateway is known
			parseLease(string(lease), &up)
		}
		checks = append(checks, Check{OK, "DHCP gave " + up.Address.String(), ""},
			Check{Warning, "the others will know the node by this address", "reserve it for " + mac + " in the DHCP server"})
	} else if !await(ctx, linkTimeout, func() bool { return has(card, p.Address.Addr()) }) {
		return fail(checks, "see the log", "%s was not set on %s", p.Address, card)
	}
	checks = append(checks, gatewayCheck(ctx, up))
	if len(up.DNS) > 0 {
		checks = append(checks, dnsCheck(ctx, up.DNS))
	} else if name == "main" {
		checks = append(checks, Check{Warning, "no DNS server is given", "names, such as those of time servers, will not be found"})
	}
	return up, checks
}

func gatewayCheck(ctx context.Context, up Up) Check {
	switch {
	case !up.Gateway.IsValid():
		return Check{OK, "no gateway: only " + up.Address.Masked().String() + " is reached", ""}
	case !up.Gateway.Is4():
		return Check{OK, "gateway " + up.Gateway.String() + " is set", ""}
	}
	mac, err := ask(ctx, up.Card, up.Address.Addr(), up.Gateway)
	switch {
	case err != nil:
		return Check{Warning, fmt.Sprintf("the gateway could not be asked: %v", err), "see the log"}
	case mac == nil:
		// It may become reachable later; only the address itself is required now.
		return Check{Warning, "gateway " + up.Gateway.String() + " does not answer", "check its address, the cable and the switch's VLAN"}
	}
	return Check{OK, "gateway " + up.Gateway.String() + " answers", ""}
}

// dnsCheck resolves a name; a negative answer is also a success.
func dnsCheck(ctx context.Context, servers []netip.Addr) Check {
	for _, s := range servers {
		r := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, netip.AddrPortFrom(s, 53).String())
		}}
		ctx, cancel := context.WithTimeout(ctx, 4*time.Second)
		_, err := r.LookupHost(ctx, "pool.ntp.org.")
		cancel()
		var none *net.DNSError
		if err == nil || errors.As(err, &none) && none.IsNotFound {
			return Check{OK, "DNS server " + s.String() + " answers", ""}
		}
	}
	return Check{Warning, "no DNS server answers", "check the addresses; the node works without, but finds no names"}
}

// apply applies the unit under a name; the card that had that name before loses it.
func apply(ctx context.Context, name, card, unit string) error {
	if err := os.MkdirAll(runtimeDir, 0o755); err != nil {
		return err
	}
	old, _ := filepath.Glob(filepath.Join(runtimeDir, filePrefix+name+"-*.network")) // the pattern is a constant
	for _, f := range old {
		if err := os.Remove(f); err != nil {
			return err
		}
		was := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(f), filePrefix+name+"-"), ".network")
		// An error means that there was nothing to remove.
		_ = run(ctx, "ip", "addr", "flush", "dev", was, "scope", "global")
	}
	if err := os.WriteFile(filepath.Join(runtimeDir, filePrefix+name+"-"+card+".network"), []byte(unit), 0o644); err != nil {
		return err
	}
	for _, args := range [][]string{{"reload"}, {"reconfigure", card}} {
		if err := run(ctx, "networkctl", args...); err != nil {
			return err
		}
	}
	return nil
}

func run(ctx context.Context, name string, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if out, err := exec.CommandContext(ctx, name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// await waits until ok returns true or the time is over. The kernel has events for
// these conditions, but polling four times a second is enough while a person waits.
func await(ctx context.Context, most time.Duration, ok func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		if ok() {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
}

func carrier(card string) bool {
	data, err := os.ReadFile("/sys/class/net/" + card + "/carrier")
	return err == nil && strings.TrimSpace(string(data)) == "1"
}

// ipv4 returns the card's first IPv4 address that is not link-local.
func ipv4(card string) netip.Prefix {
	for _, p := range prefixes(card) {
		if p.Addr().Is4() && !p.Addr().IsLinkLocalUnicast() {
			return p
		}
	}
	return netip.Prefix{}
}

func has(card string, want netip.Addr) bool {
	for _, p := range prefixes(card) {
		if p.Addr() == want {
			return true
		}
	}
	return false
}

func prefixes(card string) (found []netip.Prefix) {
	dev, err := net.InterfaceByName(card)
	if err != nil {
		return nil
	}
	list, _ := dev.Addrs() // none if the card was just removed
	for _, a := range list {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			found = append(found, p)
		}
	}
	return found
}
