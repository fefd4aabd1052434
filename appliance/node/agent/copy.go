package agent

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/basalt-gpu/basalt/sds/backup"
)

// Limits of concurrent copies. A backup reads a whole disk, and disks and network
// bear one per node beside the machines; restores have more, as users wait for
// them.
const (
	maxBackups  = 1
	maxRestores = 2
	maxTargets  = 4 // targets queried at once
)

// copies runs tasks that take minutes to hours, by the key that each belongs to. A
// task can be observed and cancelled, and its result is kept until its reconciler
// has handled it.
//
//	nothing ─begin─► running ─► ended ─discard─► nothing
//	                    └─cancel─► (its end) ─► nothing
type copies struct {
	core *core
	most int

	mu  sync.Mutex
	wg  sync.WaitGroup
	all map[string]*copying
}

type copying struct {
	what   string
	cancel context.CancelFunc
	done   atomic.Int64 // bytes
	total  atomic.Int64

	// The following fields are guarded by copies.mu.
	unwanted bool
	ended    bool
	result   backup.Result
	err      error
}

// copySeen is the state of a copy at one moment; the zero value means that there is
// none.
type copySeen struct {
	what           string
	running, ended bool
	progress       backup.Progress
	result         backup.Result
	err            error
}

func newCopies(co *core, most int) *copies {
	return &copies{core: co, most: most, all: map[string]*copying{}}
}

func (c *copies) wait() { c.wg.Wait() }

// begin runs f for the key, which is triggered when f has ended. It returns false if
// the limit is reached or the key has a task already.
func (c *copies) begin(ctx context.Context, key, what string, f func(ctx context.Context, p func(backup.Progress)) (backup.Result, error)) bool {
	c.mu.Lock()
	if c.all[key] != nil || c.running() >= c.most {
		c.mu.Unlock()
		return false
	}
	ctx, cancel := context.WithCancel(ctx)
	x := &copying{what: what, cancel: cancel}
	c.all[key] = x
	c.wg.Add(1)
	c.mu.Unlock()
	c.core.o.Go(func() {
		defer c.wg.Done()
		defer cancel()
		result, err := f(ctx, func(p backup.Progress) {
			x.done.Store(p.DoneBytes)
			x.total.Store(p.TotalBytes)
		})
		c.mu.Lock()
		x.ended, x.result, x.err = true, result, err
		if x.unwanted {
			delete(c.all, key)
		}
		c.mu.Unlock()
		c.core.trigger(key)
	})
	return true
}

// full reports whether the limit is reached.
func (c *copies) full() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running() >= c.most
}

// running returns how many tasks run. The caller holds mu.
func (c *copies) running() (n int) {
	for _, x := range c.all {
		if !x.ended {
			n++
		}
	}
	return n
}

// state returns the state of the key's task.
func (c *copies) state(key string) copySeen {
	c.mu.Lock()
	defer c.mu.Unlock()
	x := c.all[key]
	if x == nil {
		return copySeen{}
	}
	return copySeen{what: x.what, running: !x.ended, ended: x.ended, result: x.result, err: x.err,
		progress: backup.Progress{DoneBytes: x.done.Load(), TotalBytes: x.total.Load()}}
}

// discard removes the task of the key if it has ended: its result was handled.
func (c *copies) discard(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if x := c.all[key]; x != nil && x.ended {
		delete(c.all, key)
	}
}

// cancel cancels the key's task, and reports whether it is still running.
func (c *copies) cancel(key string) (running bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	x := c.all[key]
	if x == nil {
		return false
	}
	if x.ended {
		delete(c.all, key)
		return false
	}
	x.unwanted = true
	x.cancel()
	return true
}
