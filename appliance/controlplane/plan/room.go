package plan

import (
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// PendingReason returns why an instance that does not exist yet would be pending, or nothing if
// it would be placed now. It ignores whether the image is ready.
func PendingReason(s *State, in api.Instance, now time.Time) string {
	u := usage(s)
	if !samePorts(in) {
		if _, why := u.ips.ports(in); why != "" {
			return why
		}
	}
	f, ok := s.Flavors[string(in.Spec.Flavor)]
	if !ok {
		return "flavor " + string(in.Spec.Flavor) + " does not exist any more"
	}
	u.reserveHeads(s, "", now)
	return placeBehind(s, u, in, wants(f, in), now).Reason
}
