package cuda

import (
	"bytes"
	"fmt"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/fatbin"
	"github.com/basalt-gpu/basalt/gpu/ptx"
)

// These bound what reading an image's kernels may take. Kernels are collected
// from all images of a fatbin, because one may have kernels that another lacks.
const (
	maxImageKernels = 1 << 16
	maxUnpacked     = 512 << 20 // bytes of all its images
)

// ImageInfo implements worker.Driver. It does not use libcuda, which has no
// function for this that needs no context before CUDA 12, and none that returns
// parameters.
func (d *driver) ImageInfo(image []byte) (abi.ModuleInfo, error) {
	k := imageKernels{seen: map[string]bool{}}
	objects := [][]byte{image}
	if abi.IsLinkImage(image) {
		l, err := abi.DecodeLinkImage(image)
		if err != nil {
			return abi.ModuleInfo{}, err
		}
		objects = objects[:0]
		for _, o := range l.Objects {
			images, err := linkImages(o)
			if err != nil {
				return abi.ModuleInfo{}, fmt.Errorf("%w: %s: %w", abi.ErrInvalidImage, o.Name, err)
			}
			objects = append(objects, images...)
		}
	}
	for _, o := range objects {
		if err := k.addObject(o); err != nil {
			return abi.ModuleInfo{}, err
		}
	}
	return abi.ModuleInfo{Functions: k.list}, nil
}

// linkImages returns the images of one object of a link: the object itself, or
// the images in a host object or a library of them.
func linkImages(o abi.LinkObject) ([][]byte, error) {
	if o.Type != abi.LinkHostObject && o.Type != abi.LinkLibrary {
		return [][]byte{o.Image}, nil
	}
	return fatbin.Objects(o.Image)
}

// imageKernels collects kernels, each name once.
type imageKernels struct {
	list     []abi.FunctionInfo
	seen     map[string]bool
	unpacked int // bytes of the images of fatbins so far
}

func (k *imageKernels) addObject(object []byte) error {
	switch {
	case fatbin.Is(object):
		return k.addFatbin(object)
	case fatbin.IsELF(object):
		return k.addImage(fatbin.ELF, object)
	}
	return k.addImage(fatbin.PTX, bytes.TrimRight(object, "\x00"))
}

// addFatbin adds the kernels of a fatbin's images. An image that cannot be read
// is an error only if none can.
func (k *imageKernels) addFatbin(object []byte) error {
	entries, err := fatbin.Entries(object)
	if err != nil {
		return fmt.Errorf("%w: %w", abi.ErrInvalidImage, err)
	}
	first, read := fmt.Errorf("%w: the fatbin has no PTX and no machine code", abi.ErrNoBinaryForGPU), false
	for _, e := range entries {
		if e.Kind != fatbin.PTX && e.Kind != fatbin.ELF {
			continue
		}
		image, err := e.Image()
		if err != nil {
			first = fmt.Errorf("%w: %w", abi.ErrInvalidImage, err)
			continue
		}
		if k.unpacked += len(image); k.unpacked > maxUnpacked {
			return fmt.Errorf("%w: the images of the fatbin are larger than %d bytes in total", abi.ErrInvalidImage, maxUnpacked)
		}
		if err := k.addImage(e.Kind, image); err != nil {
			first = err
			continue
		}
		read = true
	}
	if !read {
		return first
	}
	return nil
}

func (k *imageKernels) addImage(kind fatbin.Kind, image []byte) error {
	if kind == fatbin.ELF {
		c, err := fatbin.ReadCubin(image)
		if err != nil {
			return fmt.Errorf("%w: %w", abi.ErrInvalidImage, err)
		}
		for _, f := range c.Kernels {
			info := abi.FunctionInfo{Name: f.Name}
			for _, p := range f.Params {
				info.Params = append(info.Params, abi.ParamInfo(p))
			}
			k.add(info)
		}
		return nil
	}
	signatures, err := ptx.Signatures(string(image))
	if err != nil {
		return fmt.Errorf("%w: %w", abi.ErrInvalidPTX, err)
	}
	for _, s := range signatures {
		k.add(signatureInfo(s))
	}
	return nil
}

func (k *imageKernels) add(f abi.FunctionInfo) {
	if !k.seen[f.Name] && len(k.list) < maxImageKernels {
		k.seen[f.Name] = true
		k.list = append(k.list, f)
	}
}

func signatureInfo(s ptx.Signature) abi.FunctionInfo {
	info := abi.FunctionInfo{Name: s.Name}
	for _, p := range s.Params {
		info.Params = append(info.Params, abi.ParamInfo(p))
	}
	return info
}
