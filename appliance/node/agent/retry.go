package agent

import (
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// What fails is tried again by its status (api.Retry), which outlives this
// process: when it says so, and not at every event. The status and its revision
// change once a try at most, and the phase stays Failed until a try succeeds, so
// that one cause raises one event.
var (
	// retryHere is for what this node does by itself.
	retryHere = api.Backoff{First: time.Second, Last: 30 * time.Second}
	// retryThere is for what somebody else's server has to answer.
	retryThere = api.Backoff{First: 5 * time.Second, Last: 15 * time.Minute}
)

// hold reports whether the next try has to wait, and how long; 0: until the object
// is changed.
func (co *core) hold(r *api.Retry, of string, b api.Backoff) (wait time.Duration, held bool) {
	wait, never := r.Left(of, co.o.Now(), b)
	return wait, never || wait > 0
}
