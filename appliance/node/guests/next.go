package guests

import (
	"time"

	"github.com/basalt-gpu/basalt/hypervisor"
)

// pressEvery is how often a power button is pressed: a booting guest does not react
// to it, and a guest that is shutting down ignores it.
const pressEvery = 10 * time.Second

// act is an action on a machine.
type act string

const (
	actNone  act = ""
	actPress act = "press the power button"
	actPull  act = "switch off"
)

// next decides the action for one machine at a time since the shutdown began.
// pressed is when its button was last pressed, negative if never.
func next(state hypervisor.State, pressed, since, grace time.Duration) act {
	switch {
	case state == hypervisor.Incoming, state == hypervisor.Outgoing:
		return actNone // in the last step of a migration: another node may have it already
	case !state.Active():
		return actNone
	case since >= grace:
		return actPull
	case state == hypervisor.Paused: // its guest cannot react now, but may be resumed
		return actNone
	case pressed < 0 || since-pressed >= pressEvery:
		return actPress
	}
	return actNone
}
