package vhostgpu

import "encoding/binary"

// The wire format of virtio-gpu (virtio 1.2, section 5.7). All little-endian.

// Feature bits (5.7.3).
const (
	featureVirgl = 1 << 0
	featureEDID  = 1 << 1
)

// Command types (5.7.6.7).
const (
	cmdGetDisplayInfo      = 0x0100
	cmdResourceCreate2D    = 0x0101
	cmdResourceUnref       = 0x0102
	cmdSetScanout          = 0x0103
	cmdResourceFlush       = 0x0104
	cmdTransferToHost2D    = 0x0105
	cmdResourceAttach      = 0x0106 // RESOURCE_ATTACH_BACKING
	cmdResourceDetach      = 0x0107 // RESOURCE_DETACH_BACKING
	cmdGetCapsetInfo       = 0x0108
	cmdGetCapset           = 0x0109
	cmdGetEDID             = 0x010a
	cmdCtxCreate           = 0x0200
	cmdCtxDestroy          = 0x0201
	cmdCtxAttachResource   = 0x0202
	cmdCtxDetachResource   = 0x0203
	cmdResourceCreate3D    = 0x0204
	cmdTransferToHost3D    = 0x0205
	cmdTransferFromHost3D  = 0x0206
	cmdSubmit3D            = 0x0207
	cmdUpdateCursor        = 0x0300
	cmdMoveCursor          = 0x0301
	respOK                 = 0x1100
	respDisplayInfo        = 0x1101
	respCapsetInfo         = 0x1102
	respCapset             = 0x1103
	respEDID               = 0x1104
	respErrUnspec          = 0x1200
	respErrOutOfMemory     = 0x1201
	respErrInvalidScanout  = 0x1202
	respErrInvalidResource = 0x1203
	respErrInvalidContext  = 0x1204
	respErrInvalidParam    = 0x1205
)

// flagFence in a command's header requests that the response contains its fence
// ID and is sent once the command is done.
const flagFence = 1

const (
	headerSize = 24 // virtio_gpu_ctrl_hdr
	scanouts   = 16 // VIRTIO_GPU_MAX_SCANOUTS
)

var le = binary.LittleEndian

// header is virtio_gpu_ctrl_hdr.
type header struct {
	Type, Flags uint32
	Fence       uint64
	Context     uint32
}

// request is one command, copied out of guest memory: the header and what
// follows it.
type request struct {
	header
	body []byte
}

func parseRequest(b []byte) (request, bool) {
	if len(b) < headerSize {
		return request{}, false
	}
	return request{
		header: header{le.Uint32(b), le.Uint32(b[4:]), le.Uint64(b[8:]), le.Uint32(b[16:])},
		body:   b[headerSize:],
	}, true
}

// words returns the first n words of the body; ok is false when it is too short.
func (r *request) words(n int) (w [12]uint32, ok bool) {
	if len(r.body) < 4*n {
		return w, false
	}
	for i := range n {
		w[i] = le.Uint32(r.body[4*i:])
	}
	return w, true
}

// respond returns a response's header; the body is appended to it.
func (r *request) respond(typ uint32) []byte {
	b := make([]byte, headerSize)
	le.PutUint32(b, typ)
	if r.Flags&flagFence != 0 {
		le.PutUint32(b[4:], flagFence)
		le.PutUint64(b[8:], r.Fence)
	}
	le.PutUint32(b[16:], r.Context)
	return b
}

// configBytes returns virtio_gpu_config (5.7.4): events_read, events_clear,
// num_scanouts, num_capsets.
func configBytes() []byte {
	b := make([]byte, 16)
	le.PutUint32(b[8:], 1)
	le.PutUint32(b[12:], 1)
	return b
}
