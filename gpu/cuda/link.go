package cuda

import (
	"bytes"
	"errors"
	"fmt"

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
	source, err := c.link(m, l, o, &info)
	if err != nil {
		return nil, nil, info, err
	}
	return c.loaded(*m.value, source, linkedNames(l), o.Lazy, info)
}

// link creates the module of several objects, and returns the PTX among them.
func (c *context) link(m *out[uintptr], l *abi.LinkImage, o worker.ModuleOptions, info *abi.ModuleInfo) (source string, err error) {
	j := newOut[jit]()
	defer j.free()
	n := j.value.fill(o)
	state := newOut[uintptr]()
	defer state.free()
	if err := c.call(cuLinkCreate, uintptr(n), addressOf(&j.value.options), addressOf(&j.value.values), state.at()); err != nil {
		return "", err
	}
	defer func() {
		_ = c.call(cuLinkDestroy, *state.value)
		info.InfoLog, info.ErrorLog = untilNUL(j.value.info[:]), untilNUL(j.value.error[:])
	}()
	var ptx bytes.Buffer
	for _, object := range l.Objects {
		image := object.Image
		switch {
		case object.Type > abi.LinkLibrary:
			return "", fmt.Errorf("%w: object %s has unsupported type %d", abi.ErrInvalidImage, object.Name, object.Type)
		case object.Type == jitInputPTX:
			image = append(bytes.TrimRight(image, "\x00"), 0)
			ptx.Write(image[:len(image)-1])
			ptx.WriteByte('\n')
		}
		if err := c.addObject(*state.value, object, image); err != nil {
			return "", err
		}
	}
	cubin, size := newOut[uintptr](), newOut[uint64]()
	defer cubin.free()
	defer size.free()
	if err := c.call(cuLinkComplete, *state.value, cubin.at(), size.at()); err != nil {
		return "", err
	}
	return ptx.String(), c.call(cuModuleLoadDataEx, m.at(), *cubin.value, 0, 0, 0)
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
