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
// commands were applied, it returns nothing.
func Next(s *State, now time.Time) []api.Command {
	u := usage(s)
	var cmds []api.Command
	cmds = append(cmds, planNodes(s, now)...)
	for _, img := range sorted(s.Images) {
		cmds = append(cmds, planImage(s, img, now)...)
	}
	for _, in := range urgent(s) {
		cmds = append(cmds, planInstance(s, u, in, now)...)
	}
	for _, m := range sorted(s.Migrations) {
		cmds = append(cmds, planMigration(s, u, m, now)...)
	}
	cmds = append(cmds, planDrains(s, u, now)...)
	for _, v := range sorted(s.Volumes) {
		cmds = append(cmds, planVolume(s, v, now)...)
	}
	return cmds
}
