package vhostgpu

import "github.com/basalt-gpu/basalt/hypervisor/virtio"

// handle executes a command and returns its response, or nil when the response is
// held.
func (d *Device) handle(at place, c *virtio.Chain) []byte {
	r, ok := parseRequest(d.copyRequest(c))
	if !ok {
		return r.respond(respErrInvalidParam)
	}
	if at.Queue == cursorQueue {
		return cursor(r)
	}
	switch r.Type {
	case cmdGetDisplayInfo:
		return displayInfo(r)
	case cmdGetEDID:
		return edid(r)
	case cmdGetCapsetInfo:
		d.seen.capabilitiesAsked()
		return capsetInfo(r)
	case cmdGetCapset:
		d.seen.capabilitiesAsked()
		return d.capset(r)
	case cmdResourceCreate2D, cmdResourceCreate3D:
		return d.createResource(r)
	case cmdResourceAttach:
		return d.attachBacking(r)
	case cmdResourceDetach:
		return d.releaseBacking(r, at, false)
	case cmdResourceUnref:
		return d.releaseBacking(r, at, true)
	case cmdSetScanout:
		return d.setScanout(r)
	case cmdResourceFlush:
		return d.show(r, 4) // rectangle, resource
	case cmdTransferToHost2D:
		return d.show(r, 6) // rectangle, u64 offset, resource
	case cmdTransferToHost3D, cmdTransferFromHost3D:
		return d.show(r, 8) // box, u64 offset, resource
	case cmdCtxCreate:
		return d.createContext(r)
	case cmdCtxDestroy:
		return d.destroyContext(r)
	case cmdCtxAttachResource:
		return d.attachContext(r, true)
	case cmdCtxDetachResource:
		return d.attachContext(r, false)
	case cmdSubmit3D:
		return d.submit(r, at)
	}
	d.log.Debug("unknown command", "type", r.Type)
	return r.respond(respErrUnspec)
}

// copyRequest copies a command out of guest memory, once, and at most as many
// bytes as commands of its type may have. The result is valid until the next
// call.
func (d *Device) copyRequest(c *virtio.Chain) []byte {
	var typ [4]byte
	c.Read(typ[:], 0)
	limit := uint64(maxSmall)
	switch le.Uint32(typ[:]) {
	case cmdSubmit3D:
		limit = headerSize + 8 + maxSubmit
	case cmdResourceAttach:
		limit = chainLimits.Bytes
	}
	n := min(c.In, limit)
	if uint64(cap(d.scratch)) < n {
		d.scratch = make([]byte, n)
	}
	b := d.scratch[:n]
	n = uint64(c.Read(b, 0))
	// The type determines how many bytes were read, so it must not change in
	// between.
	if n >= 4 {
		copy(b, typ[:])
	}
	return b[:n]
}

// cursor handles commands that move a pointer, which is not displayed.
func cursor(r request) []byte {
	switch r.Type {
	case cmdUpdateCursor, cmdMoveCursor:
		return r.respond(respOK)
	}
	return r.respond(respErrUnspec)
}
