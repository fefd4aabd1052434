package cuda

import (
	"errors"
	"fmt"
	"slices"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// reference is a CUtexref or a CUsurfref. libcuda uses what is bound to it when a
// launch is submitted, which is later than when the worker makes the launch; so a
// launch records what was bound to the references of its module.
type reference struct {
	m       *module
	handle  uintptr
	surface bool
	at      int // index among the references of its module that were found
}

// binding is what is bound to a reference; the zero value is nothing yet.
type binding struct {
	of   *reference
	what resource
	as   abi.TextureCreate
}

// overrideFormat is CU_TRSA_OVERRIDE_FORMAT (cuda.h).
const overrideFormat = 1

// memoryDescriptor is CUDA_ARRAY_DESCRIPTOR.
type memoryDescriptor struct {
	width, height    uint64
	format, channels uint32
}

var _ worker.References = (*context)(nil)

// ReferenceFind implements worker.References.
func (c *context) ReferenceFind(mod worker.Module, name string, surface bool) (worker.Reference, error) {
	m, ok := mod.(*module)
	if !ok {
		return nil, abi.ErrInvalidHandle
	}
	find := cuModuleGetTexRef
	if surface {
		find = cuModuleGetSurfRef
	}
	h := newOut[uintptr]()
	defer h.free()
	if err := pinned(append([]byte(name), 0), func(at uintptr) error { return c.passOn(find, h.at(), m.handle, at) }); err != nil {
		return nil, err
	}
	r := &reference{m, *h.value, surface, len(m.bound)}
	m.bound = append(slices.Clone(m.bound), binding{})
	return r, nil
}

// ReferenceBind implements worker.References.
func (c *context) ReferenceBind(ref worker.Reference, a abi.TextureCreate, of worker.Array) error {
	r, ok := ref.(*reference)
	if !ok {
		return abi.ErrInvalidHandle
	}
	what, err := c.resourceOf(&a, of)
	if err != nil {
		return err
	}
	bound := slices.Clone(r.m.bound)
	bound[r.at] = binding{r, what, a}
	r.m.bound = bound
	return nil
}

// bind binds a module's references in libcuda to what a launch needs. The loop submits
// launches one at a time.
func (c *context) bind(m *module, wanted []binding) error {
	for i, w := range wanted {
		if len(m.inLibcuda) <= i {
			m.inLibcuda = append(m.inLibcuda, binding{})
		}
		if w.of == nil || m.inLibcuda[i] == w {
			continue
		}
		if err := c.bindOne(&w); err != nil {
			return err
		}
		m.inLibcuda[i] = w
	}
	return nil
}

func (c *context) bindOne(w *binding) error {
	h := w.of.handle
	if w.of.surface {
		return c.passOn(cuSurfRefSetArray, h, uintptr(w.what.base), 0)
	}
	return errors.Join(c.bindResource(h, &w.what), c.bindSampler(h, &w.as))
}

func (c *context) bindResource(h uintptr, r *resource) error {
	switch r.kind {
	case abi.ResourceArray:
		return c.passOn(cuTexRefSetArray, h, uintptr(r.base), overrideFormat)
	case abi.ResourceMipmapped:
		return c.passOn(cuTexRefSetMipmappedArray, h, uintptr(r.base), overrideFormat)
	case abi.ResourceLinear:
		offset := newOut[uint64]()
		defer offset.free()
		if err := c.passOn(cuTexRefSetFormat, h, uintptr(r.format), uintptr(r.channels)); err != nil {
			return err
		}
		if err := c.passOn(cuTexRefSetAddress, offset.at(), h, uintptr(r.base), uintptr(r.width)); err != nil {
			return err
		}
		if *offset.value != 0 {
			return fmt.Errorf("%w: texture address %#x is misaligned", abi.ErrInvalidValue, r.base)
		}
		return nil
	}
	d := newOut[memoryDescriptor]()
	defer d.free()
	*d.value = memoryDescriptor{r.width, r.height, r.format, r.channels}
	return c.passOn(cuTexRefSetAddress2D, h, d.at(), uintptr(r.base), uintptr(r.pitch))
}

func (c *context) bindSampler(h uintptr, a *abi.TextureCreate) error {
	border := newOut[[4]float32]()
	defer border.free()
	*border.value = a.Border
	err := errors.Join(
		c.passOn(cuTexRefSetFlags, h, uintptr(a.Flags)), c.passOn(cuTexRefSetFilterMode, h, uintptr(a.Filter)),
		c.passOn(cuTexRefSetMipmapFilterMode, h, uintptr(a.MipFilter)), c.passOn(cuTexRefSetMaxAnisotropy, h, uintptr(a.Anisotropy)),
		c.passOn(cuTexRefSetBorderColor, h, border.at()),
		c.passOnFloats(cuTexRefSetMipmapLevelBias, h, a.Bias, 0), c.passOnFloats(cuTexRefSetMipmapLevelClamp, h, a.MinLevel, a.MaxLevel),
	)
	for dim, mode := range a.Address {
		err = errors.Join(err, c.passOn(cuTexRefSetAddressMode, h, uintptr(dim), uintptr(mode)))
	}
	return err
}

// passOnFloats is like passOn, for a function whose arguments are a handle and one or two
// floats.
func (c *context) passOnFloats(f function, h uintptr, x, y float32) error {
	if err := c.failed(); err != nil {
		return err
	}
	if !c.d.lib.has(f) {
		return fmt.Errorf("%w: the driver does not have function %s", abi.ErrNotSupported, f.name())
	}
	if err := c.d.lib.callFloats(c.handle, f, [2]float32{x, y}, h); err != nil {
		return fmt.Errorf("%s: %w", f.name(), err)
	}
	return nil
}
