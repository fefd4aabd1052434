package plan

import (
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// PendingReason returns why an instance that does not exist yet would be pending, or nothing if
// it would be placed now. It ignores whether the image is ready.
func PendingReason(s *State, in api.Instance, now time.Time) api.Reason {
	u := usage(s)
	if !samePorts(in) {
		if _, why := u.ips.ports(in); why.Text != "" {
			return why
		}
	}
	f, ok := s.Flavors[string(in.Spec.Flavor)]
	if !ok {
		return flavorGone(in)
	}
	u.reserveHeads(s, "", now)
	return reasonOf(placeBehind(s, u, in, wants(f, in), now))
}

// reasonOf returns the reason in an assignment.
func reasonOf(a api.InstanceAssignment) api.Reason { return api.Reason{Text: a.Reason, Cause: a.Cause} }
