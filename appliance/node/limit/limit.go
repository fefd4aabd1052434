// Package limit limits how many connections or sessions are open at a gateway.
package limit

import "sync"

// Counter counts what is open, by name, up to a limit for each name and for all
// together. It may be used concurrently.
type Counter struct {
	each, all int

	mu    sync.Mutex // guards the following fields
	open  map[string]int
	total int
}

// NewCounter returns a counter with a limit for each name and one for all together.
func NewCounter(each, all int) *Counter {
	return &Counter{each: each, all: all, open: map[string]int{}}
}

// Enter counts one more until leave is called; later calls of leave do nothing. It
// is not ok if a limit is reached.
func (c *Counter) Enter(name string) (leave func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[name] >= c.each || c.total >= c.all {
		return nil, false
	}
	c.open[name]++
	c.total++
	return sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.total--
		if c.open[name]--; c.open[name] == 0 {
			delete(c.open, name)
		}
	}), true
}
