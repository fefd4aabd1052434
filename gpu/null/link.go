package null

import (
	"bytes"
	"fmt"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/fatbin"
	"github.com/basalt-gpu/basalt/gpu/ptx"
)

// readLinked returns the combined outline of the objects of an image. It does not
// look for names that only instructions use.
func readLinked(image []byte) (*outline, error) {
	l, err := abi.DecodeLinkImage(image)
	if err != nil {
		return nil, err
	}
	if linked := l.Linked(); linked != nil {
		if o, err := read(linked); err == nil {
			return o, nil
		}
	}
	all := &outline{}
	var sources []ptx.Source
	for _, object := range l.Objects {
		if object.Type == abi.LinkHostObject || object.Type == abi.LinkLibrary {
			continue // device functions, which other objects call
		}
		if !fatbin.IsELF(object.Image) && !fatbin.Is(object.Image) {
			sources = append(sources, ptx.Source{Name: object.Name, Text: string(bytes.TrimRight(object.Image, "\x00"))})
			continue
		}
		o, err := read(object.Image)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", object.Name, err)
		}
		all.add(o)
	}
	objects, err := ptx.OutlineObjects(sources)
	if err != nil {
		return nil, fmt.Errorf("%w: ptx: %w", abi.ErrInvalidPTX, err)
	}
	mod, err := ptx.Link(objects)
	if err != nil {
		return nil, fmt.Errorf("%w: ptx: %w", abi.ErrInvalidPTX, err)
	}
	o, err := outlineOf(mod)
	if err != nil {
		return nil, err
	}
	all.add(o)
	return all, nil
}

func (o *outline) add(p *outline) {
	o.arch = max(o.arch, p.arch)
	o.kernels = append(o.kernels, p.kernels...)
	o.vars = append(o.vars, p.vars...)
}
