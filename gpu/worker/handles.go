package worker

import (
	"github.com/basalt-gpu/basalt/gpu/abi"
)

// These are the objects behind handles. Only the issuer uses them, except for a
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
		image    uint64 // size of its module's image, in bytes
	}
	streamObject struct {
		ctx    *contextObject
		stream Stream // nil: the legacy default stream
		flow   *flow
		failed error // like an event's
	}
	eventObject struct {
		ctx    *contextObject
		event  Event
		failed error        // why it could not be created; its creation had no slot to report it
		shared *sharedEvent // nil: not shared with other sessions
	}
)

// handles maps the guest's numbers to objects of all kinds.
type handles struct {
	objects map[uint64]any
	allocs  map[uint64]allocation // by device address
}

type allocation struct {
	ctx    *contextObject
	size   uint64      // as requested, in bytes
	shared *madeShare  // nil: no other process may open it
	from   *ShareToken // set for memory that another process shares
}

func newHandles() handles {
	return handles{objects: map[uint64]any{}, allocs: map[uint64]allocation{}}
}

// room reports whether n more objects may be created.
func (h *handles) room(n int) error {
	if len(h.objects)+len(h.allocs)+n > abi.MaxHandles {
		return abi.ErrOutOfMemory
	}
	return nil
}

// free reports whether the guest may use the n handles from first on for new
// objects.
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

// add stores o, an object of ctx, under a handle that free has accepted.
func (h *handles) add(handle uint64, ctx *contextObject, o any) {
	h.objects[handle] = o
	ctx.handles[handle] = struct{}{}
}

func (h *handles) remove(handle uint64, ctx *contextObject) {
	delete(h.objects, handle)
	delete(ctx.handles, handle)
}

// forget removes an allocation from the table.
func (h *handles) forget(address uint64, ctx *contextObject) {
	delete(h.allocs, address)
	delete(ctx.allocs, address)
}

// removeContext removes the context and all its objects from the table.
func (h *handles) removeContext(ctx *contextObject) {
	for handle := range ctx.handles {
		delete(h.objects, handle)
	}
	for address := range ctx.allocs {
		delete(h.allocs, address)
	}
	delete(h.objects, ctx.handle)
}

// lookup returns the object of kind T behind a handle.
func lookup[T any](h *handles, handle uint64) (o T, err error) {
	o, ok := h.objects[handle].(T)
	if !ok {
		return o, abi.ErrInvalidHandle
	}
	return o, nil
}

// owned is an object that belongs to a context.
type owned interface{ owner() *contextObject }

func (m *moduleObject) owner() *contextObject   { return m.ctx }
func (f *functionObject) owner() *contextObject { return f.ctx }
func (e *eventObject) owner() *contextObject    { return e.ctx }

// another returns a further object of a command; it must belong to the same
// context.
func another[T owned](s *Session, ctx *contextObject, handle uint64) (T, error) {
	o, err := lookup[T](&s.handles, handle)
	if err == nil && o.owner() != ctx {
		err = abi.ErrInvalidHandle
	}
	return o, err
}

// anotherStream is like another, for streams; it also accepts the context's
// default stream.
func (s *Session) anotherStream(ctx *contextObject, handle uint64) (streamObject, error) {
	o, err := s.handles.stream(handle)
	if err == nil && o.ctx != ctx {
		err = abi.ErrInvalidHandle
	}
	return o, err
}

// stream returns a stream; a context's handle is its legacy default stream.
func (h *handles) stream(handle uint64) (streamObject, error) {
	switch o := h.objects[handle].(type) {
	case *streamObject:
		return *o, o.failed
	case *contextObject:
		return streamObject{ctx: o, flow: &o.flow}, nil
	}
	return streamObject{}, abi.ErrInvalidHandle
}
