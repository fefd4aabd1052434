package device

import (
	"maps"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// Attributes of streams. They have no effect: there is no second-level cache, there is
// one memory domain, and no thread waits in this process. Programs can read back the
// values that they have set.
//
// Source: CUDA driver API, CUlaunchAttributeID and CUsynchronizationPolicy.
const (
	attributeAccessPolicyWindow = 1
	attributeSyncPolicy         = 3
	attributePriority           = 8

	syncPolicyAuto     = 1
	syncPolicyBlocking = 4

	accessPropertyPersisting = 2
)

// StreamGetAttribute implements worker.Context.
func (c *Context) StreamGetAttribute(st worker.Stream, attribute int32) (abi.StreamAttrValue, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, err := c.stream(st)
	if err != nil {
		return abi.StreamAttrValue{}, err
	}
	v, set := s.attributes[attribute]
	switch {
	case set:
	case attribute == attributeSyncPolicy:
		v.SyncPolicy = syncPolicyAuto
	case attribute == attributePriority:
		v.Priority = s.priority
	}
	return v, nil
}

// StreamSetAttribute implements worker.Context.
func (c *Context) StreamSetAttribute(st worker.Stream, attribute int32, v abi.StreamAttrValue) error {
	if err := checkAttribute(v); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s, err := c.stream(st)
	if err != nil {
		return err
	}
	if s.attributes == nil {
		s.attributes = map[int32]abi.StreamAttrValue{}
	}
	s.attributes[attribute] = v
	return nil
}

func checkAttribute(v abi.StreamAttrValue) error {
	good := true
	switch v.Case {
	case attributeAccessPolicyWindow:
		good = v.AccessPolicyWindowHitRatio >= 0 && v.AccessPolicyWindowHitRatio <= 1 &&
			v.AccessPolicyWindowHitProp >= 0 && v.AccessPolicyWindowHitProp <= accessPropertyPersisting &&
			v.AccessPolicyWindowMissProp >= 0 && v.AccessPolicyWindowMissProp < accessPropertyPersisting
	case attributeSyncPolicy:
		good = v.SyncPolicy >= syncPolicyAuto && v.SyncPolicy <= syncPolicyBlocking
	}
	if !good {
		return abi.ErrInvalidValue
	}
	return nil
}

// StreamCopyAttributes implements worker.Context.
func (c *Context) StreamCopyAttributes(dst, src worker.Stream) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	to, err := c.stream(dst)
	if err != nil {
		return err
	}
	from, err := c.stream(src)
	if err != nil {
		return err
	}
	to.attributes = maps.Clone(from.attributes)
	return nil
}
