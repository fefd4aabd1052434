package upgrade

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

var began = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)

// threeNodes returns three nodes that are ready for release 2; n1 is the leader.
func threeNodes() Facts {
	f := Facts{Now: began, Upgrade: api.Upgrade{Meta: api.Meta{ID: "upg-1"}, Spec: api.UpgradeSpec{Version: "2"}}}
	for i := 1; i <= 3; i++ {
		var n Node
		n.Meta = api.Meta{ID: fmt.Sprintf("node-%d", i), Name: fmt.Sprintf("n%d", i)}
		n.Status = api.NodeStatus{Version: "1", Upgrade: api.NodeUpgrade{Upgrade: "upg-1", Fetched: true},
			Pools: []api.StoragePool{{Name: api.PoolLocal, SizeBytes: 100 << 30, FreeBytes: 50 << 30}}}
		n.Assignment = api.NodeAssignment{State: api.NodeReady, Voter: true}
		n.Reachable, n.Leads = true, i == 1
		f.Nodes = append(f.Nodes, n)
	}
	return f
}

// inPhase sets the phases of the upgrade and its nodes, which are given as "Draining
// Waiting Done"; "!" marks a node that the upgrade drained.
func inPhase(f Facts, phase api.UpgradePhase, phases string) Facts {
	f.Upgrade.Status = api.UpgradeStatus{Phase: phase, Since: f.Now, Attempt: f.Upgrade.Spec.Attempt}
	for i, p := range strings.Fields(phases) {
		p, drains := strings.CutSuffix(p, "!")
		f.Upgrade.Status.Nodes = append(f.Upgrade.Status.Nodes, api.UpgradeNode{Node: api.NodeID(f.Nodes[i].Meta.ID), From: "1", To: "2",
			Phase: api.UpgradeNodePhase(p), Since: f.Now, Drains: drains})
		if drains {
			f.Nodes[i].Spec.Drain, f.Nodes[i].Assignment.State = true, api.NodeDrained
		}
		if p == "Done" {
			f.Nodes[i].Status.Version = "2"
		}
	}
	return f
}

// describe returns the phase of a step, the phases of its nodes (with "!" for a drained
// one), the actions and the reason for waiting.
func describe(s Step) string {
	out := string(s.Status.Phase) + ":"
	for _, n := range s.Status.Nodes {
		out += " " + string(n.Phase)
		if n.Drains {
			out += "!"
		}
	}
	if s.Drain != nil {
		out += fmt.Sprintf("; drain %s %v", s.Drain.Node.Meta.Name, s.Drain.On)
	}
	if s.HandOver {
		out += "; hand over"
	}
	if s.Status.Reason != "" {
		out += "; " + s.Status.Reason
	}
	return out
}

func TestNext(t *testing.T) {
	result := func(n *Node, attempt int64, r api.UpgradeResult, message string) {
		n.Status.Upgrade.Attempt, n.Status.Upgrade.Result, n.Status.Upgrade.Message = attempt, r, message
	}
	for _, c := range []struct {
		name  string
		phase api.UpgradePhase
		nodes string
		facts func(*Facts)
		want  string
	}{
		{"it begins with a follower", "", "", nil, "Running: Waiting Draining! Waiting"},
		{"the leader is not begun", "Running", "Waiting Done Done", nil, "Running: Waiting Done Done; hand over; node n1 is the leader: transferring leadership first"},
		{"who led before comes last", "Running", "Waiting Done Done", func(f *Facts) { f.Nodes[0].Leads, f.Nodes[1].Leads = false, true }, "Running: Draining! Done Done"},
		{"all are done", "Running", "Done Done Done", nil, "Done: Done Done Done"},
		{"done is done", "Done", "Done Done Done", func(f *Facts) { f.Nodes[1].Assignment.State = api.NodeLost }, "Done: Done Done Done"},
		{"a node that has the version is looked at only", "Running", "Waiting Waiting Done", func(f *Facts) { f.Nodes[1].Status.Version = "2" }, "Running: Waiting Verifying Done"},
		{"nobody else can lead", "Running", "Waiting Done Done", func(f *Facts) { f.Nodes[1].Assignment.Voter, f.Nodes[2].Assignment.Voter = false, false }, "Running: Draining! Done Done"},
		{"a node alone is not drained", "", "", func(f *Facts) { f.Nodes = f.Nodes[:1] }, "Running: Draining"},
		{"and is installed on at once", "Running", "Draining", func(f *Facts) { f.Nodes = f.Nodes[:1] }, "Running: Installing"},

		{"not reachable", "", "", func(f *Facts) { f.Nodes[2].Reachable = false }, "Checking: Waiting Waiting Waiting; node n3 is not reachable"},
		{"lost", "", "", func(f *Facts) { f.Nodes[1].Assignment.State, f.Nodes[1].Assignment.Reason = api.NodeLost, "no power" }, "Checking: Waiting Waiting Waiting; node n2 is Lost: no power"},
		{"behind", "", "", func(f *Facts) { f.Nodes[1].Behind = "10 entries" }, "Checking: Waiting Waiting Waiting; node n2 has not caught up: 10 entries"},
		{"without a store", "", "", func(f *Facts) { f.Nodes[0].Status.Conditions = []api.Condition{{Type: api.ConditionStore}} }, "Checking: Waiting Waiting Waiting; node n1 has no usable copy of the cluster's state"},
		{"in maintenance", "", "", func(f *Facts) { f.Nodes[2].Spec.Drain = true }, "Checking: Waiting Waiting Waiting; node n3 is in maintenance: basalt node undrain n3"},
		{"a full disk", "", "", func(f *Facts) {
			f.Upgrade.Spec.Packages = []api.UpgradePackage{{SizeBytes: 100 << 20}}
			f.Nodes[2].Status.Pools[0].FreeBytes = 800 << 20
		}, "Checking: Waiting Waiting Waiting; node n3 has 800 MiB free on its disk, want 812 MiB"},
		{"without the packages", "", "", func(f *Facts) { f.Nodes[2].Status.Upgrade.Fetched = false }, "Checking: Waiting Waiting Waiting; node n3 does not have the packages yet"},
		{"of a release that cannot", "", "", func(f *Facts) { f.Nodes[1].Status.Upgrade = api.NodeUpgrade{} },
			"Checking: Waiting Waiting Waiting; node n2 has not reported that it can be upgraded; if its release cannot (1), upgrade it manually"},
		{"the checks take too long", "Checking", "Waiting Waiting Waiting", func(f *Facts) {
			f.Nodes[2].Reachable = false
			f.Now = f.Now.Add(checkLimit + 1)
		}, "Paused: Waiting Waiting Waiting; node n3 is not reachable"},
		{"between two nodes, too", "Running", "Waiting Done Waiting", func(f *Facts) { f.Nodes[2].Reachable = false }, "Checking: Waiting Done Waiting; node n3 is not reachable"},

		{"a node is drained", "Running", "Waiting Draining! Waiting", func(f *Facts) { f.Nodes[1].Spec.Drain = false }, "Running: Waiting Draining! Waiting; drain n2 true"},
		{"it waits for moves", "Running", "Waiting Draining! Waiting", func(f *Facts) { f.Nodes[1].Assignment.State = api.NodeDraining }, "Running: Waiting Draining! Waiting"},
		{"what cannot move stays", "Running", "Waiting Draining! Waiting", func(f *Facts) {
			f.Nodes[1].Assignment.State, f.Nodes[1].Quiet = api.NodeDraining, quietLimit
		}, "Running: Waiting Installing! Waiting"},
		{"it is empty", "Running", "Waiting Draining! Waiting", nil, "Running: Waiting Installing! Waiting"},
		{"another one dies meanwhile", "Running", "Waiting Draining! Waiting", func(f *Facts) { f.Nodes[2].Reachable = false }, "Running: Waiting Draining! Waiting; node n3 is not reachable"},
		{"and stays dead", "Running", "Waiting Draining! Waiting", func(f *Facts) {
			f.Nodes[2].Reachable, f.Now = false, f.Now.Add(drainLimit+1)
		}, "Paused: Waiting Waiting! Waiting; node n3 is not reachable"},
		{"a move does not end", "Running", "Waiting Draining! Waiting", func(f *Facts) {
			f.Nodes[1].Assignment.State, f.Nodes[1].Assignment.Reason, f.Now = api.NodeDraining, "1 to move", f.Now.Add(drainLimit+1)
		}, "Paused: Waiting Waiting! Waiting; node n2 cannot go on: instances did not move away: 1 to move"},
		{"leadership has come to it", "Running", "Draining! Waiting Waiting", nil, "Running: Draining! Waiting Waiting; hand over; node n1 is the leader: transferring leadership first"},

		{"it installs", "Running", "Waiting Installing! Waiting", nil, "Running: Waiting Installing! Waiting"},
		{"a result of another attempt", "Running", "Waiting Installing! Waiting", func(f *Facts) { result(&f.Nodes[1], 7, "Done", "") }, "Running: Waiting Installing! Waiting"},
		{"a result of another upgrade", "Running", "Waiting Installing! Waiting", func(f *Facts) {
			result(&f.Nodes[1], 0, "RolledBack", "")
			f.Nodes[1].Status.Upgrade.Upgrade = "upg-0"
		}, "Running: Waiting Installing! Waiting"},
		{"it is installed", "Running", "Waiting Installing! Waiting", func(f *Facts) { result(&f.Nodes[1], 0, "Done", "") }, "Running: Waiting Verifying! Waiting"},
		{"it has gone back", "Running", "Waiting Installing! Waiting", func(f *Facts) { result(&f.Nodes[1], 0, "RolledBack", "no quorum") },
			"Paused: Waiting RolledBack! Waiting; node n2 was rolled back to 1: no quorum"},
		{"it cannot install", "Running", "Waiting Installing! Waiting", func(f *Facts) { result(&f.Nodes[1], 0, "Failed", "dpkg is locked") },
			"Paused: Waiting Failed! Waiting; node n2 cannot go on: dpkg is locked"},
		{"it says nothing", "Running", "Waiting Installing! Waiting", func(f *Facts) { f.Now = f.Now.Add(installLimit + 1) },
			"Paused: Waiting Failed! Waiting; node n2 cannot go on: no result of the installation was reported within 30m0s"},

		{"it is verified", "Running", "Waiting Verifying! Waiting", func(f *Facts) { f.Nodes[1].Status.Version = "2" }, "Running: Waiting Done! Waiting"},
		{"it runs something else", "Running", "Waiting Verifying! Waiting", nil, "Running: Waiting Verifying! Waiting"},
		{"for too long", "Running", "Waiting Verifying! Waiting", func(f *Facts) { f.Now = f.Now.Add(verifyLimit + 1) }, "Paused: Waiting Failed! Waiting; node n2 cannot go on: node n2 runs 1"},
		{"something has stopped working", "Running", "Waiting Verifying! Waiting", func(f *Facts) {
			f.Nodes[1].Status.Version, f.Now = "2", f.Now.Add(verifyLimit+1)
			f.Nodes[1].Status.Conditions = []api.Condition{{Type: "Network", Message: "no bridge"}}
			f.Upgrade.Status.Nodes[1].Working = []string{"Network"}
		}, "Paused: Waiting Failed! Waiting; node n2 cannot go on: on node n2 Network no longer works: no bridge"},
		{"it did not work before, or is new", "Running", "Waiting Verifying! Waiting", func(f *Facts) {
			f.Nodes[1].Status.Version = "2"
			f.Nodes[1].Status.Conditions = []api.Condition{{Type: "Network"}}
			f.Upgrade.Status.Nodes[1].Working = []string{"Hypervisor"}
		}, "Running: Waiting Done! Waiting"},

		{"its maintenance ends", "Running", "Waiting Done! Waiting", nil, "Running: Waiting Done! Waiting; drain n2 false"},
		{"before the next begins", "Running", "Waiting Done! Waiting", func(f *Facts) { f.Nodes[1].Spec.Drain = false }, "Running: Waiting Done Draining!"},
		{"after it has gone back, too", "Paused", "Waiting RolledBack! Waiting", nil, "Paused: Waiting RolledBack! Waiting; drain n2 false"},
		{"who has failed stays drained", "Paused", "Waiting Failed! Waiting", nil, "Paused: Waiting Failed! Waiting"},

		{"it is to pause", "Running", "Waiting Done Waiting", func(f *Facts) { f.Upgrade.Spec.Paused = true }, "Paused: Waiting Done Waiting; paused by an operator"},
		{"a node is not left half-way", "Running", "Waiting Installing! Waiting", func(f *Facts) {
			f.Upgrade.Spec.Paused = true
			result(&f.Nodes[1], 0, "Done", "")
		}, "Running: Waiting Verifying! Waiting"},
		{"it stays paused", "Paused", "Waiting Done Waiting", nil, "Paused: Waiting Done Waiting"},
		{"it goes on", "Paused", "Waiting Done Waiting", func(f *Facts) { f.Upgrade.Spec.Attempt++ }, "Running: Waiting Done Draining!"},
		{"it is tried again", "Paused", "Waiting Failed! Waiting", func(f *Facts) { f.Upgrade.Spec.Attempt++ }, "Checking: Waiting Waiting! Waiting; drain n2 false"},
		{"a new attempt waits until nobody is half-way", "Running", "Waiting Installing! Waiting", func(f *Facts) {
			f.Upgrade.Spec.Attempt++
			result(&f.Nodes[1], 0, "Done", "")
		}, "Running: Waiting Verifying! Waiting"},
		{"a node is removed", "Running", "Waiting Installing Waiting", func(f *Facts) { f.Nodes = append(f.Nodes[:1:1], f.Nodes[2]) }, "Running: Waiting Draining!"},
	} {
		f := threeNodes()
		if c.phase != "" {
			f = inPhase(f, c.phase, c.nodes)
		}
		if c.facts != nil {
			c.facts(&f)
		}
		if got := describe(Next(f)); got != c.want {
			t.Errorf("%s:\nstep = %s\nwant   %s", c.name, got, c.want)
		}
	}
}

// During a whole upgrade at most one node is away, the leader is never installed on,
// and every step may be requested twice.
func TestNextWhole(t *testing.T) {
	f := threeNodes()
	var order []string
	for i := range 200 {
		s := Next(f)
		if again := Next(f); describe(again) != describe(s) {
			t.Fatalf("Next returned %s and then %s for the same facts", describe(s), describe(again))
		}
		f.Upgrade.Status = s.Status
		if s.Status.Phase == api.UpgradeDone {
			break
		}
		if i == 199 {
			t.Fatalf("upgrade is not done after 200 steps: %s", describe(s))
		}
		if s.HandOver {
			f.Nodes[0].Leads, f.Nodes[1].Leads = false, true
		}
		if s.Drain != nil {
			for j := range f.Nodes {
				if n := &f.Nodes[j]; n.Meta.ID == s.Drain.Node.Meta.ID {
					n.Spec.Drain, n.Assignment.State = s.Drain.On, api.NodeReady
					if s.Drain.On {
						n.Assignment.State = api.NodeDrained
					}
				}
			}
		}
		away := 0
		for j, u := range s.Status.Nodes {
			n := &f.Nodes[j]
			if !n.Reachable || u.Phase.InProgress() {
				away++
			}
			if u.Phase == api.UpgradeNodeInstalling {
				if n.Leads {
					t.Fatalf("the leader is being installed on: %s", describe(s))
				}
				order = append(order, n.Meta.Name)
				n.Status.Version, n.Status.Upgrade.Result = "2", api.UpgradeResultDone
			}
		}
		if away > 1 {
			t.Fatalf("%d nodes are away, want at most 1: %s", away, describe(s))
		}
	}
	if got := strings.Join(order, " "); got != "n2 n3 n1" {
		t.Errorf("order of installation = %q, want %q", got, "n2 n3 n1")
	}
	for _, n := range f.Nodes {
		if n.Spec.Drain {
			t.Errorf("node %s is still drained after the upgrade", n.Meta.Name)
		}
	}
}
