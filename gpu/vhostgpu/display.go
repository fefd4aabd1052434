package vhostgpu

import "github.com/basalt-gpu/basalt/gpu/abi"

// The device has no screen: its one scanout is never enabled. The guest's driver
// still queries it, and a console may still draw; both get answers which mean
// that nothing is displayed.

// displayInfo returns 16 times a rectangle (4 words), enabled and flags; all
// zero.
func displayInfo(r request) []byte {
	return append(r.respond(respDisplayInfo), make([]byte, scanouts*24)...)
}

// edid returns an empty EDID: u32 size, u32 padding, 1024 bytes.
func edid(r request) []byte {
	if w, ok := r.words(1); !ok || w[0] >= 1 {
		return r.respond(respErrInvalidParam)
	}
	return append(r.respond(respEDID), make([]byte, 8+1024)...)
}

// setScanout handles SET_SCANOUT: rectangle, u32 scanout, u32 resource.
func (d *Device) setScanout(r request) []byte {
	w, ok := r.words(6)
	switch {
	case !ok:
		return r.respond(respErrInvalidParam)
	case w[4] >= 1:
		return r.respond(respErrInvalidScanout)
	case w[5] != 0 && d.resources[w[5]] == nil:
		return r.respond(respErrInvalidResource)
	}
	return r.respond(respOK)
}

// show handles any command that would transfer pixels; the resource is the word
// at index i.
func (d *Device) show(r request, i int) []byte {
	w, ok := r.words(i + 1)
	if !ok {
		return r.respond(respErrInvalidParam)
	}
	if d.resources[w[i]] == nil {
		return r.respond(respErrInvalidResource)
	}
	return r.respond(respOK)
}

// capsetInfo handles GET_CAPSET_INFO: u32 index, answered with ID, highest
// version and size.
func capsetInfo(r request) []byte {
	if w, ok := r.words(1); !ok || w[0] != 0 {
		return r.respond(respErrInvalidParam)
	}
	b := r.respond(respCapsetInfo)
	for _, v := range []uint32{abi.CapsetID, 1, abi.CapsetSize, 0} {
		b = le.AppendUint32(b, v)
	}
	return b
}

// capset handles GET_CAPSET: u32 ID, u32 version, answered with the body that abi
// describes.
func (d *Device) capset(r request) []byte {
	if w, ok := r.words(2); !ok || w[0] != abi.CapsetID || w[1] > 1 {
		return r.respond(respErrInvalidParam)
	}
	b := le.AppendUint32(r.respond(respCapset), abi.Magic)
	b = le.AppendUint16(b, abi.Major)
	b = le.AppendUint16(b, abi.Minor)
	b = le.AppendUint64(b, d.limits.Region)
	return le.AppendUint64(b, 0)
}
