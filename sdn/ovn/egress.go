package ovn

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sdn"
	"github.com/basalt-gpu/basalt/sdn/ovn/vs"
	"github.com/ovn-kubernetes/libovsdb/client"
)

// egress is the state between two readings of the counters.
type egress struct {
	// mu is held by Egress, which runs one at a time. It guards the following
	// fields.
	mu    sync.Mutex
	begun bool
	life  uint8                      // of the flows that were added last
	seen  map[string]map[uint64]seen // by bridge and cookie
}

// patch is the port that connects an external network's bridge to br-int.
type patch struct {
	bridge string
	port   int // OpenFlow's
}

// Egress counts what leaves by each exit; see egress_flows.go.
func (c *Chassis) Egress(ctx context.Context, exits []sdn.Exit) ([]sdn.Egress, error) {
	c.egress.mu.Lock()
	defer c.egress.mu.Unlock()
	db, _, err := c.bridge(ctx)
	if err != nil {
		return nil, err
	}
	want := map[string][]flow{}
	for _, b := range mapped(db) {
		want[b] = nil // it may have obsolete flows
	}
	for x, p := range c.patches(db, exits) {
		want[p.bridge] = append(want[p.bridge], egressFlows(exits, p.port, x)...)
	}
	var all []sdn.Egress
	for _, bridge := range slices.Sorted(maps.Keys(want)) {
		counts, err := c.count(ctx, bridge, want[bridge])
		if err != nil {
			return nil, err
		}
		owners := map[uint64]string{}
		for _, f := range want[bridge] {
			owners[f.key()] = f.owner
		}
		for _, cookie := range slices.Sorted(maps.Keys(counts)) {
			owner, known := owners[cookie&^cookieLife]
			if !known || owner != "" {
				all = append(all, sdn.Egress{Counter: fmt.Sprintf("%s/%016x", bridge, cookie), Owner: owner, Bytes: counts[cookie].bytes})
			}
		}
	}
	maps.DeleteFunc(c.egress.seen, func(bridge string, _ map[uint64]seen) bool { _, ok := want[bridge]; return !ok })
	return all, nil
}

// count updates the flows of a bridge, and returns the counts.
func (c *Chassis) count(ctx context.Context, bridge string, want []flow) (map[uint64]seen, error) {
	text, err := c.ofctl(ctx, "", "dump-flows", bridge, fmt.Sprintf("cookie=%#x/%#x", cookieMark, cookieMarkMask))
	if err != nil {
		return nil, err
	}
	have, err := parseFlows(text)
	if err != nil {
		return nil, fmt.Errorf("sdn/ovn: read flows of %s: %w", bridge, err)
	}
	now := time.Now()
	counts := mergeCounts(c.egress.seen[bridge], have, now)
	remove, add := changeFlows(want, counts, now, c.o.Settled)
	if len(remove)+len(add) > 0 {
		life := c.egress.next()
		if _, err := c.ofctl(ctx, script(remove, add, life), "add-flows", bridge, "-"); err != nil {
			return nil, err
		}
		for _, cookie := range remove {
			delete(counts, cookie)
		}
		for _, f := range add {
			counts[f.key()|uint64(life)] = seen{since: now}
		}
	}
	if c.egress.seen == nil {
		c.egress.seen = map[string]map[uint64]seen{}
	}
	c.egress.seen[bridge] = counts
	return counts, nil
}

// next returns the number of the next life of flows: it differs from the last
// one, and is random after a restart.
func (e *egress) next() uint8 {
	if !e.begun {
		e.begun, e.life = true, uint8(rand.Uint32())
	}
	e.life++
	return e.life
}

// ofctl sends a command to the switch over its management socket of the
// bridge.
func (c *Chassis) ofctl(ctx context.Context, stdin, verb, bridge string, args ...string) (string, error) {
	socket := filepath.Join(filepath.Dir(strings.TrimPrefix(c.o.DB, "unix:")), bridge+".mgmt")
	cmd := exec.CommandContext(ctx, "ovs-ofctl", append([]string{"-O", "OpenFlow14", "--timeout=15", verb, "unix:" + socket}, args...)...)
	var out, problem bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &problem
	if err := cmd.Run(); err != nil {
		return "", api.Errorf(api.CodeUnavailable, "cannot read the egress counters of bridge %s: %s", bridge, cmp.Or(strings.TrimSpace(problem.String()), err.Error()))
	}
	return out.String(), nil
}

// mapped returns the existing bridges of physical networks (ovn-controller(8),
// ovn-bridge-mappings).
func mapped(db client.Client) (all []string) {
	there := map[string]bool{}
	for _, m := range db.Cache().Table(vs.BridgeTable).RowsShallow() {
		there[m.(*vs.Bridge).Name] = true
	}
	for _, m := range db.Cache().Table(vs.OpenvSwitchTable).RowsShallow() {
		for pair := range strings.SplitSeq(m.(*vs.OpenvSwitch).ExternalIDs["ovn-bridge-mappings"], ",") {
			if _, bridge, ok := strings.Cut(pair, ":"); ok && there[bridge] {
				all = append(all, bridge)
			}
		}
	}
	return all
}

// patches returns the patch ports of the exits' external networks on this
// node. ovn-controller creates and names them; without one, no traffic leaves
// here.
func (c *Chassis) patches(db client.Client, exits []sdn.Exit) map[api.ExternalNetworkID]patch {
	names := map[string]api.ExternalNetworkID{}
	for _, e := range exits {
		names["patch-"+localnetName(e.External)+"-to-"+c.o.Bridge] = e.External
	}
	ofport, of := map[string]int{}, map[string]api.ExternalNetworkID{} // by row
	for id, m := range db.Cache().Table(vs.InterfaceTable).RowsShallow() {
		i := m.(*vs.Interface)
		if x, ok := names[i.Name]; ok && i.Ofport != nil && *i.Ofport > 0 {
			ofport[id], of[id] = *i.Ofport, x
		}
	}
	bridges := map[string]string{} // by port's row
	for _, m := range db.Cache().Table(vs.BridgeTable).RowsShallow() {
		for _, p := range m.(*vs.Bridge).Ports {
			bridges[p] = m.(*vs.Bridge).Name
		}
	}
	all := map[api.ExternalNetworkID]patch{}
	for id, m := range db.Cache().Table(vs.PortTable).RowsShallow() {
		for _, i := range m.(*vs.Port).Interfaces {
			if x, ok := of[i]; ok && bridges[id] != "" {
				all[x] = patch{bridges[id], ofport[i]}
			}
		}
	}
	return all
}
