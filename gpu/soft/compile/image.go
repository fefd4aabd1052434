package compile

import (
	"bytes"
	"fmt"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/fatbin"
	"github.com/basalt-gpu/basalt/gpu/ptx"
)

// parseImage reads an image: PTX, a fatbin, or several of them to be linked.
func parseImage(image []byte) (*ptx.Module, error) {
	if !abi.IsLinkImage(image) {
		src, err := ptxOf(image)
		if err != nil {
			return nil, err
		}
		return parsePTX(src)
	}
	link, err := abi.DecodeLinkImage(image)
	if err != nil {
		return nil, err
	}
	var sources []ptx.Source
	total := 0
	for _, o := range link.Objects {
		src, err := ptxOf(o.Image)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.Name, err)
		}
		if total += len(src); total > ptx.MaxSource { // compressed objects grow
			return nil, fmt.Errorf("%w: %s: all objects together have more than %d bytes of PTX", abi.ErrInvalidImage, o.Name, ptx.MaxSource)
		}
		sources = append(sources, ptx.Source{Name: o.Name, Text: src})
	}
	objects, err := ptx.ParseObjects(sources)
	if err != nil {
		return nil, err
	}
	return ptx.Link(objects)
}

// Signatures lists the kernels of an image with their parameters. It reads no
// instructions and links nothing: what is wrong there, Parse finds. An error
// wraps an abi.Result.
func Signatures(image []byte) ([]abi.FunctionInfo, error) {
	if !abi.IsLinkImage(image) {
		return signatures(image)
	}
	link, err := abi.DecodeLinkImage(image)
	if err != nil {
		return nil, err
	}
	var list []abi.FunctionInfo
	for _, o := range link.Objects {
		more, err := signatures(o.Image)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.Name, err)
		}
		list = append(list, more...)
	}
	return list, nil
}

func signatures(image []byte) (list []abi.FunctionInfo, err error) {
	src, err := ptxOf(image)
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
	if mod.Arch == 0 {
		return nil, &ptx.Error{Line: 1, Msg: "no .target directive with an architecture, such as sm_70"}
	}
	return mod, nil
}

// ptxOf finds the PTX in an image: the text itself, or a fatbin's.
func ptxOf(image []byte) (string, error) {
	switch {
	case len(image) >= 4 && bytes.Equal(image[:4], []byte("\x7fELF")):
		return "", fmt.Errorf("%w: a soft GPU runs PTX, not machine code", abi.ErrNoBinaryForGPU)
	case fatbin.Is(image):
		return fatbinPTX(image)
	}
	return string(bytes.TrimRight(image, "\x00")), nil
}
