package worker

import (
	"errors"
	"slices"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// executors has one function per special command; calls (generated) has the
// others. Each checks its handles and ranges and completes at once (nil, or an
// error of that command only) or later (errLater). A *ProtocolError ends the
// session.
var executors = [...]func(*Session, *command) error{
	abi.OpNop: func(*Session, *command) error { return nil },

	abi.OpDeviceInfo: (*Session).deviceInfo,
	abi.OpVGPUStatus: (*Session).vgpuStatus,

	abi.OpMultiprocessors: (*Session).multiprocessors,

	abi.OpCtxCreate:      (*Session).ctxCreate,
	abi.OpCtxDestroy:     (*Session).ctxDestroy,
	abi.OpCtxSynchronize: (*Session).ctxSynchronize,
	abi.OpCtxReadOutput:  (*Session).ctxReadOutput,
	abi.OpCtxSetLimit:    (*Session).ctxSetLimit,

	abi.OpModuleLoad:        (*Session).moduleLoad,
	abi.OpModuleLoadManaged: (*Session).moduleLoadManaged,
	abi.OpModuleUnload:      (*Session).moduleUnload,
	abi.OpFuncSetAttribute:  (*Session).funcSetAttribute,
	abi.OpImageInfo:         (*Session).imageInfo,
	abi.OpFuncLoad:          (*Session).funcLoad,
	abi.OpClusters:          (*Session).clusters,

	abi.OpMemAlloc: (*Session).memAlloc,
	abi.OpMemFree:  (*Session).memFree,
	abi.OpMemInfo:  (*Session).memInfo,

	abi.OpMemHostMap:   (*Session).hostMap,
	abi.OpMemHostUnmap: (*Session).hostUnmap,
	abi.OpMemFreeAsync: (*Session).memFreeAsync,

	abi.OpMemReserve:   (*Session).memReserve,
	abi.OpMemUnreserve: (*Session).memUnreserve,
	abi.OpMemCreate:    (*Session).memCreate,
	abi.OpMemDestroy:   (*Session).memDestroy,
	abi.OpMemMap:       (*Session).memMap,
	abi.OpMemUnmap:     (*Session).memUnmap,
	abi.OpMemAccess:    (*Session).memAccess,

	abi.OpMemShare: (*Session).memShare,
	abi.OpMemOpen:  (*Session).memOpen,
	abi.OpMemClose: (*Session).memClose,

	abi.OpMemExport: (*Session).memExport,
	abi.OpMemImport: (*Session).memImport,

	abi.OpArrayCreate:    (*Session).arrayCreate,
	abi.OpArrayDestroy:   (*Session).arrayDestroy,
	abi.OpArrayCopy:      (*Session).arrayCopy,
	abi.OpTextureCreate:  (*Session).textureCreate,
	abi.OpTextureDestroy: (*Session).textureDestroy,
	abi.OpReferenceFind:  (*Session).referenceFind,
	abi.OpReferenceBind:  (*Session).referenceBind,

	abi.OpCopyHtoD:       (*Session).copyHtoD,
	abi.OpCopyHtoDInline: (*Session).copyHtoDInline,
	abi.OpCopyDtoH:       (*Session).copyDtoH,
	abi.OpCopyDtoD:       (*Session).copyDtoD,
	abi.OpMemset:         (*Session).memset,

	abi.OpLaunch: (*Session).launch,

	abi.OpStreamCreate:      (*Session).streamCreate,
	abi.OpStreamDestroy:     (*Session).streamDestroy,
	abi.OpStreamSynchronize: (*Session).streamSynchronize,
	abi.OpStreamQuery:       (*Session).streamQuery,
	abi.OpStreamWaitEvent:   (*Session).streamWaitEvent,
	abi.OpStreamWaitValue:   (*Session).streamWaitValue,
	abi.OpStreamMark:        (*Session).streamMark,

	abi.OpEventCreate:      (*Session).eventCreate,
	abi.OpEventDestroy:     (*Session).eventDestroy,
	abi.OpEventRecord:      (*Session).eventRecord,
	abi.OpEventSynchronize: (*Session).eventSynchronize,
	abi.OpEventQuery:       (*Session).eventQuery,
	abi.OpEventShare:       (*Session).eventShare,
	abi.OpEventOpen:        (*Session).eventOpen,

	abi.OpGraphInstantiate: (*Session).graphInstantiate,
	abi.OpGraphUpdate:      (*Session).graphUpdate,
	abi.OpGraphLaunch:      (*Session).graphLaunch,
	abi.OpGraphDestroy:     (*Session).graphDestroy,
}

// executorOf returns the function of a command, or nil for a command that this
// worker does not know.
func executorOf(c *command) func(*Session, *command) error {
	switch {
	case !c.known:
	case int(c.op) < len(executors) && executors[c.op] != nil:
		return executors[c.op]
	case int(c.op) < len(calls):
		return calls[c.op]
	}
	return nil
}

// execute runs a command. A returned error ends the session; an error of the
// command is stored in its slot.
func (s *Session) execute(c *command) error {
	if c.op == abi.OpNop {
		return nil
	}
	var err error = abi.ErrNotSupported
	if run := executorOf(c); run != nil {
		err = run(s, c)
	}
	if err == nil {
		s.finish(c, nil)
		return nil
	}
	var broken *ProtocolError
	switch {
	case errors.Is(err, errLater):
		return nil
	case errors.As(err, &broken) || errors.Is(err, errLeft):
		return err
	}
	s.finish(c, err)
	return nil
}

// finish completes a command on the issuer.
func (s *Session) finish(c *command, err error) {
	r := resultOf(err)
	s.releaseChunks(c.release)
	if c.slot != abi.NoSlot {
		s.complete(c.slot, r, c.value0, c.value1)
		return
	}
	if err != nil && c.ctx != nil && c.ctx.err() == nil && r != abi.ErrNotReady {
		c.ctx.deferred = r // no slot: the context's next command with a slot reports it
	}
	if err != nil {
		s.log.Debug("command failed", "command", c.op, "error", err)
	}
}

// write copies a record into a command's out buffer. value0 is set to its length,
// even when it does not fit (abi.ErrInvalidValue).
func (c *command) write(out, record []byte) error {
	c.value0 = uint64(len(record))
	if len(record) > len(out) {
		return abi.ErrInvalidValue
	}
	copy(out, record)
	return nil
}

// fill writes the structs that a passed-on function returns.
func fill(out []byte, parts ...[]byte) error {
	record := slices.Concat(parts...)
	if len(record) > len(out) {
		return abi.ErrInvalidValue
	}
	copy(out, record)
	return nil
}

// chunksOf records the staging chunks to free when the command is done, for a
// command with abi.FlagReleaseChunks and that Buf.
func (s *Session) chunksOf(c *command, number uint32, off, n uint64) error {
	if c.flags&abi.FlagReleaseChunks == 0 {
		return nil
	}
	first, count, ok := s.layout.chunks(off, n)
	if number != 0 || !ok {
		return abi.ErrInvalidValue
	}
	c.release = chunkSpan{first, count}
	return nil
}

// maxRequests bounds the requests in progress. A guest has at most one per
// thread.
const maxRequests = abi.MaxSlots

// ask runs request, which may wait for the host or for the driver, in another goroutine,
// and then answer on the issuer; the context may have been destroyed by then. The error
// that answer returns completes the command.
func (s *Session) ask(c *command, request func() error, answer func(c *command, err error) error) error {
	if s.requests >= maxRequests {
		return abi.ErrUnavailable
	}
	s.requests++
	later := *c
	later.argBytes, later.inlineBytes = nil, nil
	go func() {
		err := request()
		s.post(func() {
			s.requests--
			err := answer(&later, err)
			if !errors.Is(err, errLater) && s.shared != nil {
				s.finish(&later, err)
			}
		})
	}()
	return errLater
}
