package sshgateway

import "sync"

// counter counts what is open, by name, up to a limit for each and for all.
type counter struct {
	each, all int

	mu    sync.Mutex // guards what follows
	open  map[string]int
	total int
}

func newCounter(each, all int) *counter {
	return &counter{each: each, all: all, open: map[string]int{}}
}

// enter counts one more, until leave is called; false: that is too many.
func (c *counter) enter(name string) (leave func(), ok bool) {
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
