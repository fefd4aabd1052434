package worker

import (
	"bytes"
	"os"
	"strconv"
	"sync"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// Host memory is a region of the guest that is mapped at the same address of the
// window in the guest and in this process, and that the device's work reads and
// writes in place:
//
//	           MemHostMap               MemHostUnmap, drop
//	announced ────────────► hosted ────────────────────────► leaving ──► unmapped
//
// A region that is leaving stays mapped until no context's work can access it;
// only then do its addresses become part of the window's reservation again.

// hostMap handles MemHostMap.
func (s *Session) hostMap(c *command) error {
	r, err := s.region(abi.DecodeMemHostMap(c.argBytes).Region)
	switch {
	case err != nil:
		return err
	case r.address == 0 || r.hosted || r.leaving:
		return abi.ErrInvalidValue
	case s.requests >= maxRequests:
		return abi.ErrOutOfMemory // too much of it is leaving
	}
	var done []*contextObject
	for ctx := range s.contexts {
		if ctx.dead || ctx.err() != nil {
			continue // no more work runs there
		}
		if err := ctx.driver.HostRegister(r.address, r.mapping.Bytes(0, r.mapping.Size())); err != nil {
			s.quit(r, done, func() {})
			return err
		}
		done = append(done, ctx)
	}
	r.hosted = true
	return nil
}

// hostUnmap handles MemHostUnmap. The guest drops the region after the answer, as it
// has dropped earlier ones: these messages are read now, because a device allows only
// a limited number to wait, and a busy issuer seldom reads the carrier.
func (s *Session) hostUnmap(c *command) error {
	if err := s.readCarrier(); err != nil {
		return err
	}
	r, err := s.region(abi.DecodeMemHostUnmap(c.argBytes).Region)
	switch {
	case err != nil:
		return err
	case !r.hosted:
		return abi.ErrInvalidValue
	}
	later := *c
	s.unhost(r, func() {
		if s.shared != nil {
			s.finish(&later, nil)
		}
	})
	return errLater
}

// unhost removes a region from all contexts and then, when no work can access it
// any more, calls gone on the issuer.
func (s *Session) unhost(r *region, gone func()) {
	r.hosted = false
	var all []*contextObject
	for ctx := range s.contexts {
		all = append(all, ctx)
	}
	s.quit(r, all, gone)
}

// quit removes a region from the given contexts. It counts as a request until
// that is done, so that a session's end waits for it.
func (s *Session) quit(r *region, contexts []*contextObject, gone func()) {
	r.acquire()
	r.leaving = true
	s.requests++
	left := 1
	one := func() {
		if left--; left > 0 {
			return
		}
		s.requests--
		r.leaving = false
		r.release()
		gone()
	}
	for _, ctx := range contexts {
		// An error means that the context does not have the memory.
		if ctx.driver.HostUnregister(r.address, func() { s.post(one) }) == nil {
			left++
		}
	}
	one()
}

// hostedAt returns the region that contains n bytes of host memory at an address
// that contexts use, or nil.
func (s *Session) hostedAt(address, n uint64) *region {
	for _, r := range s.regions {
		if r.hosted && address >= r.address && address-r.address <= r.mapping.Size() && n <= r.mapping.Size()-(address-r.address) {
			return r
		}
	}
	return nil
}

// adopt registers the existing host memory with a new context.
func (s *Session) adopt(d Context) error {
	for _, r := range s.regions {
		if !r.hosted {
			continue
		}
		if err := d.HostRegister(r.address, r.mapping.Bytes(0, r.mapping.Size())); err != nil {
			return err
		}
	}
	return nil
}

// vacate makes sure that the guest has nothing else mapped at a region's
// addresses. Regions there that the guest has dropped are no longer referred to:
// this holds for addresses as it does for numbers.
func (s *Session) vacate(number uint32, a abi.Region) error {
	at := abi.Window{Base: a.Address, Size: a.Size}
	kept := s.drops[:0]
	for _, d := range s.drops {
		if r := s.regions[d.number]; r.overlaps(at) {
			s.finishDrop(d)
			continue
		}
		kept = append(kept, d)
	}
	s.drops = kept
	for n, r := range s.regions {
		if r.overlaps(at) {
			return protocol("region %d at %v overlaps region %d", number, at, n)
		}
	}
	return nil
}

// overlaps reports whether the region is mapped at any of these addresses.
func (r *region) overlaps(at abi.Window) bool {
	return r.address != 0 && r.mapping != nil && r.address < at.Base+at.Size && at.Base < r.address+r.mapping.Size()
}

// maxRuns returns how many mappings the regions of a session may use: half of
// what Linux allows a process (vm.max_map_count). The others are for the worker
// itself and the device.
var maxRuns = sync.OnceValue(func() int64 {
	const usual = 65530
	text, err := os.ReadFile("/proc/sys/vm/max_map_count")
	if n, bad := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64); err == nil && bad == nil && n > 0 {
		return n / 2
	}
	return usual / 2
})
