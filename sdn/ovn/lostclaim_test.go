package ovn_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sdn/ovn"
)

// lostClaim makes a node claim a router's gateway, with a late release right
// after it. For the node's own member of the southbound database the two
// cancel out, so it reports no change and the node does not claim the port
// again.
func lostClaim(t *testing.T, w *world) {
	best := w.bestGateway(t, red)
	w.until("the router is on "+string(best.id), func() error { return on(w.gateway(t, red), best.id) })
	defer best.connect(w, strings.Join(w.members(), ","))
	const tries = 5
	for try := 1; !w.loseClaim(t, best); try++ {
		if try == tries {
			t.Fatalf("no claim was lost in %d tries, so this test proves nothing", tries)
		}
	}
	w.until("the router has a gateway again", func() error {
		if err := w.control.RetryGateways(t.Context()); err != nil {
			return err
		}
		return on(w.claimant(1), string(best.id))
	})
}

// redPort is the redirect port of a project's router.
var redPort = "cr-" + ovn.RouterPortName(red, string(outside))

// loseClaim makes the node that has redPort lose its claim, and reports
// whether it was lost: it is not if the databases had an election meanwhile.
func (w *world) loseClaim(t *testing.T, best *node) bool {
	leader, own := w.leaderAndFollower(t)
	defer func() { // also after a failure: other subtests need them
		for _, name := range []string{best.controller, member(leader), member(own)} {
			w.signal(name, syscall.SIGCONT)
		}
	}()
	best.connect(w, w.members()[own-1])
	wait := func(at int, want string) {
		t.Helper()
		w.until(fmt.Sprintf("m%d has %s on %q", at, redPort, want), func() error { return on(w.claimant(at), want) })
	}
	wait(own, string(best.id))
	w.settle(t)
	// The node is notified that the port is free, and its claim waits for the
	// leader.
	w.signal(best.controller, syscall.SIGSTOP)
	w.southbound(leader, "clear", "Port_Binding", redPort, "chassis")
	wait(own, "")
	w.signal(member(leader), syscall.SIGSTOP)
	claims := best.claims(t, w)
	w.signal(best.controller, syscall.SIGCONT)
	w.until("a claim", func() error { return more(best.claims(t, w), claims) })
	w.turn(filepath.Join(best.dir, fmt.Sprintf("ovn-controller.%d.ctl", w.pid(best.controller))))
	w.turn(w.path(member(own) + ".ctl"))
	// Suspend the node's member during the claim and the release.
	w.signal(member(own), syscall.SIGSTOP)
	w.signal(member(leader), syscall.SIGCONT)
	wait(leader, string(best.id))
	w.southbound(leader, "clear", "Port_Binding", redPort, "chassis")
	w.signal(member(own), syscall.SIGCONT)
	w.settle(t)
	return w.claimant(leader) == ""
}

// claimant returns the chassis of redPort according to a member of the
// southbound database.
func (w *world) claimant(at int) string {
	w.t.Helper()
	row := w.southbound(at, "--columns=chassis", "find", "Port_Binding", "logical_port="+redPort)
	if row == "" {
		return ""
	}
	return w.southbound(at, "--columns=name", "list", "Chassis", row)
}

func member(i int) string { return fmt.Sprintf("m%d", i) }

func on[T ~string](is, want T) error {
	if is != want {
		return fmt.Errorf("node = %q, want %q", is, want)
	}
	return nil
}

func more(is, than int) error {
	if is <= than {
		return fmt.Errorf("count = %d, want more than %d", is, than)
	}
	return nil
}

// bestGateway returns the first node in the order of a project's gateways.
func (w *world) bestGateway(t *testing.T, p api.ProjectID) *node {
	t.Helper()
	ask := func(args ...string) string {
		return strings.TrimSpace(w.must(append([]string{"ovn-nbctl", "--db=" + strings.Join(w.members(), ","), "--timeout=20", "--bare"}, args...)...))
	}
	group := ask("--columns=ha_chassis_group", "find", "Logical_Router_Port", "name="+ovn.RouterPortName(p, string(outside)))
	first := strings.Split(strings.TrimPrefix(ask("--columns=name", "list", "HA_Chassis_Group", group), "gateways-"), "-")[0]
	i := slices.IndexFunc(w.nodes, func(n *node) bool { return string(n.id) == first })
	if i < 0 {
		t.Fatalf("no node has the ID %q of the first gateway", first)
	}
	return w.nodes[i]
}

// leaderAndFollower returns the numbers of two members of the southbound
// database.
func (w *world) leaderAndFollower(t *testing.T) (leader, follower int) {
	t.Helper()
	w.until("a leader of the southbound database", func() error {
		leader, follower = 0, 0
		for i := range w.members() {
			out, err := exec.Command("ovs-appctl", "--timeout=20", "-t", w.path(member(i+1)+".ctl"), "cluster/status", "OVN_Southbound").CombinedOutput()
			switch {
			case err != nil:
				return fmt.Errorf("%w: %s", err, out)
			case strings.Contains(string(out), "Role: leader"):
				leader = i + 1
			default:
				follower = i + 1
			}
		}
		if leader == 0 || follower == 0 {
			return errors.New("there is none")
		}
		return nil
	})
	return leader, follower
}

// southbound runs ovn-sbctl against one member of the database.
func (w *world) southbound(i int, args ...string) string {
	w.t.Helper()
	return strings.TrimSpace(w.must(append([]string{"ovn-sbctl", "--db=" + w.members()[i-1], "--no-leader-only", "--timeout=60", "--bare"}, args...)...))
}

// connect sets the members of the southbound database that the node uses.
func (n *node) connect(w *world, remote string) {
	w.must("ovs-vsctl", "--db=unix:"+filepath.Join(n.dir, "db.sock"), "--timeout=60", "set", "open", ".", "external_ids:ovn-remote=\""+remote+"\"")
}

// claims returns the number of claims of redPort in the log of the node's
// ovn-controller.
func (n *node) claims(t *testing.T, w *world) int {
	t.Helper()
	log, err := os.ReadFile(w.path(n.controller + ".log"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(log), "Claiming lport "+redPort)
}

// pid returns the process ID of a daemon: its launcher executes it in place.
func (w *world) pid(name string) int {
	d := w.daemons[name]
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.cmd.Process.Pid
}

// signal sends a signal to a daemon.
func (w *world) signal(name string, s syscall.Signal) {
	w.t.Helper()
	d := w.daemons[name]
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.cmd.Process.Signal(s); err != nil {
		w.t.Fatal(err)
	}
}

// turn waits for some iterations of a daemon's main loop: each answers one
// request after sending all earlier output.
func (w *world) turn(control string) {
	w.t.Helper()
	for range 3 {
		w.must("ovs-appctl", "--timeout=60", "-t", control, "version")
	}
}
