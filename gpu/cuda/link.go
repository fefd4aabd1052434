package cuda

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// CUjitInputType, from cuda.h. A guest may send all types that existed before
// CUDA 12 except NVVM: cubins (0), PTX, fatbins, objects (3) and libraries.
const (
	jitInputPTX = 1
)

// loadLinked has libcuda link the objects of an image, and loads the result.
func (c *context) loadLinked(image []byte, o worker.ModuleOptions) (worker.Module, []worker.Function, abi.ModuleInfo, error) {
	var info abi.ModuleInfo
	l, err := abi.DecodeLinkImage(image)
	if err != nil {
		return nil, nil, info, err
	}
	if o.MaxRegisters == 0 { // what the program passed to the linker
		o.MaxRegisters = l.MaxRegisters
	}
	o.OptLevel = min(o.OptLevel, l.OptLevel)
	if linked := l.Linked(); linked != nil {
		m, f, info, err := c.loadWhole(linked, o)
		if !errors.Is(err, abi.ErrNoBinaryForGPU) {
			return m, f, info, err
		}
	}
	m := newOut[uintptr]()
	defer m.free()
	if err := c.loadCompiled(m, l.Objects, o, &info); err != nil {
		return nil, nil, info, err
	}
	return c.loaded(*m.value, ptxOf(l.Objects), linkedContents(l), o.Lazy, info)
}

// ptxOf returns the PTX among objects.
func ptxOf(objects []abi.LinkObject) string {
	var all bytes.Buffer
	for _, object := range objects {
		if object.Type == jitInputPTX {
			all.Write(bytes.TrimRight(object.Image, "\x00"))
			all.WriteByte('\n')
		}
	}
	return all.String()
}

// compile has libcuda compile and link objects, and returns the code.
func (c *context) compile(objects []abi.LinkObject, o worker.ModuleOptions, info *abi.ModuleInfo) (code []byte, err error) {
	j := newOut[jit]()
	defer j.free()
	n := j.value.fill(o)
	state := newOut[uintptr]()
	defer state.free()
	if err := c.call(cuLinkCreate, uintptr(n), addressOf(&j.value.options), addressOf(&j.value.values), state.at()); err != nil {
		return nil, err
	}
	defer func() {
		_ = c.call(cuLinkDestroy, *state.value)
		info.InfoLog, info.ErrorLog = untilNUL(j.value.info[:]), untilNUL(j.value.error[:])
	}()
	for _, object := range objects {
		image := object.Image
		switch {
		case object.Type > abi.LinkLibrary:
			return nil, fmt.Errorf("%w: object %s has unsupported type %d", abi.ErrInvalidImage, object.Name, object.Type)
		case object.Type == jitInputPTX:
			image = append(bytes.TrimRight(image, "\x00"), 0)
		}
		if err := c.addObject(*state.value, object, image); err != nil {
			return nil, err
		}
	}
	cubin, size := newOut[uintptr](), newOut[uint64]()
	defer cubin.free()
	defer size.free()
	if err := c.call(cuLinkComplete, *state.value, cubin.at(), size.at()); err != nil {
		return nil, err
	}
	if *size.value > maxUnpacked {
		return nil, fmt.Errorf("%w: the linked code has %d bytes, want at most %d", abi.ErrInvalidImage, *size.value, maxUnpacked)
	}
	// The state owns the code. A NUL follows it, since libcuda is not told its length.
	return append(slices.Clone(hostBytes(*cubin.value, int(*size.value))), 0), nil
}

func (c *context) addObject(state uintptr, object abi.LinkObject, image []byte) error {
	return pinned(append([]byte(object.Name), 0), func(name uintptr) error {
		return pinned(image, func(data uintptr) error {
			return c.call(cuLinkAddData, state, uintptr(object.Type), data, uintptr(len(image)), name, 0, 0, 0)
		})
	})
}

// fill sets the options and returns their number.
func (j *jit) fill(o worker.ModuleOptions) (n int) {
	add := func(option int32, value uintptr) { j.options[n], j.values[n] = option, value; n++ }
	add(jitInfoLogBuffer, addressOf(&j.info))
	add(jitInfoLogBufferSizeBytes, logSize-1)
	add(jitErrorLogBuffer, addressOf(&j.error))
	add(jitErrorLogBufferSizeBytes, logSize-1)
	if o.OptLevel <= 4 {
		add(jitOptimizationLevel, uintptr(o.OptLevel))
	}
	if o.MaxRegisters > 0 {
		add(jitMaxRegisters, uintptr(o.MaxRegisters))
	}
	return n
}
