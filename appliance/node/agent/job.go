package agent

import (
	"context"
	"sync"
)

// maxJobs is how many jobs run at once: transfers share the node's network.
const maxJobs = 2

// Limits of imports, which wait for servers that customers choose. They are apart
// from other jobs: a slow or silent server delays imports of its organization and
// nothing else.
const (
	maxImports   = 32 // of all organizations
	maxImportsOf = 2  // of one
)

// jobs runs long tasks that must not delay other keys: transfers of images. One job
// of a name runs at a time. When it ends a key is triggered, and its error is returned
// to that key's next reconcile, so that it is tried again with growing delays.
type jobs struct {
	c *core

	mu      sync.Mutex
	wg      sync.WaitGroup
	running map[string]job
	failed  map[string]error
}

// job is a running job.
type job struct {
	imports      bool
	organization string // whose import it is
	cancel       context.CancelFunc
}

func newJobs(c *core) *jobs {
	return &jobs{c: c, running: map[string]job{}, failed: map[string]error{}}
}

// spawn runs f concurrently; wait waits for it.
func (j *jobs) spawn(f func()) {
	j.wg.Add(1)
	j.c.o.Go(func() {
		defer j.wg.Done()
		f()
	})
}

// wait waits until all jobs have ended.
func (j *jobs) wait() { j.wg.Wait() }

// start starts f unless a job of the name runs or the limit is reached. It returns
// the error of the last job of the name, once.
func (j *jobs) start(ctx context.Context, name, key string, f func(context.Context) error) error {
	return j.begin(ctx, job{}, name, key, f)
}

// startImport is start for an import of an organization; empty means the cluster's
// own.
func (j *jobs) startImport(ctx context.Context, organization, name, key string, f func(context.Context) error) error {
	return j.begin(ctx, job{imports: true, organization: organization}, name, key, f)
}

func (j *jobs) begin(ctx context.Context, next job, name, key string, f func(context.Context) error) error {
	j.mu.Lock()
	if err := j.failed[name]; err != nil {
		delete(j.failed, name)
		j.mu.Unlock()
		return err
	}
	if _, runs := j.running[name]; runs || !j.room(next) {
		j.mu.Unlock()
		return nil
	}
	own, cancel := context.WithCancel(ctx)
	next.cancel = cancel
	j.running[name] = next
	j.mu.Unlock()
	j.spawn(func() {
		err := f(own)
		stopped := own.Err() != nil && ctx.Err() == nil
		cancel()
		j.mu.Lock()
		delete(j.running, name)
		if err != nil && !stopped {
			j.failed[name] = err
		}
		j.mu.Unlock()
		if ctx.Err() == nil {
			j.c.trigger(key)
		}
	})
	return nil
}

// room reports whether the limits allow another job. The caller holds mu.
func (j *jobs) room(next job) bool {
	all, same := 0, 0
	for _, r := range j.running {
		if r.imports == next.imports {
			all++
			if r.organization == next.organization {
				same++
			}
		}
	}
	if next.imports {
		return all < maxImports && same < maxImportsOf
	}
	return all < maxJobs
}

// stop cancels a job whose result is not needed any more, and reports whether it is
// still running: its key is triggered when it has ended.
func (j *jobs) stop(name string) (runs bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r, runs := j.running[name]
	if runs {
		r.cancel()
	}
	return runs
}
