package guests

import (
	"time"

	"github.com/basalt-gpu/basalt/hypervisor"
)

// pressEvery is how often a power button is pressed: a guest that is still booting does
// not hear it, and one that is shutting down takes no notice of it.
const pressEvery = 10 * time.Second

// act is what is done to a machine.
type act string

const (
	actNone  act = ""
	actPress act = "press the power button"
	actPull  act = "switch off"
)

// next decides about one machine, whose button was last pressed at pressed (zero:
// never), at a time since the shutdown began.
func next(state hypervisor.State, pressed, since, grace time.Duration) act {
	switch {
	case state == hypervisor.Incoming, state == hypervisor.Outgoing:
		return actNone // in the last step of a move: another node may have it already
	case !state.Active():
		return actNone
	case since >= grace:
		return actPull
	case state == hypervisor.Paused: // its guest hears nothing, but may go on
		return actNone
	case pressed < 0 || since-pressed >= pressEvery:
		return actPress
	}
	return actNone
}
