package plan

import (
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// NodeTimeout is how long after its last report a node still takes new work,
// where nobody watches (State.Health is nil).
const NodeTimeout = 45 * time.Second

// Next is what should be committed now: placements, and the ends of deleted
// objects that no node holds. Each command expects the revision it was planned
// on, so a plan made on old news changes nothing. Called again after its
// commands were applied, it returns nothing. Groups says what of it belongs
// together.
func Next(s *State, now time.Time) []api.Command {
	u := usage(s)
	var cmds []api.Command
	cmds = append(cmds, planNodes(s, u, now)...)
	for _, img := range sorted(s.Images) {
		cmds = append(cmds, planImage(s, img, now)...)
	}
	ips := &u.ips
	for _, n := range sorted(s.Networks) {
		cmds = append(cmds, planNetwork(ips, n)...)
	}
	for _, in := range urgent(s) {
		cmds = append(cmds, u.together(in, planInstance(s, u, in, now))...)
	}
	for _, m := range sorted(s.Migrations) {
		cmds = append(cmds, u.together(s.Instances[string(m.Spec.Instance)], planMigration(s, u, m, now))...)
	}
	cmds = append(cmds, planDrains(s, u, now)...)
	cmds = append(cmds, planHolds(s, cmds)...)
	for _, v := range sorted(s.Volumes) {
		if !u.gone[v.Meta.ID] {
			cmds = append(cmds, planVolume(s, v, now)...)
		}
	}
	for _, l := range sorted(s.LoadBalancers) {
		cmds = append(cmds, planLoadBalancer(ips, l)...)
	}
	cmds = append(cmds, planRouters(ips)...)
	for _, f := range sorted(s.FloatingIPs) {
		cmds = append(cmds, planFloatingIP(ips, f)...)
	}
	for _, x := range sorted(s.Snapshots) {
		cmds = append(cmds, planSnapshot(s, x, now)...)
	}
	for _, b := range sorted(s.Backups) {
		cmds = append(cmds, planBackup(s, b, now)...)
	}
	for _, c := range sorted(s.Ceph) {
		cmds = append(cmds, planCeph(s, c)...)
	}
	for _, d := range sorted(s.Disks) {
		cmds = append(cmds, planDisk(s, d)...)
	}
	return append(cmds, planLifetimes(s, cmds, now)...)
}
