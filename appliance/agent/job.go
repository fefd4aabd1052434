package agent

import (
	"context"
	"sync"
)

// maxJobs run at once: transfers share the node's network.
const maxJobs = 2

// jobs are what takes long and must not hold up other keys: transfers of
// images. There is one of a name at a time; its end kicks a key, and a failure
// is that reconcile's, so that it is tried again with growing waits.
type jobs struct {
	a *Agent

	mu      sync.Mutex
	wg      sync.WaitGroup
	running map[string]bool
	failed  map[string]error
}

func (j *jobs) init(a *Agent) {
	j.a, j.running, j.failed = a, map[string]bool{}, map[string]error{}
}

func (j *jobs) wait() { j.wg.Wait() }

// start f unless it runs or there is no room, and return the error of the last
// time, once.
func (j *jobs) start(ctx context.Context, name, kick string, f func(context.Context) error) error {
	j.mu.Lock()
	if err := j.failed[name]; err != nil {
		delete(j.failed, name)
		j.mu.Unlock()
		return err
	}
	if j.running[name] || len(j.running) >= maxJobs {
		j.mu.Unlock()
		return nil
	}
	j.running[name] = true
	j.wg.Add(1)
	j.mu.Unlock()
	j.a.o.Go(func() {
		defer j.wg.Done()
		err := f(ctx)
		j.mu.Lock()
		delete(j.running, name)
		if err != nil {
			j.failed[name] = err
		}
		j.mu.Unlock()
		if ctx.Err() == nil {
			j.a.kick(kick)
		}
	})
	return nil
}
