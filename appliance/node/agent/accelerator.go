package agent

import (
	"sync/atomic"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// accelerated is the accelerator that machines started from now on use.
type accelerated struct {
	how hypervisor.Accelerator // empty if not known yet
	why error                  // why the accelerator is not known
}

// acceleration holds the accelerator of this node's machines. It is safe for
// concurrent use.
type acceleration struct{ value atomic.Value } // accelerated

// set changes the accelerator of machines started from now on, and with it what the
// node's status reports.
func (ac *acceleration) set(x hypervisor.Accelerator) { ac.value.Store(accelerated{how: x}) }

// unset records that no machine can be started on this node now, and why. Running
// machines are not affected.
func (ac *acceleration) unset(why error) { ac.value.Store(accelerated{why: why}) }

func (ac *acceleration) how() hypervisor.Accelerator {
	return ac.value.Load().(accelerated).how
}

// ready returns the reason why no machine can be started on this node, or nil.
func (ac *acceleration) ready() error {
	x := ac.value.Load().(accelerated)
	switch {
	case x.why != nil:
		return x.why
	case x.how == "":
		return api.Errorf(api.CodeUnavailable, "hypervisor capabilities of this node are not known yet").WithHint("try again in a few minutes")
	}
	return nil
}
