package upgrade

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Limits after which the upgrade pauses. Instances may be large and a machine slow;
// only the upgrade waits in the meantime.
const (
	checkLimit   = 5 * time.Minute
	drainLimit   = time.Hour
	installLimit = 30 * time.Minute
	verifyLimit  = 10 * time.Minute
	// quietLimit is the time without an instance leaving a drained node after which the
	// remaining instances are considered immovable. The planner starts moves within a
	// second.
	quietLimit = 10 * time.Second
	// spareBytes have to be free on a node in addition to three times the size of the
	// packages: as fetched, unpacked, and those of the previous release.
	spareBytes = 512 << 20
)

// Facts are the inputs of Next.
type Facts struct {
	Upgrade api.Upgrade
	Nodes   []Node // all nodes of the cluster
	Now     time.Time
}

// Node is a node as the leader sees it.
type Node struct {
	api.Node
	Leads     bool
	Reachable bool          // the leader received a report recently
	Behind    string        // why it has not replicated the leader's state; empty if it has
	Quiet     time.Duration // for how long no instance has been leaving it
}

// Step is the result of Next: Status is to be written if it differs from the stored
// one, then at most one of the other fields applies.
type Step struct {
	Status   api.UpgradeStatus
	Drain    *Drain
	HandOver bool // transfer leadership to another voter
}

// Drain describes a node whose spec.drain has to change.
type Drain struct {
	Node Node
	On   bool
}

// decision is a Step under construction.
type decision struct {
	Facts
	Step
}

// Next returns the next step of an upgrade. It is called repeatedly, also by changing
// leaders, and tolerates that an earlier step was not performed.
func Next(f Facts) Step {
	d := &decision{Facts: f, Step: Step{Status: f.Upgrade.Status}}
	d.Status.Nodes = d.roster()
	spec := f.Upgrade.Spec
	switch {
	case d.Status.Phase == "":
		d.begin()
	case d.Status.Phase == api.UpgradePaused && !spec.Paused && spec.Attempt != d.Status.Attempt:
		d.begin()
	}
	if d.restore() {
		return d.Step
	}
	if current := d.current(); current != nil {
		d.advance(current)
		return d.Step
	}
	switch {
	case d.Status.Phase == api.UpgradePaused || d.Status.Phase == api.UpgradeDone:
	case spec.Paused:
		d.enter(api.UpgradePaused, "paused by an operator")
	default:
		d.pick()
	}
	return d.Step
}

// begin starts an attempt, which retries what failed in the previous one.
func (d *decision) begin() {
	d.Status.Attempt = d.Upgrade.Spec.Attempt
	d.enter(api.UpgradeChecking, "")
	for i := range d.Status.Nodes {
		if n := &d.Status.Nodes[i]; n.Phase == api.UpgradeNodeFailed || n.Phase == api.UpgradeNodeRolledBack {
			d.move(n, api.UpgradeNodeWaiting, "")
		}
	}
}

// roster returns the status entries of the nodes that exist.
func (d *decision) roster() []api.UpgradeNode {
	var out []api.UpgradeNode
	for _, n := range d.Nodes {
		at := slices.IndexFunc(d.Status.Nodes, func(u api.UpgradeNode) bool { return string(u.Node) == n.Meta.ID })
		switch {
		case n.Meta.DeletedAt != nil:
		case at >= 0:
			out = append(out, d.Status.Nodes[at])
		case d.Status.Phase != api.UpgradeDone: // a node may join later, with any release
			out = append(out, api.UpgradeNode{Node: api.NodeID(n.Meta.ID), From: n.Status.Version, To: d.Upgrade.Spec.Version, Phase: api.UpgradeNodeWaiting, Since: d.Now})
		}
	}
	slices.SortFunc(out, func(a, b api.UpgradeNode) int { return cmp.Compare(a.Node, b.Node) })
	return out
}

func (d *decision) enter(p api.UpgradePhase, reason string) {
	if d.Status.Phase != p {
		d.Status.Phase, d.Status.Since = p, d.Now
	}
	d.Status.Reason = reason
}

func (d *decision) move(u *api.UpgradeNode, p api.UpgradeNodePhase, message string) {
	if u.Phase != p {
		u.Phase, u.Since = p, d.Now
	}
	u.Message = message
}

func (d *decision) node(id api.NodeID) Node {
	i := slices.IndexFunc(d.Nodes, func(n Node) bool { return n.Meta.ID == string(id) })
	return d.Nodes[i] // the roster contains only such nodes
}

// current returns the node that is half-way, or nil.
func (d *decision) current() *api.UpgradeNode {
	for i := range d.Status.Nodes {
		if d.Status.Nodes[i].Phase.InProgress() {
			return &d.Status.Nodes[i]
		}
	}
	return nil
}

// restore ends the maintenance of nodes that the upgrade drained and has finished. A
// node that failed stays drained until it is retried.
func (d *decision) restore() bool {
	for i := range d.Status.Nodes {
		u := &d.Status.Nodes[i]
		if !u.Drains || u.Phase.InProgress() || u.Phase == api.UpgradeNodeFailed {
			continue
		}
		if n := d.node(u.Node); n.Spec.Drain {
			d.Drain = &Drain{Node: n}
			return true
		}
		u.Drains = false
	}
	return false
}

// pick chooses the next node. The leader comes last, after another node has taken over.
func (d *decision) pick() {
	if problem := d.problem(""); problem != "" {
		if d.enter(api.UpgradeChecking, problem); d.Now.Sub(d.Status.Since) > checkLimit {
			d.enter(api.UpgradePaused, problem)
		}
		return
	}
	var next *api.UpgradeNode
	for i := range d.Status.Nodes {
		u := &d.Status.Nodes[i]
		if u.Phase == api.UpgradeNodeWaiting && (next == nil || d.node(next.Node).Leads) {
			next = u
		}
	}
	switch {
	case next == nil:
		d.enter(api.UpgradeDone, "")
		return
	case d.node(next.Node).Status.Version == d.Upgrade.Spec.Version: // manually, or in an earlier attempt
		d.enter(api.UpgradeRunning, "")
		d.move(next, api.UpgradeNodeVerifying, "")
		return
	}
	d.enter(api.UpgradeRunning, "")
	if d.handOver(next) {
		return
	}
	n := d.node(next.Node)
	next.From, next.To = n.Status.Version, d.Upgrade.Spec.Version
	next.Drains = !n.Spec.Drain && len(d.Status.Nodes) > 1
	next.Working = working(n)
	d.move(next, api.UpgradeNodeDraining, "")
}

// handOver requests another leader if this node leads and another one can.
func (d *decision) handOver(u *api.UpgradeNode) bool {
	if !d.node(u.Node).Leads || !slices.ContainsFunc(d.Nodes, func(n Node) bool { return n.Assignment.Voter && !n.Leads }) {
		return false
	}
	d.HandOver = true
	d.Status.Reason = "node " + d.name(u) + " is the leader: transferring leadership first"
	return true
}

func (d *decision) name(u *api.UpgradeNode) string { return d.node(u.Node).Meta.Name }

// advance moves the half-way node forward.
func (d *decision) advance(u *api.UpgradeNode) {
	if d.Status.Phase == api.UpgradeChecking { // a new attempt with a node half-way
		d.enter(api.UpgradeRunning, "")
	}
	d.Status.Reason = ""
	n := d.node(u.Node)
	if u.Drains && !n.Spec.Drain {
		d.Drain = &Drain{Node: n, On: true}
	}
	switch u.Phase {
	case api.UpgradeNodeDraining:
		d.drain(u, n)
	case api.UpgradeNodeInstalling:
		d.install(u, n)
	default:
		d.verify(u, n)
	}
}

func (d *decision) drain(u *api.UpgradeNode, n Node) {
	empty := n.Assignment.State == api.NodeDrained || n.Quiet >= quietLimit
	problem := d.problem(u.Node)
	switch late := d.Now.Sub(u.Since) > drainLimit; {
	case problem != "" && late:
		d.move(u, api.UpgradeNodeWaiting, "")
		d.enter(api.UpgradePaused, problem)
	case late:
		d.fail(u, api.UpgradeNodeWaiting, "instances did not move away: "+n.Assignment.Reason)
	case problem != "":
		d.Status.Reason = problem
	case u.Drains && (!n.Spec.Drain || !empty):
		u.Message = n.Assignment.Reason
	case d.handOver(u): // leadership has returned to it
	default:
		d.move(u, api.UpgradeNodeInstalling, "")
	}
}

func (d *decision) install(u *api.UpgradeNode, n Node) {
	r := n.Status.Upgrade
	ours := r.Upgrade == d.Upgrade.Meta.ID && r.Attempt == d.Status.Attempt
	switch {
	case ours && r.Result == api.UpgradeResultDone:
		d.move(u, api.UpgradeNodeVerifying, "")
	case ours && r.Result == api.UpgradeResultRolledBack:
		d.fail(u, api.UpgradeNodeRolledBack, cmp.Or(r.Message, "the new release did not work"))
	case ours && r.Result != "":
		d.fail(u, api.UpgradeNodeFailed, cmp.Or(r.Message, "the packages were not installed"))
	case d.Now.Sub(u.Since) > installLimit:
		d.fail(u, api.UpgradeNodeFailed, fmt.Sprintf("no result of the installation was reported within %s", installLimit))
	}
}

func (d *decision) verify(u *api.UpgradeNode, n Node) {
	problem := unhealthy(n)
	if problem == "" && n.Status.Version != d.Upgrade.Spec.Version {
		problem = fmt.Sprintf("node %s runs %s", n.Meta.Name, cmp.Or(n.Status.Version, "an unknown version"))
	}
	for _, c := range n.Status.Conditions {
		if problem == "" && !c.Status && slices.Contains(u.Working, c.Type) {
			problem = fmt.Sprintf("on node %s %s no longer works: %s", n.Meta.Name, c.Type, cmp.Or(c.Message, c.Reason))
		}
	}
	switch {
	case problem == "":
		d.Drain = nil // an operator has already ended its maintenance
		d.move(u, api.UpgradeNodeDone, "")
	case d.Now.Sub(u.Since) > verifyLimit:
		d.fail(u, api.UpgradeNodeFailed, problem)
	default:
		u.Message = problem
	}
}

// fail ends the upgrade of a node and pauses the whole upgrade.
func (d *decision) fail(u *api.UpgradeNode, p api.UpgradeNodePhase, why string) {
	d.move(u, p, why)
	d.Drain = nil
	verb := map[api.UpgradeNodePhase]string{api.UpgradeNodeRolledBack: "was rolled back to " + cmp.Or(u.From, "the previous release")}[p]
	d.enter(api.UpgradePaused, fmt.Sprintf("node %s %s: %s", d.name(u), cmp.Or(verb, "cannot go on"), why))
}

// problem returns why no node besides except may be unavailable now. It is empty if one
// may.
func (d *decision) problem(except api.NodeID) string {
	for _, u := range d.Status.Nodes {
		n := d.node(u.Node)
		if u.Node == except {
			continue
		}
		if p := cmp.Or(unhealthy(n), d.busy(u, n)); p != "" {
			return p
		}
	}
	return ""
}

// unhealthy returns why a node counts as unavailable already. It is empty for a healthy
// node.
func unhealthy(n Node) string {
	switch state := n.Assignment.State; {
	case state == api.NodeLost || state == api.NodeSuspect:
		return fmt.Sprintf("node %s is %s: %s", n.Meta.Name, state, n.Assignment.Reason)
	case !n.Reachable:
		return "node " + n.Meta.Name + " is not reachable"
	case n.WithoutStore():
		return "node " + n.Meta.Name + " has no usable copy of the cluster's state"
	case n.Behind != "":
		return "node " + n.Meta.Name + " has not caught up: " + n.Behind
	}
	return ""
}

// busy returns why a healthy node cannot be upgraded, or blocks the upgrade of others.
func (d *decision) busy(u api.UpgradeNode, n Node) string {
	if n.Spec.Drain && !u.Drains {
		return fmt.Sprintf("node %s is in maintenance: basalt node undrain %s", n.Meta.Name, n.Meta.Name)
	}
	if u.Phase == api.UpgradeNodeDone || n.Status.Version == d.Upgrade.Spec.Version {
		return ""
	}
	need := int64(spareBytes)
	for _, p := range d.Upgrade.Spec.Packages {
		need += 3 * p.SizeBytes
	}
	for _, p := range n.Status.Pools {
		if p.Name == api.PoolLocal && p.SizeBytes > 0 && p.FreeBytes < need {
			return fmt.Sprintf("node %s has %d MiB free on its disk, want %d MiB", n.Meta.Name, p.FreeBytes>>20, need>>20)
		}
	}
	switch r := n.Status.Upgrade; {
	case r.Upgrade != d.Upgrade.Meta.ID:
		return fmt.Sprintf("node %s has not reported that it can be upgraded; if its release cannot (%s), upgrade it manually", n.Meta.Name, cmp.Or(n.Status.Version, "unknown version"))
	case !r.Fetched:
		return fmt.Sprintf("node %s does not have the packages yet%s", n.Meta.Name, because(r.Message))
	}
	return ""
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// working returns the types of a node's conditions that are true. A release may add
// conditions, which do not tell whether it works as well as the previous one.
func working(n Node) (types []string) {
	for _, c := range n.Status.Conditions {
		if c.Status {
			types = append(types, c.Type)
		}
	}
	return types
}
