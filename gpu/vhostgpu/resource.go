package vhostgpu

import "github.com/basalt-gpu/basalt/hypervisor/virtio"

const pageSize = 4096

// span is a piece of guest-physical memory.
type span struct{ GPA, Length uint64 }

// resource is a virtio-gpu resource. The device only knows its guest pages.
type resource struct {
	ID       uint32
	Backing  []span
	Size     uint64 // bytes of Backing
	Contexts map[uint32]bool
	// pins counts the workers' mappings of the resource. While there are any, the
	// pages must not be returned to the guest kernel, which would give them to
	// another process: so the answers to UNREF and DETACH_BACKING are held in
	// Release.
	pins    int
	Release []held
	Unref   bool // delete the resource when the last pin is removed
}

func (d *Device) createResource(r request) []byte {
	w, ok := r.words(4)
	switch {
	case !ok || w[0] == 0:
		return r.respond(respErrInvalidParam)
	case d.resources[w[0]] != nil:
		return r.respond(respErrInvalidResource)
	case len(d.resources) >= d.limits.Resources:
		return r.respond(respErrOutOfMemory)
	}
	d.resources[w[0]] = &resource{ID: w[0], Contexts: map[uint32]bool{}}
	return r.respond(respOK)
}

// attachBacking handles ATTACH_BACKING: u32 resource, u32 entries, then per entry
// u64 address, u32 length, u32 padding (5.7.6.8).
func (d *Device) attachBacking(r request) []byte {
	w, ok := r.words(2)
	if !ok {
		return r.respond(respErrInvalidParam)
	}
	res, entries := d.resources[w[0]], uint64(w[1])
	if res == nil || res.Unref {
		return r.respond(respErrInvalidResource)
	}
	if len(res.Backing) > 0 || uint64(len(r.body)-8) < 16*entries || len(res.Release) > 0 {
		return r.respond(respErrInvalidParam)
	}
	var backing []span
	var size uint64
	var scratch []virtio.Extent
	for e := r.body[8 : 8+16*entries]; len(e) > 0; e = e[16:] {
		s := span{le.Uint64(e), uint64(le.Uint32(e[8:]))}
		var err error
		if scratch, err = d.memory.Extents(scratch[:0], s.GPA, s.Length); err != nil || s.Length == 0 {
			return r.respond(respErrInvalidParam)
		}
		size += s.Length
		if last := len(backing) - 1; last >= 0 && backing[last].GPA+backing[last].Length == s.GPA {
			backing[last].Length += s.Length
		} else {
			backing = append(backing, s)
		}
	}
	if d.extents+len(backing) > d.limits.Extents {
		return r.respond(respErrOutOfMemory)
	}
	d.extents += len(backing)
	res.Backing, res.Size = backing, size
	return r.respond(respOK)
}

// releaseBacking answers UNREF and DETACH_BACKING: at once, or when the last
// worker has unmapped the pages. It returns nil when the answer is held.
func (d *Device) releaseBacking(r request, at place, unref bool) []byte {
	w, ok := r.words(1)
	if !ok {
		return r.respond(respErrInvalidParam)
	}
	res := d.resources[w[0]]
	if res == nil || res.Unref {
		return r.respond(respErrInvalidResource)
	}
	res.Unref = unref
	if res.pins > 0 {
		res.Release = append(res.Release, held{at, r.respond(respOK)})
		d.dropPins(res)
		return nil
	}
	d.forgetBacking(res)
	return r.respond(respOK)
}

// forgetBacking removes a resource's pages, or the resource.
func (d *Device) forgetBacking(res *resource) {
	d.extents -= len(res.Backing)
	res.Backing, res.Size = nil, 0
	if res.Unref {
		d.attachments -= len(res.Contexts)
		delete(d.resources, res.ID)
	}
}

// unpin records that one worker no longer maps the resource.
func (d *Device) unpin(res *resource) {
	if res.pins--; res.pins > 0 || len(res.Release) == 0 {
		return
	}
	d.forgetBacking(res)
	for _, h := range res.Release {
		d.complete(h)
	}
	res.Release = nil
}

// attachContext handles CTX_ATTACH_RESOURCE and CTX_DETACH_RESOURCE: a process
// may only use resources that the guest kernel attached to its context.
func (d *Device) attachContext(r request, attach bool) []byte {
	w, ok := r.words(1)
	if !ok {
		return r.respond(respErrInvalidParam)
	}
	if d.contexts[r.Context] == nil {
		return r.respond(respErrInvalidContext)
	}
	res := d.resources[w[0]]
	if res == nil {
		return r.respond(respErrInvalidResource)
	}
	switch had := res.Contexts[r.Context]; {
	case attach && !had:
		if d.attachments >= d.limits.Attachments {
			return r.respond(respErrOutOfMemory)
		}
		res.Contexts[r.Context] = true
		d.attachments++
	case !attach && had:
		delete(res.Contexts, r.Context)
		d.attachments--
	}
	return r.respond(respOK)
}
