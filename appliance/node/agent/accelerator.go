package agent

import (
	"sync/atomic"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// accelerated is how machines run that are started from now on.
type accelerated struct {
	how hypervisor.Accelerator // empty: not known yet
	why error                  // it is not known
}

// acceleration is how this node's machines run.
type acceleration struct{ value atomic.Value } // accelerated

// set changes how machines run that are started from now on, and what
// the node's status says of it.
func (ac *acceleration) set(x hypervisor.Accelerator) { ac.value.Store(accelerated{how: x}) }

// unset records that no machine starts here now, and why. What runs goes on.
func (ac *acceleration) unset(why error) { ac.value.Store(accelerated{why: why}) }

func (ac *acceleration) how() hypervisor.Accelerator {
	return ac.value.Load().(accelerated).how
}

// ready returns why no machine can be started here whatever the
// hypervisor says, or nil.
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
