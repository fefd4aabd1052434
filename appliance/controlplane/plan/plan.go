package plan

import (
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
)

// Next returns the commands that should be committed now: placements, and the removal
// of deleted objects that no node holds. Each command expects the revision it was
// planned on, so a plan based on an outdated state changes nothing. Called again after
// its commands were applied, it returns nothing. Groups returns which of them belong
// together.
func Next(s *State, now time.Time) []api.Command {
	u := usage(s)
	var cmds []api.Command
	cmds = append(cmds, planNodes(s, u, now)...)
	for _, img := range objects.Sorted(s.Images) {
		cmds = append(cmds, planImage(s, img, now)...)
	}
	ips := &u.ips
	for _, n := range objects.Sorted(s.Networks) {
		cmds = append(cmds, planNetwork(ips, n)...)
	}
	for _, in := range urgent(s) {
		cmds = append(cmds, u.withVolumes(in, planInstance(s, u, in, now))...)
	}
	u.dropReservations()
	for _, m := range objects.Sorted(s.Migrations) {
		if m.Spec.Volume != "" {
			cmds = append(cmds, planVolumeMigration(s, u, m, now)...)
			continue
		}
		cmds = append(cmds, u.withVolumes(s.Instances[string(m.Spec.Instance)], planMigration(s, u, m, now))...)
	}
	cmds = append(cmds, planDrains(s, u, now)...)
	cmds = append(cmds, planHolds(s, cmds)...)
	for _, v := range objects.Sorted(s.Volumes) {
		if !u.gone[v.Meta.ID] {
			cmds = append(cmds, planVolume(s, u, v, now)...)
		}
	}
	for _, l := range objects.Sorted(s.LoadBalancers) {
		cmds = append(cmds, planLoadBalancer(ips, l)...)
	}
	cmds = append(cmds, planRouters(ips)...)
	for _, f := range objects.Sorted(s.FloatingIPs) {
		cmds = append(cmds, planFloatingIP(ips, f)...)
	}
	for _, x := range objects.Sorted(s.Snapshots) {
		cmds = append(cmds, planSnapshot(s, x, now)...)
	}
	for _, b := range objects.Sorted(s.Backups) {
		cmds = append(cmds, planBackup(s, b, now)...)
	}
	for _, c := range objects.Sorted(s.Ceph) {
		cmds = append(cmds, planCeph(s, c)...)
	}
	for _, d := range objects.Sorted(s.Disks) {
		cmds = append(cmds, planDisk(s, d)...)
	}
	return append(cmds, planLifetimes(s, cmds, now)...)
}
