package compile

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/fatbin"
	"github.com/basalt-gpu/basalt/gpu/ptx"
)

// parseImage parses an image: PTX, a fatbin, or several of them to be linked. registers
// is the limit of registers per thread that the program gives, or 0.
func (c Capability) parseImage(image []byte) (mod *ptx.Module, registers uint32, err error) {
	if !abi.IsLinkImage(image) {
		src, err := c.ptxOf(image)
		if err != nil {
			return nil, 0, err
		}
		mod, err = parsePTX(src)
		return mod, 0, err
	}
	link, err := abi.DecodeLinkImage(image)
	if err != nil {
		return nil, 0, err
	}
	if linked := link.Linked(); linked != nil {
		src, err := c.ptxOf(linked)
		if err == nil {
			mod, err = parsePTX(src)
		}
		if !errors.Is(err, abi.ErrNoBinaryForGPU) {
			return mod, link.MaxRegisters, err
		}
	}
	mod, err = c.linkObjects(link)
	return mod, link.MaxRegisters, err
}

func (c Capability) linkObjects(link *abi.LinkImage) (*ptx.Module, error) {
	sources := runtimeObjects()
	total := 0
	for _, o := range link.Objects {
		images, err := linkImages(o)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", abi.ErrInvalidImage, o.Name, err)
		}
		for _, image := range images {
			src, err := c.ptxOf(image)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", o.Name, err)
			}
			if total += len(src); total > ptx.MaxSource { // compressed objects grow
				return nil, fmt.Errorf("%w: %s: all objects together have more than %d bytes of PTX", abi.ErrInvalidImage, o.Name, ptx.MaxSource)
			}
			sources = append(sources, ptx.Source{Name: o.Name, Text: src, Library: o.Type == abi.LinkLibrary})
		}
	}
	objects, err := ptx.ParseObjects(sources)
	if err != nil {
		return nil, err
	}
	return ptx.Link(withoutRuntime(objects))
}

// linkImages returns the images of one object of a link: the object itself, or the
// images in a host object or a library of those.
func linkImages(o abi.LinkObject) ([][]byte, error) {
	if o.Type != abi.LinkHostObject && o.Type != abi.LinkLibrary {
		return [][]byte{o.Image}, nil
	}
	return fatbin.Objects(o.Image)
}

// Signatures returns the kernels of an image with their parameters. It reads no
// instructions and links nothing; Parse reports errors there. An error wraps an
// abi.Result.
func (c Capability) Signatures(image []byte) ([]abi.FunctionInfo, error) {
	if !abi.IsLinkImage(image) {
		return c.signatures(image)
	}
	link, err := abi.DecodeLinkImage(image)
	if err != nil {
		return nil, err
	}
	if linked := link.Linked(); linked != nil {
		if list, err := c.signatures(linked); !errors.Is(err, abi.ErrNoBinaryForGPU) {
			return list, err
		}
	}
	var list []abi.FunctionInfo
	for _, o := range link.Objects {
		images, err := linkImages(o)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", abi.ErrInvalidImage, o.Name, err)
		}
		for _, image := range images {
			more, err := c.signatures(image)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", o.Name, err)
			}
			list = append(list, more...)
		}
	}
	return list, nil
}

func (c Capability) signatures(image []byte) (list []abi.FunctionInfo, err error) {
	src, err := c.ptxOf(image)
	if err != nil {
		return nil, err
	}
	kernels, err := ptx.Signatures(src)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", abi.ErrInvalidPTX, err)
	}
	for _, k := range kernels {
		f := abi.FunctionInfo{Name: k.Name}
		for _, p := range k.Params {
			f.Params = append(f.Params, abi.ParamInfo(p))
		}
		list = append(list, f)
	}
	return list, nil
}

func parsePTX(src string) (*ptx.Module, error) {
	mod, err := ptx.Parse(src)
	if err != nil {
		return nil, err
	}
	return mod, hasTarget(mod)
}

func hasTarget(mod *ptx.Module) error {
	if mod.Arch == 0 {
		return &ptx.Error{Line: 1, Msg: "the source has no .target directive with an architecture, such as sm_70"}
	}
	return nil
}

// ptxOf returns the PTX in an image: the text itself, or that of a fatbin.
func (c Capability) ptxOf(image []byte) (string, error) {
	s, err := c.sourceOf(image)
	if err != nil {
		return "", err
	}
	return s.read()
}

func (c Capability) sourceOf(image []byte) (source, error) {
	switch {
	case len(image) >= 4 && bytes.Equal(image[:4], []byte("\x7fELF")):
		return source{}, fmt.Errorf("%w: the image is a cubin, which is machine code: a soft GPU runs PTX (build with nvcc -gencode arch=compute_61,code=compute_61)", abi.ErrNoBinaryForGPU)
	case fatbin.Is(image):
		return c.fatbinPTX(image)
	}
	return source{text: string(bytes.TrimRight(image, "\x00"))}, nil
}
