package ceph

import "sync"

// held are the names of disks that this process creates, and of what it holds
// for readers: they are not swept, whatever the logs contain. The zero value
// is ready to use.
type held struct {
	mu    sync.Mutex
	names map[string]bool
}

func (h *held) has(name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.names[name]
}

func (d *Driver) hold(name string) (held string, letGo func()) {
	h := &d.held
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.names == nil {
		h.names = map[string]bool{}
	}
	h.names[name] = true
	return name, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.names, name)
	}
}
