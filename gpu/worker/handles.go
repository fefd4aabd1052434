package worker

import (
	"github.com/basalt-gpu/basalt/gpu/abi"
)

// The objects behind handles. Only the issuer touches them, but for a
// context's sticky error.
type (
	moduleObject struct {
		ctx                   *contextObject
		module                Module
		functions, references []uint64 // handles
		held                  uint64   // bytes of VRAM reserved for globals
	}
	functionObject struct {
		ctx      *contextObject
		function Function
		image    uint64 // bytes of its module's image
	}
	streamObject struct {
		ctx    *contextObject
		stream Stream // nil: the legacy default stream
		flow   *flow
		failed error // as an event's
	}
	eventObject struct {
		ctx    *contextObject
		event  Event
		failed error        // why it could not be made; nobody waited to hear it
		shared *sharedEvent // nil: no other session has it
	}
)

// handles maps the guest's numbers to objects of all kinds.
type handles struct {
	objects map[uint64]any
	allocs  map[uint64]allocation // by device address
}

type allocation struct {
	ctx    *contextObject
	size   uint64      // as asked for, bytes
	shared *madeShare  // nil: no other process may open it
	from   *ShareToken // of memory that another process shares
}

func newHandles() handles {
	return handles{objects: map[uint64]any{}, allocs: map[uint64]allocation{}}
}

// room reports whether n more objects may be made.
func (h *handles) room(n int) error {
	if len(h.objects)+len(h.allocs)+n > abi.MaxHandles {
		return abi.ErrOutOfMemory
	}
	return nil
}

// free reports whether the guest may give n handles from first on to new objects.
func (h *handles) free(first uint64, n int) error {
	if err := h.room(n); err != nil {
		return err
	}
	if first == 0 || first+uint64(n) < first {
		return abi.ErrInvalidHandle
	}
	for i := range uint64(n) {
		if _, used := h.objects[first+i]; used {
			return abi.ErrInvalidHandle
		}
	}
	return nil
}

// add puts o, an object of ctx, behind a handle that free has allowed.
func (h *handles) add(handle uint64, ctx *contextObject, o any) {
	h.objects[handle] = o
	ctx.handles[handle] = struct{}{}
}

func (h *handles) remove(handle uint64, ctx *contextObject) {
	delete(h.objects, handle)
	delete(ctx.handles, handle)
}

// forget takes an allocation out of the table.
func (h *handles) forget(address uint64, ctx *contextObject) {
	delete(h.allocs, address)
	delete(ctx.allocs, address)
}

// removeContext takes the context and everything made under it out of the table.
func (h *handles) removeContext(ctx *contextObject) {
	for handle := range ctx.handles {
		delete(h.objects, handle)
	}
	for address := range ctx.allocs {
		delete(h.allocs, address)
	}
	delete(h.objects, ctx.handle)
}

// lookup finds an object of kind T.
func lookup[T any](h *handles, handle uint64) (o T, err error) {
	o, ok := h.objects[handle].(T)
	if !ok {
		return o, abi.ErrInvalidHandle
	}
	return o, nil
}

// owned is what belongs to a context.
type owned interface{ owner() *contextObject }

func (m *moduleObject) owner() *contextObject   { return m.ctx }
func (f *functionObject) owner() *contextObject { return f.ctx }
func (e *eventObject) owner() *contextObject    { return e.ctx }

// another finds one more object of a command, which has to be of the same context.
func another[T owned](s *Session, ctx *contextObject, handle uint64) (T, error) {
	o, err := lookup[T](&s.handles, handle)
	if err == nil && o.owner() != ctx {
		err = abi.ErrInvalidHandle
	}
	return o, err
}

// anotherStream is another for streams, which may be the context's own.
func (s *Session) anotherStream(ctx *contextObject, handle uint64) (streamObject, error) {
	o, err := s.handles.stream(handle)
	if err == nil && o.ctx != ctx {
		err = abi.ErrInvalidHandle
	}
	return o, err
}

// stream finds a stream; a context's handle is its legacy default stream.
func (h *handles) stream(handle uint64) (streamObject, error) {
	switch o := h.objects[handle].(type) {
	case *streamObject:
		return *o, o.failed
	case *contextObject:
		return streamObject{ctx: o, flow: &o.flow}, nil
	}
	return streamObject{}, abi.ErrInvalidHandle
}
