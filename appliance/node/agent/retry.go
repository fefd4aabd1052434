package agent

import (
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Failures are retried by the status (api.Retry), which outlives this process: at
// the time that it gives, and not at every event. The status and its revision
// change at most once per attempt, and the phase stays Failed until an attempt
// succeeds, so that one cause raises one event.
var (
	// retryHere is for steps that depend on this node only.
	retryHere = api.Backoff{First: time.Second, Last: 30 * time.Second}
	// retryThere is for steps that depend on another server.
	retryThere = api.Backoff{First: 5 * time.Second, Last: 15 * time.Minute}
)

// hold reports whether the next attempt has to wait, and for how long; 0 means
// until the object is changed.
func (co *core) hold(r *api.Retry, of string, b api.Backoff) (wait time.Duration, held bool) {
	wait, never := r.Left(of, co.o.Now(), b)
	return wait, never || wait > 0
}

// next returns after how long an object whose attempt has just failed is reconciled again.
// It is never 0, which means not at all: the attempt is due already if writing its status
// took longer than the delay.
func (co *core) next(r *api.Retry, of string, b api.Backoff) time.Duration {
	wait, _ := co.hold(r, of, b)
	return max(wait, time.Millisecond)
}
