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

// lostClaim: a node claims a router's gateway, and a release that was late
// follows at once. To the node's own member of the southbound database both are
// one change, which is none, and the node does not claim it again.
func lostClaim(t *testing.T, w *world) {
	port := "cr-" + ovn.RouterPortName(red, string(outside))
	best := w.bestGateway(t, red)
	w.until("the router is on "+string(best.id), func() error { return on(w.gateway(t, red), best.id) })
	leader, own := w.leaderAndFollower(t)
	best.connect(w, w.members()[own-1])
	defer best.connect(w, strings.Join(w.members(), ","))
	chassis := func(member int) string {
		if row := w.southbound(member, "--columns=chassis", "find", "Port_Binding", "logical_port="+port); row != "" {
			return w.southbound(member, "--columns=name", "list", "Chassis", row)
		}
		return ""
	}
	wait := func(member int, want string) {
		t.Helper()
		w.until(fmt.Sprintf("m%d has %s on %q", member, port, want), func() error { return on(chassis(member), want) })
	}
	const tries = 5
	for try := 1; ; try++ {
		wait(own, string(best.id))
		w.settle(t)
		// The node sees that the port is free, and its claim waits for the leader.
		w.signal(best.controller, syscall.SIGSTOP)
		w.southbound(leader, "clear", "Port_Binding", port, "chassis")
		wait(own, "")
		w.signal(member(leader), syscall.SIGSTOP)
		claims := best.claims(t, w, port)
		w.signal(best.controller, syscall.SIGCONT)
		w.until("a claim", func() error { return more(best.claims(t, w, port), claims) })
		w.turn(filepath.Join(best.dir, "ovn-controller.*.ctl"))
		w.turn(w.path(member(own) + ".ctl"))
		// The node's member sleeps over the claim and the release.
		w.signal(member(own), syscall.SIGSTOP)
		w.signal(member(leader), syscall.SIGCONT)
		wait(leader, string(best.id))
		w.southbound(leader, "clear", "Port_Binding", port, "chassis")
		w.signal(member(own), syscall.SIGCONT)
		wait(own, "")
		w.settle(t)
		if chassis(leader) == "" {
			break
		}
		if try == tries {
			t.Fatalf("no claim was lost in %d tries: the test says nothing", tries)
		}
	}
	w.until("the router has a gateway again", func() error {
		if err := w.control.Remind(t.Context()); err != nil {
			return err
		}
		return on(chassis(leader), string(best.id))
	})
}

func member(i int) string { return fmt.Sprintf("m%d", i) }

func on[T ~string](is, want T) error {
	if is != want {
		return fmt.Errorf("it is on %q", is)
	}
	return nil
}

func more(is, than int) error {
	if is <= than {
		return fmt.Errorf("%d", is)
	}
	return nil
}

// bestGateway of a project: the first of those that may be it.
func (w *world) bestGateway(t *testing.T, p api.ProjectID) *node {
	t.Helper()
	ask := func(args ...string) string {
		return strings.TrimSpace(w.must(append([]string{"ovn-nbctl", "--db=" + strings.Join(w.members(), ","), "--timeout=20", "--bare"}, args...)...))
	}
	group := ask("--columns=ha_chassis_group", "find", "Logical_Router_Port", "name="+ovn.RouterPortName(p, string(outside)))
	first := strings.Split(strings.TrimPrefix(ask("--columns=name", "list", "HA_Chassis_Group", group), "gateways-"), "-")[0]
	i := slices.IndexFunc(w.nodes, func(n *node) bool { return string(n.id) == first })
	if i < 0 {
		t.Fatalf("no node is %q", first)
	}
	return w.nodes[i]
}

// leaderAndFollower among the members of the southbound database.
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

// southbound asks one member of the database.
func (w *world) southbound(i int, args ...string) string {
	w.t.Helper()
	return strings.TrimSpace(w.must(append([]string{"ovn-sbctl", "--db=" + w.members()[i-1], "--no-leader-only", "--timeout=60", "--bare"}, args...)...))
}

// connect the node to these members of the southbound database.
func (n *node) connect(w *world, remote string) {
	w.must("ovs-vsctl", "--db=unix:"+filepath.Join(n.dir, "db.sock"), "--timeout=60", "set", "open", ".", "external_ids:ovn-remote=\""+remote+"\"")
}

// claims of a port, as the node's ovn-controller has logged them.
func (n *node) claims(t *testing.T, w *world, port string) int {
	t.Helper()
	log, err := os.ReadFile(w.path(n.controller + ".log"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(log), "Claiming lport "+port)
}

// signal to a daemon.
func (w *world) signal(name string, s syscall.Signal) {
	w.t.Helper()
	d := w.daemons[name]
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.cmd.Process.Signal(s); err != nil {
		w.t.Fatal(err)
	}
}

// turn waits until a daemon has gone through its main loop, in which it answers
// each question, and sends what it had to send before.
func (w *world) turn(control string) {
	w.t.Helper()
	paths, err := filepath.Glob(control)
	if err != nil || len(paths) != 1 {
		w.t.Fatalf("%s is %v, %v", control, paths, err)
	}
	for range 3 {
		w.must("ovs-appctl", "--timeout=60", "-t", paths[0], "version")
	}
}
