package network

import (
	"context"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/network"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/sdn/wireguard"
)

// encrypter is a fake node that carries out every stage at once, and is connected with
// each node that has a key.
type encrypter struct {
	mu      sync.Mutex
	problem string
}

func (e *encrypter) fail(problem string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.problem = problem
}

func (e *encrypter) Step(_ context.Context, i wireguard.Intent) wireguard.Report {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := wireguard.Report{Address: netip.MustParseAddr("192.0.2.7"), Serial: i.State.Serial, Send: i.State.Send, Enforced: i.State.Enforced, Problem: e.problem}
	for _, g := range i.State.Keys {
		k := wireguard.Key{Generation: g, Public: "key"}
		for _, p := range i.Peers {
			if _, ok := p.Report.Key(g); ok {
				k.Connected = append(k.Connected, p.Node)
			}
		}
		r.Keys = append(r.Keys, k)
	}
	return r
}

// TestEncryptionOfTunnels turns the encryption on through the settings: the leader's
// stages, the reports, and the reason why a node waits.
func TestEncryptionOfTunnels(t *testing.T) {
	h := newTestNode(t)
	until := func(what string, ok func(stage, why string) bool) {
		t.Helper()
		patience.Until(t, 30*time.Second, what, func() bool {
			stage, err := h.node.Encryption()
			why := ""
			if err != nil {
				why = err.Error()
			}
			return ok(stage, why)
		})
	}
	works := func(want string) {
		t.Helper()
		patience.Until(t, 30*time.Second, "the node reports whether it works", func() bool {
			ok, why := h.node.Works()
			return ok == (want == "") && strings.Contains(why, want)
		})
	}
	works("")
	until("nothing", func(stage, why string) bool { return stage == "" && why == "" })
	h.wire.fail("no module")
	h.put(api.KindSecuritySettings, api.SecuritySettingsID, api.SecuritySettingsSpec{EncryptTunnels: true})
	until("the problem", func(stage, why string) bool { return stage == "preparing" && why == "no module" })
	works("") // tunnels are plain
	h.wire.fail("")
	until("encryption", func(stage, why string) bool { return stage == wireguard.Encrypted && why == "" })

	h.put(api.KindNode, "node-2", api.NodeSpec{})
	h.put(api.KindSecuritySettings, api.SecuritySettingsID, api.SecuritySettingsSpec{EncryptTunnels: true, TunnelKeyRotation: 1})
	until("a new node's key", func(stage, why string) bool {
		return stage == "rotating" && strings.Contains(why, "no key yet from node-2")
	})
	h.apply(api.Command{Op: api.OpAssign, Kind: api.KindNode, ID: "node-2", Expect: api.AnyRevision, Data: api.Encode(api.NodeAssignment{State: api.NodeLost})})
	until("rotation without a lost node", func(stage, why string) bool { return stage == wireguard.Encrypted && why == "" })
	h.apply(api.Command{Op: api.OpReport, Kind: api.KindChassis, ID: "node-2", Name: "node-2", Expect: api.AnyRevision, Data: api.Encode(network.Report{
		Tunnels: wireguard.Report{Address: netip.MustParseAddr("192.0.2.8"), Keys: []wireguard.Key{{Generation: 2, Public: "key"}}}})})
	until("the other node's key", func(stage, why string) bool { return stage == wireguard.Encrypted && why == "" })

	h.wire.fail("no module")
	h.put(api.KindNode, "node-2", api.NodeSpec{}) // a change, after which the node takes a step at once
	works("tunnels cannot be encrypted: no module")
	h.wire.fail("")
	works("")
	h.put(api.KindSecuritySettings, api.SecuritySettingsID, api.SecuritySettingsSpec{})
	until("the end", func(stage, why string) bool { return stage == "" && why == "" })
}
