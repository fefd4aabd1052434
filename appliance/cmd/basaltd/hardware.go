package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/node/hardware"
)

// hardwareChecks returns the function by which the agent has the machine checked, or nil with a
// fake hypervisor.
func (n *node) hardwareChecks(c config) func(context.Context, string, []api.Node) []api.HardwareCheck {
	if n.probed == "" {
		return nil
	}
	return func(ctx context.Context, accelerator string, others []api.Node) []api.HardwareCheck {
		o := hardware.Options{AllowEmulation: c.allowEmulation, Accelerator: accelerator}
		tunnels := map[string]bool{}
		for _, other := range others {
			if a := other.Status.TunnelAddress; a != "" {
				tunnels[a] = true
			}
			o.Targets = append(o.Targets, targets(other)...)
		}
		if n.cluster != nil {
			o.LeaderOffset = n.cluster.leaderOffset
		}
		facts := hardware.Probe(ctx, o)
		if n.network != nil {
			n.network.limitTo(facts.Paths, tunnels)
		}
		return hardware.Checks(facts)
	}
}

// targets returns the addresses of another node to which the paths are measured, each once.
func targets(other api.Node) (all []hardware.Target) {
	hosts := []string{other.Status.TunnelAddress, other.Status.StorageAddress}
	for _, a := range other.Spec.PeerAddresses {
		if host, _, err := net.SplitHostPort(a); err == nil {
			hosts = append(hosts, host)
		}
	}
	seen := map[string]bool{"": true}
	for _, host := range hosts {
		if !seen[host] {
			seen[host] = true
			all = append(all, hardware.Target{Node: other.Meta.Name, Address: host})
		}
	}
	return all
}

// hugePages returns the function by which the agent reads the reserved huge pages, or nil with
// a fake hypervisor.
func (n *node) hugePages() func() []api.NodeHugePages {
	if n.probed == "" {
		return nil
	}
	return func() []api.NodeHugePages { return hardware.HugePages(os.DirFS("/")) }
}

// cells returns the function by which the agent reads the NUMA cells, or nil with a fake
// hypervisor.
func (n *node) cells() func() []api.NodeCell {
	if n.probed == "" {
		return nil
	}
	return func() []api.NodeCell { return hardware.Cells(os.DirFS("/")) }
}

// offsetLimit is the limit for the leader's answer: a late answer is too imprecise.
const offsetLimit = 2 * time.Second

// leaderOffset returns this clock's time minus the leader's, to a second, which is the
// resolution of HTTP's Date (RFC 9110, section 5.6.7).
func (cl *cluster) leaderOffset(ctx context.Context) (time.Duration, error) {
	leader := cl.leaderHint.LeaderID()
	if leader == "" {
		return 0, errors.New("the leader is not known")
	}
	if leader == cl.client.Self() {
		return 0, nil
	}
	ctx, cancel := context.WithTimeout(ctx, offsetLimit)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, leaderPath, nil)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	resp, err := cl.client.Do(ctx, leader, r)
	if err != nil {
		return 0, fmt.Errorf("ask node %s for its time: %w", leader, err)
	}
	_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<16))
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return 0, fmt.Errorf("ask node %s for its time: %w", leader, err)
	}
	return offset(resp.Header.Get("Date"), began, time.Now())
}

// offset returns the offset of this clock from the one that sent date between began and ended.
func offset(date string, began, ended time.Time) (time.Duration, error) {
	at, err := http.ParseTime(date)
	if err != nil {
		return 0, fmt.Errorf("its answer has no time: %w", err)
	}
	// The Date is truncated to a second, which is half a second on average.
	return began.Add(ended.Sub(began) / 2).Sub(at.Add(time.Second / 2)), nil
}
