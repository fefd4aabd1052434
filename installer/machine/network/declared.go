package network

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/basalt-gpu/basalt/appliance/node/hostnet"
	"github.com/basalt-gpu/basalt/appliance/node/hostnet/trial"
)

// TryDeclared applies a declared network to this machine and reports what works. The
// links for management are returned in the order of the declaration.
func TryDeclared(ctx context.Context, n *hostnet.Network) (ups []Up, checks []Check) {
	fail := func(hint, text string, args ...any) ([]Up, []Check) {
		return ups, append(checks, Check{Failure, fmt.Sprintf(text, args...), hint})
	}
	if absent := trial.Absent(n); len(absent) > 0 {
		return fail("basalt-installer machine lists this machine's cards", "there is no card %v", absent)
	}
	if err := applyDeclared(ctx, n); err != nil {
		return fail("see the log", "the network could not be set up: %v", err)
	}
	for _, l := range n.WithRole(hostnet.Management) {
		up := Up{Card: l.Name}
		ready := func() bool {
			d, ok := trial.Device(n, l)
			if !ok || !carrier(d.Name) {
				return false
			}
			up.Card, up.MAC = d.Name, d.HardwareAddr.String()
			up.Address = addressOf(d.Name, l)
			return up.Address.IsValid()
		}
		if !await(ctx, dhcpTimeout, ready) {
			return fail("check cables, the switch's ports (LACP, VLANs) and the DHCP server", "%s has no link or no address after %v", l.Name, dhcpTimeout)
		}
		checks = append(checks, Check{OK, fmt.Sprintf("%s has %s", l.Name, up.Address), ""})
		for _, g := range l.Gateways {
			if g.Is4() && up.Address.Addr().Is4() {
				up.Gateway = g
				checks = append(checks, gatewayCheck(ctx, up))
			}
		}
		ups = append(ups, up)
	}
	if len(n.DNS) > 0 {
		checks = append(checks, dnsCheck(ctx, n.DNS))
	}
	return ups, checks
}

// addressOf returns a link's first declared address, or one that it was assigned.
func addressOf(device string, l *hostnet.Link) netip.Prefix {
	if len(l.Static) > 0 {
		if has(device, l.Static[0].Addr()) {
			return l.Static[0]
		}
		return netip.Prefix{}
	}
	if l.DHCP4 {
		return ipv4(device)
	}
	for _, p := range prefixes(device) {
		if p.Addr().IsGlobalUnicast() {
			return p
		}
	}
	return netip.Prefix{}
}

// applyDeclared replaces what was tried before, and the devices of it.
func applyDeclared(ctx context.Context, n *hostnet.Network) (err error) {
	if err := os.MkdirAll(runtimeDir, 0o755); err != nil {
		return err
	}
	var host trial.Host
	if err := host.Stop(ctx); err != nil {
		return fmt.Errorf("stop networkd: %w", err)
	}
	defer func() { err = errors.Join(err, host.Start(ctx)) }()
	old, _ := filepath.Glob(filepath.Join(runtimeDir, filePrefix+"*")) // the pattern is a constant
	for _, f := range old {
		if name, ok := strings.CutSuffix(filepath.Base(f), ".netdev"); ok {
			err = errors.Join(err, host.Delete(ctx, strings.TrimPrefix(name, filePrefix+hostnet.Prefix)))
		}
		err = errors.Join(err, os.Remove(f))
	}
	for _, f := range hostnet.Render(n) {
		err = errors.Join(err, os.WriteFile(filepath.Join(runtimeDir, filePrefix+f.Name), []byte(f.Content), 0o644))
	}
	return err
}
