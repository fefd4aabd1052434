package plan

import (
	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/placement"
)

// shortage is what the nodes that have no room for an instance have too little of.
type shortage struct {
	missing map[api.CauseMissing]bool
	noGPU   bool // some have no GPU of the pool
}

func (s *shortage) add(f placement.Fit) {
	switch {
	case f.NoGPU:
		s.noGPU = true
	case f.Missing != "":
		if s.missing == nil {
			s.missing = map[api.CauseMissing]bool{}
		}
		s.missing[f.Missing] = true
	}
}

// cause returns the cause for the instance's user, to whom the nodes are one: a resource is
// named if all nodes that could run the instance lack the same one.
func (s *shortage) cause(w placement.Request) api.Cause {
	c := api.Cause{Code: api.CauseNoRoom}
	for m := range s.missing {
		c.Missing = m
	}
	switch {
	case len(s.missing) > 1:
		c.Missing = ""
	case len(s.missing) == 0 && s.noGPU:
		c.Missing = api.MissingGPU
	case len(s.missing) == 0: // for other reasons, which more capacity would not change
		return api.Cause{Code: api.CauseNodeUnavailable}
	}
	switch c.Missing {
	case api.MissingGPU:
		c.Pool, c.Model, c.Bytes, c.Count = w.Pool, w.Model, w.VRAM, w.Share
	case api.MissingCPUs:
		c.Count = w.VCPUs
	case api.MissingMemory:
		c.Bytes = w.Memory
	case api.MissingStorage:
		c.Bytes = w.Disk
	}
	return c
}
