package agent

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/basalt-gpu/basalt/sds/backup"
)

// How many at once. A backup reads a whole disk, and one a node is what disks
// and network bear beside the machines; somebody waits for a restore.
const (
	maxBackups  = 1
	maxRestores = 2
	maxTargets  = 4 // that are asked whether they answer
)

// copies is work that takes minutes to hours, by the key that it is for: it
// can be looked at, and cancelled, and what became of it is kept until
// somebody has dealt with it.
//
//	nothing ─begin─► running ─► ended ─take─► nothing
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

	// What follows is guarded by copies.mu.
	unwanted bool
	ended    bool
	result   backup.Result
	err      error
}

// copySeen is a copy as it was at a moment; zero: there is none.
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

// begin f for the key, which is kicked when it has ended; false: there is no
// room now, or something is under way for the key.
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
		c.core.kick(key)
	})
	return true
}

// full reports whether there is no room for another.
func (c *copies) full() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running() >= c.most
}

// running is how many run; the lock is held.
func (c *copies) running() (n int) {
	for _, x := range c.all {
		if !x.ended {
			n++
		}
	}
	return n
}

// look at what there is for the key.
func (c *copies) look(key string) copySeen {
	c.mu.Lock()
	defer c.mu.Unlock()
	x := c.all[key]
	if x == nil {
		return copySeen{}
	}
	return copySeen{what: x.what, running: !x.ended, ended: x.ended, result: x.result, err: x.err,
		progress: backup.Progress{DoneBytes: x.done.Load(), TotalBytes: x.total.Load()}}
}

// take what has ended: it was dealt with.
func (c *copies) take(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if x := c.all[key]; x != nil && x.ended {
		delete(c.all, key)
	}
}

// cancel what there is for the key, and report whether it still runs.
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
