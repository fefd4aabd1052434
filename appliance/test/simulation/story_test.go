package simulation

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/cluster/lease"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state"
)

// story is one fault in virtual time, in a healthy cluster of three nodes. It is the short
// counterpart of a test with three real nodes (appliance/test/e2e/cluster). TestSeeds checks
// the invariants; a story also checks what a single fault must not cause, and by when its
// outcome must be reached.
type story struct {
	name string
	run  func(w *storyCluster)
	skew time.Duration // of the first node's wall clock; the second's has the opposite skew
	old  bool          // all nodes begin with the previous release
}

var stories = []story{
	{"LeaderKilled", leaderKilled, 0, false},
	{"NodeFrozen", nodeFrozen, 0, false},
	{"DaemonFrozen", daemonFrozen, 0, false},
	{"Partition", partition, 0, false},
	{"OneOfTwoPaths", oneOfTwoPaths, 0, false},
	{"OneWay", oneWay, 0, false},
	{"PacketLoss", packetLoss, 0, false},
	{"ClockOff", clockOff, time.Hour, false},
	{"Drain", drain, 0, false},
	{"DrainStopped", drainStopped, 0, false},
	{"StoreLost", storeLost, 0, false},
	{"RowChanged", rowChanged, 0, false},
	{"Upgraded", upgraded, 0, true},
}

// storyCluster is the cluster of a story.
type storyCluster struct{ *world }

// ends is how long a story waits for a condition.
const ends = 2 * time.Minute

// TestStories runs each story with several seeds, which determine how long everything takes and
// which node leads.
func TestStories(t *testing.T) {
	for _, s := range stories {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			for seed := uint64(1); seed <= 10; seed++ {
				if trace, err := runStory(t, s, seed, NoBug); err != nil {
					t.Fatalf("seed %d: %v\n%s", seed, err, strings.Join(trace, "\n"))
				}
			}
		})
	}
}

// TestStoriesFindInjectedBugs checks that the stories find the bugs they are meant for.
func TestStoriesFindInjectedBugs(t *testing.T) {
	for _, c := range []struct {
		story string
		bug   InjectedBug
	}{
		{"DaemonFrozen", FenceThatDoesNothing}, {"Partition", FenceThatDoesNothing},
		{"ClockOff", PlannerMovesOnSuspicion}, {"OneWay", NobodyNamesTheLeader},
		{"StoreLost", LostStoreVotes}, {"RowChanged", DifferenceUnseen},
		{"Upgraded", LevelFromTheStart}, {"Upgraded", LevelUnasked},
	} {
		bug := c.bug
		t.Run(fmt.Sprint(c.story, " ", bug), func(t *testing.T) {
			t.Parallel()
			s := stories[slices.IndexFunc(stories, func(s story) bool { return s.name == c.story })]
			for seed := uint64(1); seed <= 10; seed++ {
				if _, err := runStory(t, s, seed, bug); err != nil {
					t.Logf("seed %d: %v", seed, err)
					return
				}
			}
			t.Errorf("story %s found injected bug %d in none of 10 seeds", c.story, bug)
		})
	}
}

// runStory runs a story and returns the trace and the first failure.
func runStory(t *testing.T, s story, seed uint64, bug InjectedBug) (trace []string, err error) {
	dir, err := os.MkdirTemp("", "story-") // not t.TempDir, which would keep the files of every seed
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	w := &storyCluster{newWorld(Options{Seed: seed, Dir: dir, Nodes: 3, Storm: time.Hour, Shared: true, Bug: bug, Skip: func(int) bool { return true }})}
	w.build()
	defer w.close()
	for i, m := range w.nodes {
		m.skew = []time.Duration{s.skew, -s.skew, 0}[i]
		if m.release = state.Level; s.old {
			m.release = oldLevel
		}
	}
	w.furnish()
	s.run(w)
	if w.err == nil {
		w.rest()
	}
	return w.trace, w.err
}

// furnish creates three instances that can run anywhere, and waits until they run.
func (w *storyCluster) furnish() {
	w.until("the nodes are Ready", func() bool { return w.raft.leads(w.raft.leader) && len(w.inState(api.NodeReady)) == 3 })
	w.operator(w.acts.begin)
	for range 3 {
		w.create(api.InstanceSpec{StoragePool: api.PoolShared})
	}
}

// create creates an instance and waits until it runs.
func (w *storyCluster) create(s api.InstanceSpec) api.InstanceID {
	s.Flavor, s.Image, s.Power = "flv-1", "img-1", api.PowerRunning
	w.operator(func() { w.acts.create(s) })
	id := api.InstanceID(fmt.Sprintf("ins-%02d", w.acts.instances))
	w.until(string(id)+" runs", func() bool {
		return w.at(id) != nil && w.truth.Instances[string(id)].Status.Phase == api.InstanceRunning
	})
	return id
}

// operator runs an operator's action and waits until it is done.
func (w *storyCluster) operator(f func()) {
	done := false
	w.acts.spawn("operator", func() { f(); done = true })
	w.until("the operator is answered", func() bool { return done })
}

// until lets time pass until ok returns true, and fails the story if that takes longer than
// ends.
func (w *storyCluster) until(what string, ok func() bool) time.Duration {
	began := w.now
	for w.err == nil && !ok() {
		if w.now-began > ends {
			w.failf("not reached within %[2]v: %[1]s", what, ends)
		}
		w.run(w.now + 50*time.Millisecond)
	}
	return w.now - began
}

// pass lets time pass.
func (w *storyCluster) pass(d time.Duration) { w.run(w.now + d) }

// expect fails the story unless ok.
func (w *storyCluster) expect(ok bool, format string, args ...any) {
	if !ok {
		w.failf(format, args...)
	}
}

func (w *storyCluster) inState(s api.NodeState) (list []string) {
	for _, id := range slices.Sorted(maps.Keys(w.truth.Nodes)) {
		if w.truth.Nodes[id].Assignment.State == s {
			list = append(list, id)
		}
	}
	return list
}

// at returns the machine that an instance runs on, or nil.
func (w *storyCluster) at(id api.InstanceID) *machine {
	for _, m := range w.nodes {
		if m.executes(id) {
			return m
		}
	}
	return nil
}

// elsewhere waits until the instances run on other machines than m, according to the store as
// well.
func (w *storyCluster) elsewhere(m *machine, ids ...api.InstanceID) time.Duration {
	return w.until(fmt.Sprintf("%v run on other nodes than %s", ids, m.id), func() bool {
		for _, id := range ids {
			at := w.at(id)
			if at == nil || at == m || w.truth.Instances[string(id)].Assignment.Node != at.id {
				return false
			}
		}
		return true
	})
}

// vmRun is one run of an instance: its machine and its start.
type vmRun struct {
	at    *machine
	since time.Duration
}

// runsNow returns the present runs, without those on the machine without.
func (w *storyCluster) runsNow(without *machine) map[api.InstanceID]vmRun {
	all := map[api.InstanceID]vmRun{}
	for _, m := range w.nodes {
		for id, since := range m.ran {
			if m != without {
				all[id] = vmRun{m, since}
			}
		}
	}
	return all
}

// unchanged expects the runs to continue.
func (w *storyCluster) unchanged(before map[api.InstanceID]vmRun) {
	now := w.runsNow(nil)
	for id, r := range before {
		w.expect(now[id] == r, "%s ran on %s since %v, and that run has ended", id, r.at.id, r.since)
	}
}

// undisturbed expects that all runs continue and that no instance was killed and no node reset
// or declared lost.
func (w *storyCluster) undisturbed(before map[api.InstanceID]vmRun) {
	w.unchanged(before)
	s := w.stats
	w.expect(s.Lost == 0 && s.Kills == 0 && s.Resets == 0, "%d nodes were lost, %d instances killed, %d nodes reset, want none", s.Lost, s.Kills, s.Resets)
}

// leads waits for a leader among the machines.
func (w *storyCluster) leads(not ...*machine) *machine {
	w.until("a leader", func() bool { return w.raft.leads(w.raft.leader) && !slices.Contains(not, w.raft.leader) })
	return w.raft.leader
}

// victim returns a machine that runs an instance of furnish, and the instances there. With
// leader it is the leader.
func (w *storyCluster) victim(leader bool) (m *machine, ids []api.InstanceID) {
	if leader {
		m = w.leads()
	} else {
		m = w.nodes[(w.leads().n)%3] // the next one
	}
	if len(m.ran) == 0 { // create one there
		for _, o := range w.nodes {
			w.operator(func() { w.acts.node(string(o.id), func(s *api.NodeSpec) { s.Unschedulable = o != m }) })
		}
		w.create(api.InstanceSpec{StoragePool: api.PoolShared})
		for _, o := range w.nodes {
			w.operator(func() { w.acts.node(string(o.id), func(s *api.NodeSpec) { s.Unschedulable = false }) })
		}
	}
	return m, sortedIDs(m.ran)
}

// own creates an instance whose disk is stored only on the machine.
func (w *storyCluster) own(m *machine) api.InstanceID {
	for _, o := range w.nodes {
		w.operator(func() { w.acts.node(string(o.id), func(s *api.NodeSpec) { s.Unschedulable = o != m }) })
	}
	id := w.create(api.InstanceSpec{StoragePool: api.PoolLocal})
	for _, o := range w.nodes {
		w.operator(func() { w.acts.node(string(o.id), func(s *api.NodeSpec) { s.Unschedulable = false }) })
	}
	return id
}

// leaderKilled: the leader's basaltd is killed repeatedly, without an effect on instances.
func leaderKilled(w *storyCluster) {
	before := w.runsNow(nil)
	for range 5 {
		m := w.leads()
		m.proc.kill()
		w.until("its basaltd is back, and every lease is renewed", func() bool {
			for _, m := range w.nodes {
				if !m.alive() || m.fence.until < m.clock().Add(lease.TTL-lease.Every) {
					return false
				}
			}
			return true
		})
	}
	w.pass(lease.TTL)
	w.undisturbed(before)
}

// nodeFrozen: a whole node is paused, and its watchdog resets it before its instances run
// elsewhere. It does not come back.
func nodeFrozen(w *storyCluster) {
	m, ids := w.victim(false)
	others := w.runsNow(m)
	m.freeze(time.Hour)
	took := w.until("its watchdog resets it", func() bool { return w.stats.Resets == 1 })
	w.expect(took <= lease.Watchdog+2*time.Second, "%s was reset after %v, want at most %v", m.id, took, lease.Watchdog+2*time.Second)
	m.off("it does not boot")
	took += w.elsewhere(m, ids...)
	w.expect(took < 45*time.Second, "instances run elsewhere after %v, want less than 45s", took)
	w.unchanged(others)
}

// daemonFrozen: basaltd is stopped. When the lease expires, basalt-fence kills the movable
// instances; the others continue to run.
func daemonFrozen(w *storyCluster) {
	m, ids := w.victim(false)
	own := w.own(m)
	before := map[api.InstanceID]vmRun{own: {m, m.ran[own]}}
	others := w.runsNow(m)
	m.proc.freeze(time.Hour)
	took := w.until("basalt-fence kills", func() bool { return w.stats.Kills == len(ids) })
	w.expect(took <= lease.TTL+time.Second, "instances were killed after %v, want at most %v", took, lease.TTL+time.Second)
	w.elsewhere(m, ids...)
	w.unchanged(before)
	w.unchanged(others)
	w.expect(w.stats.Resets == 0, "%d nodes were reset, want none", w.stats.Resets)
	m.proc.pause = false
	m.proc.thaw()
	w.until("it is Ready again", func() bool { return len(w.inState(api.NodeReady)) == 3 })
	w.unchanged(before)
}

// partition: the leader loses both cables. Another node becomes the leader, the instances of
// the majority continue to run, and those of the minority are killed and run elsewhere.
func partition(w *storyCluster) {
	m, ids := w.victim(true)
	others := w.runsNow(m)
	began := w.now
	w.cutWhere(time.Hour, func(l link) bool { return l.from == m.n || l.to == m.n })
	w.leads(m)
	w.until("the minority's instances are killed", func() bool { return len(m.ran) == 0 })
	w.expect(w.now-began <= lease.TTL+time.Second, "instances were killed after %v, want at most %v", w.now-began, lease.TTL+time.Second)
	w.elsewhere(m, ids...)
	w.expect(w.now-began < 45*time.Second, "instances run elsewhere after %v, want less than 45s", w.now-began)
	w.unchanged(others)
	w.expect(w.stats.Lost == 1 && w.stats.Kills == len(ids), "%d nodes were lost and %d instances killed, want 1 and %d", w.stats.Lost, w.stats.Kills, len(ids))
}

// oneOfTwoPaths: one cable fails, on each node in turn, without an effect on instances.
func oneOfTwoPaths(w *storyCluster) {
	before := w.runsNow(nil)
	for _, m := range w.nodes {
		w.cutWhere(12*time.Second, func(l link) bool { return l.path == m.n%paths && (l.from == m.n || l.to == m.n) })
		w.pass(13 * time.Second)
		w.undisturbed(before)
	}
}

// oneWay: a node does not receive from the leader, then the leader does not receive from the
// node. Its lease is renewed by way of the third.
func oneWay(w *storyCluster) {
	before := w.runsNow(nil)
	for _, deaf := range []bool{false, true} {
		l := w.leads()
		m := w.nodes[l.n%3]
		from, to := l, m
		if deaf {
			from, to = m, l
		}
		w.cutWhere(20*time.Second, func(k link) bool { return k.from == from.n && k.to == to.n })
		w.pass(21 * time.Second)
		w.undisturbed(before)
	}
}

// packetLoss: a quarter of all messages is lost. Only the invariants are guaranteed, and that
// the cluster recovers afterwards.
func packetLoss(w *storyCluster) {
	w.net.loss, w.net.slow = 0.25, 100*time.Millisecond
	w.pass(30 * time.Second)
	w.net.loss, w.net.slow = 0, 0
	w.until("all run and are Ready", func() bool {
		return len(w.inState(api.NodeReady)) == 3 && w.at("ins-01") != nil && w.at("ins-02") != nil && w.at("ins-03") != nil
	})
}

// clockOff: the wall clocks of two nodes are wrong, and the leader has to judge whether another
// node is dead: neither earlier nor later than with correct clocks.
func clockOff(w *storyCluster) {
	before := w.runsNow(nil)
	w.pass(15 * time.Second)
	w.undisturbed(before)
	m, ids := w.victim(false)
	others := w.runsNow(m)
	began := w.now
	m.off("the power is cut")
	w.until("it is lost", func() bool { return w.stats.Lost == 1 })
	took := w.now - began
	w.expect(took > lease.Dead-lease.Every-time.Second && took < lease.Dead+lease.Silence, "%s was declared lost after %v, want between %v and %v", m.id, took, lease.Dead-lease.Every-time.Second, lease.Dead+lease.Silence)
	w.elsewhere(m, ids...)
	w.unchanged(others)
}

// drain: a node is drained; its instances are live-migrated.
// drainStopped stops instances whose disks are in pools of one node, and drains that node:
// they arrive with their content, although basaltd of either node is killed meanwhile.
func drainStopped(w *storyCluster) {
	for range 3 {
		w.create(api.InstanceSpec{StoragePool: api.PoolLocal})
	}
	var m *machine
	var ids []string
	for _, id := range slices.Sorted(maps.Keys(w.truth.Instances)) {
		in := w.truth.Instances[id]
		if in.Spec.StoragePool != api.PoolLocal {
			continue
		}
		if ids = append(ids, id); m == nil {
			m = w.machine(in.Assignment.Node)
		}
		w.operator(func() {
			w.acts.instance(id, func(_ api.Instance, s *api.InstanceSpec) bool { s.Power = api.PowerStopped; return true })
		})
	}
	for _, id := range ids {
		w.until(id+" is stopped", func() bool { return api.AtRest(w.truth.Instances[id]) })
	}
	w.operator(func() { w.acts.node(string(m.id), func(s *api.NodeSpec) { s.Drain = true }) })
	w.until("a copy has begun", func() bool { return w.stats.Copies > 0 })
	for _, k := range []*machine{m, w.nodes[int(w.between(0, 3))]} {
		if k.proc != nil {
			k.proc.kill()
		}
	}
	for _, id := range ids {
		w.until(id+" has left", func() bool { a := w.truth.Instances[id].Assignment; return a.Node != m.id && a.MigrateTo == "" })
		in := w.truth.Instances[id]
		w.expect(in.Assignment.Node != m.id && api.AtRest(in), "%s is on %s, %s; want it stopped on another node than %s", id, in.Assignment.Node, in.Status.Phase, m.id)
		w.operator(func() {
			w.acts.instance(id, func(_ api.Instance, s *api.InstanceSpec) bool { s.Power = api.PowerRunning; return true })
		})
		w.until(id+" runs with its content", func() bool { return w.truth.Instances[id].Status.Phase == api.InstanceRunning })
	}
}

func drain(w *storyCluster) {
	m, ids := w.victim(false)
	others := w.runsNow(m)
	w.operator(func() { w.acts.node(string(m.id), func(s *api.NodeSpec) { s.Drain = true }) })
	w.until("it is empty", func() bool { return len(w.inState(api.NodeDrained)) == 1 && len(m.ran) == 0 })
	w.elsewhere(m, ids...)
	w.expect(w.stats.Moved == len(ids) && w.stats.Kills == 0, "%d of %d instances migrated and %d were killed, want all and none", w.stats.Moved, len(ids), w.stats.Kills)
	w.unchanged(others)
	w.operator(func() { w.acts.node(string(m.id), func(s *api.NodeSpec) { s.Drain = false }) })
	w.until("it is Ready again", func() bool { return len(w.inState(api.NodeReady)) == 3 })
}
