// Package limit counts what is open at a gateway.
package limit

import "sync"

// Counter counts what is open, by name, up to a limit for each name and for all. Its
// methods may be called concurrently.
type Counter struct {
	each, all int

	mu    sync.Mutex // guards what follows
	open  map[string]int
	total int
}

// NewCounter returns a counter of nothing.
func NewCounter(each, all int) *Counter {
	return &Counter{each: each, all: all, open: map[string]int{}}
}

// Enter counts one more, until leave is called, once or more; false: that is too many.
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
