package simulation

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

const (
	calmLook    = 10 * time.Second
	calmLimit   = 6 * time.Minute
	keepUnknown = 2 * time.Minute
	// sharedLimit is when unknown volumes in the shared pool must be deleted: they are swept
	// when they are ten minutes old and have been observed for keepUnknown, which is a week in
	// production.
	sharedLimit = 17 * time.Minute
)

// rest heals all faults and waits until the cluster has converged to what was requested.
func (w *world) rest() {
	w.heal()
	healed := w.now
	quiet := 0
	for w.err == nil {
		w.run(w.now + calmLook)
		wrong, slow := w.unmet()
		if len(wrong)+len(slow) == 0 {
			wrong = w.raft.unequal()
		}
		switch {
		case w.err != nil:
			return
		case len(wrong) > 0 && w.now-healed > calmLimit:
			w.failf("%s after everything was healed: %s", (w.now - healed).Round(time.Second), strings.Join(wrong, "; "))
			return
		case len(slow) > 0 && w.now-healed > sharedLimit:
			w.failf("%s after everything was healed: %s", (w.now - healed).Round(time.Second), strings.Join(slow, "; "))
			return
		case len(wrong)+len(slow) > 0:
			quiet = 0
		default:
			quiet++
		}
		if quiet == 3 {
			for _, s := range w.bill.overcharged() {
				w.failf("%s", s)
			}
			w.acknowledged()
			return
		}
	}
}

// acknowledged fails the run unless the store holds the outcome of every acknowledged request.
func (w *world) acknowledged() {
	whole := w.raft.other(nil)
	if whole == nil {
		w.failf("no node has a complete and unaltered store")
		return
	}
	for _, b := range slices.Sorted(keys(w.acts.acked)) {
		k := w.acts.acked[b]
		_, err := whole.store.Get(k.kind, k.id)
		if there := err == nil; there != (k.what == "created") {
			w.failf("%s %s was acknowledged as %s, and is not", k.kind, k.id, k.what)
		}
	}
}

// unmet returns the conditions that do not hold yet, and those of them that have the longer
// limit sharedLimit.
func (w *world) unmet() (wrong, slow []string) {
	add := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	for _, m := range w.nodes {
		n, ok := w.truth.Nodes[string(m.id)]
		switch s := n.Assignment.State; {
		case m.gone && ok:
			add("node %s was removed and still has a Node object", m.id)
		case m.gone:
		case n.Spec.Drain && (s == api.NodeDrained || s == api.NodeDraining && n.Assignment.Reason != ""):
		case s != api.NodeReady || n.Spec.Drain:
			add("node %s is %q, want Ready: %s", m.id, s, n.Assignment.Reason)
		}
	}
	for _, id := range slices.Sorted(keys(w.truth.Migrations)) {
		if m := w.truth.Migrations[id]; !m.Assignment.Phase.Ended() {
			add("%s of %s from %s to %s is %s, %s", id, m.Spec.Subject(), m.Assignment.Source, m.Assignment.Target, m.Assignment.Phase, m.Status.Phase)
		}
	}
	for _, id := range slices.Sorted(keys(w.truth.Instances)) {
		if why := w.wrongInstance(w.truth.Instances[id]); why != "" {
			add("%s: %s", id, why)
		}
	}
	for _, id := range slices.Sorted(keys(w.truth.Volumes)) {
		v := w.truth.Volumes[id]
		if v.Meta.DeletedAt != nil && !w.isGone(v.Assignment.Node) {
			add("%s is still being deleted on %s", id, v.Assignment.Node)
		}
		if why := w.lostVolume(v); why != "" {
			add("%s: %s", id, why)
		}
	}
	for _, m := range w.nodes {
		if !m.gone {
			wrong = append(wrong, w.orphans(m)...)
		}
	}
	volumes, err := w.shared.Volumes(forever)
	if err != nil {
		add("the shared pool: %v", err)
	}
	for _, v := range volumes {
		if _, ok := w.truth.Volumes[string(v.ID)]; !ok {
			slow = append(slow, fmt.Sprintf("volume %s is left in the shared pool and has no object", v.ID))
		}
	}
	return wrong, slow
}

// lostVolume returns why a data volume that was created is not where the store has it, with the
// content that was written to it last, or nothing.
func (w *world) lostVolume(v api.Volume) string {
	a := v.Assignment
	m := w.machine(a.Node)
	if v.Spec.Root || v.Meta.DeletedAt != nil || v.Status.Phase != api.VolumeReady || m == nil || m.gone {
		return ""
	}
	in := pool{Store: m.local, m: m, name: m.name()}
	if a.Pool == api.PoolShared {
		in = pool{Store: w.shared, m: m, name: api.PoolShared}
	}
	have, err := in.path(in.Store.Volume(forever, api.VolumeID(v.Meta.ID)))
	if err != nil {
		return fmt.Sprintf("is not in pool %s of %s: %v", a.Pool, m.id, err)
	}
	if is, want := w.disks.content[have.Source.Path], w.disks.data[v.Meta.ID]; is != want {
		return fmt.Sprintf("has generation %d in pool %s of %s, want %d", is, a.Pool, m.id, want)
	}
	return ""
}

func (w *world) isGone(id api.NodeID) bool {
	m := w.machine(id)
	return m != nil && m.gone
}

func (w *world) wrongInstance(in api.Instance) string {
	id := api.InstanceID(in.Meta.ID)
	a, st := in.Assignment, in.Status
	if in.Meta.DeletedAt != nil {
		return fmt.Sprintf("is still being deleted: node %q, %s %s", a.Node, st.Phase, st.Step)
	}
	if a.Node == "" {
		if m := w.room(in); m != "" {
			return fmt.Sprintf("has no node (%s), and would fit on %s", a.Reason, m)
		}
		return ""
	}
	m := w.machine(a.Node)
	if m.gone {
		if a.NodeLost && a.Reason != "" && !w.movable(id) {
			return ""
		}
		return "is on a node that was removed: " + a.Reason
	}
	state := m.domains[id]
	ended := false
	for _, c := range st.Conditions {
		ended = ended || c.Type == "Ended"
	}
	switch {
	case a.NodeLost:
		return "is still marked NodeLost although its node is back: " + a.Reason
	case a.Release, a.MigrateTo != "":
		return fmt.Sprintf("is still being moved: release %t, to %q; %s %s", a.Release, a.MigrateTo, st.Phase, st.Step)
	case in.Spec.Power == api.PowerStopped && st.Phase == api.InstanceStopped && !state.Active():
		return ""
	case in.Spec.Power == api.PowerStopped:
		return fmt.Sprintf("should be stopped, and is %s %s, %s", st.Phase, st.Step, state)
	case ended && !w.ended[id]:
		return fmt.Sprintf("is reported as ended, but its guest has not ended: %s %s", st.Phase, st.LastError)
	case ended:
		return ""
	case st.Phase != api.InstanceRunning || state != hypervisor.Running || st.Restarts != in.Spec.Restarts:
		return fmt.Sprintf("should run on %s, and is %s %s, %s: %s", a.Node, st.Phase, st.Step, state, st.LastError)
	}
	return ""
}

// room returns the node on which an instance without a node would fit, or "".
func (w *world) room(in api.Instance) string {
	f := w.truth.Flavors[string(in.Spec.Flavor)].Spec
	root := w.truth.Volumes[string(w.disks.roots[api.InstanceID(in.Meta.ID)])]
	pool := in.Spec.StoragePool
	if root.Assignment.Pool != "" {
		pool = root.Assignment.Pool
	}
	for _, m := range w.nodes {
		n, ok := w.truth.Nodes[string(m.id)]
		if !ok || m.gone || n.Assignment.State != api.NodeReady || n.Spec.Unschedulable || n.Spec.Drain || pool == api.PoolShared && m.shared == nil || !w.reaches(m, in) {
			continue
		}
		vcpus, memory, vram, share := m.vcpus, m.memory, int64(vramBytes), int64(100)
		for _, o := range w.truth.Instances {
			if o.Assignment.Node == m.id || o.Assignment.MigrateTo == m.id {
				vcpus -= o.Assignment.Vcpus
				memory -= o.Assignment.MemoryBytes + workers(o.Assignment.VgpuVramBytes > 0)
			}
			if o.Assignment.Node == m.id {
				vram -= o.Assignment.VgpuVramBytes
				share -= o.Assignment.VgpuSharePercent
			}
		}
		if g := in.Spec.Vgpu; f.Vcpus <= vcpus && f.MemoryBytes+workers(g != nil) <= memory && (g == nil || g.VramBytes <= vram && g.SharePercent <= share) {
			return string(m.id)
		}
	}
	return ""
}

// workers returns the memory in bytes that placement reserves for a vGPU's workers (decision
// 33).
func workers(vgpu bool) int64 {
	if vgpu {
		return 512 << 20
	}
	return 0
}

// reaches reports whether every data volume of the instance is accessible on the machine.
func (w *world) reaches(m *machine, in api.Instance) bool {
	for _, v := range w.truth.Volumes {
		if v.Spec.Root || v.Meta.DeletedAt != nil || string(v.Status.Attached) != in.Meta.ID && (v.Status.Attached != "" || string(v.Spec.Instance) != in.Meta.ID) {
			continue
		}
		if v.Assignment.Node == "" {
			if v.Spec.Pool == api.PoolShared && m.shared == nil {
				return false
			}
			continue
		}
		if v.Assignment.Pool == api.PoolShared && m.shared == nil || v.Assignment.Pool != api.PoolShared && v.Assignment.Node != m.id {
			return false
		}
	}
	return true
}

// orphans describes what is left on a machine that belongs to no instance or volume assigned to
// it.
func (w *world) orphans(m *machine) (out []string) {
	here := func(id api.InstanceID) bool { return w.truth.Instances[string(id)].Assignment.Node == m.id }
	for _, id := range sortedIDs(m.domains) {
		if !here(id) {
			out = append(out, fmt.Sprintf("a domain of %s is left on %s", id, m.id))
		}
	}
	for _, id := range sortedIDs(m.gpud.slices) {
		if !here(id) {
			out = append(out, fmt.Sprintf("a slice of %s is left on %s", id, m.id))
		}
	}
	volumes, _ := m.local.Volumes(forever)
	for _, v := range volumes {
		if w.truth.Volumes[string(v.ID)].Assignment.Node != m.id {
			out = append(out, fmt.Sprintf("%s is left in the local pool of %s", v.ID, m.id))
		}
	}
	for dir, suffix := range map[string]string{"instances": "", "usage": ".json"} {
		entries, _ := os.ReadDir(filepath.Join(m.dir("data"), dir))
		for _, e := range entries {
			id := strings.TrimSuffix(e.Name(), suffix)
			if !here(api.InstanceID(id)) && w.truth.Volumes[id].Assignment.Node != m.id {
				out = append(out, fmt.Sprintf("%s/%s is left on %s", dir, e.Name(), m.id))
			}
		}
	}
	slices.Sort(out)
	return out
}
