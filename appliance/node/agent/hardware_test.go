package agent

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// TestHardwareWatch checks that the machine is checked with the accelerator and the
// other nodes that should answer, and that the node is reported when a result
// changes.
func TestHardwareWatch(t *testing.T) {
	reported := 0
	var answer []api.HardwareCheck
	var how string
	var asked []string
	o := Options{NodeID: "n1", Hardware: func(_ context.Context, accelerator string, others []api.Node) []api.HardwareCheck {
		how, asked = accelerator, nil
		for _, n := range others {
			asked = append(asked, n.Meta.ID)
		}
		return answer
	}}
	o.setDefaults()
	ac := &acceleration{}
	ac.set(hypervisor.TCG)
	h := &hardwareWatch{core: newCore(o), accelerator: ac, soon: func() { reported++ }}
	for id, state := range map[string]api.NodeState{"n1": api.NodeReady, "n3": api.NodeReady, "n2": api.NodeDrained, "n4": api.NodeLost, "n5": api.NodeSuspect} {
		h.cache.nodes.objects[id] = api.Node{Meta: api.Meta{ID: id}, Assignment: api.NodeAssignment{State: state}}
	}
	answer = []api.HardwareCheck{{ID: api.HardwareKVM, State: api.HardwareOK, Found: "KVM works"}}
	h.check(t.Context())
	if how != "tcg" || !reflect.DeepEqual(asked, []string{"n2", "n3"}) {
		t.Errorf("asked for accelerator %q and nodes %q, want tcg, n2 and n3", how, asked)
	}
	h.check(t.Context())
	if reported != 1 || !reflect.DeepEqual(h.checks(), answer) {
		t.Errorf("after two checks with the same results: %d reports and %+v, want one report", reported, h.checks())
	}
	answer = make([]api.HardwareCheck, 100)
	h.check(t.Context())
	if n := len(h.checks()); reported != 2 || n != maxHardware {
		t.Errorf("after a hundred checks: %d reports of %d checks, want the second report of %d", reported, n, maxHardware)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	answer = nil
	h.check(ctx)
	if len(h.checks()) != maxHardware {
		t.Errorf("%d results after an interrupted check, want the earlier %d", len(h.checks()), maxHardware)
	}
}

func TestHardwareCondition(t *testing.T) {
	now := time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)
	warned := api.HardwareCheck{ID: api.HardwareBMC, State: api.HardwareWarning, Found: "no /dev/ipmi0"}
	if c := hardwareCondition([]api.HardwareCheck{warned}, now); !c.Status || c.Type != api.ConditionHardware {
		t.Errorf("condition with a warning = %+v, want it true", c)
	}
	broken := api.HardwareCheck{ID: api.HardwareDisks, State: api.HardwareFailed, Found: "sda reports that it fails (SMART)"}
	if c := hardwareCondition([]api.HardwareCheck{warned, broken}, now); c.Status || !strings.Contains(c.Message, "disks: sda reports") || strings.Contains(c.Message, "ipmi") {
		t.Errorf("condition with a failed check = %+v, want it false, with what was found", c)
	}
}
