package main

import (
	"bytes"
	"debug/elf"
	"fmt"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// offloadPreamble begins each PTX object of GCC's offloading (OpenACC, OpenMP), which embeds
// PTX in the host's program as C strings: that of the program and that of the device's
// libraries, which the driver links when the program starts. nvptx-none-as looks for the same
// preamble.
var offloadPreamble = []byte("// BEGIN PREAMBLE\n")

// offloadImage returns the PTX objects of a program as one image to be linked, or nil
// when it has none.
func offloadImage(file []byte) ([]byte, error) {
	f, err := elf.NewFile(bytes.NewReader(file))
	if err != nil {
		return nil, fmt.Errorf("read ELF file: %w", err)
	}
	var link abi.LinkImage
	for _, s := range f.Sections {
		if s.Type != elf.SHT_PROGBITS || s.Flags&elf.SHF_ALLOC == 0 || s.Flags&elf.SHF_EXECINSTR != 0 {
			continue
		}
		data, err := s.Data()
		if err != nil {
			return nil, fmt.Errorf("section %s: %w", s.Name, err)
		}
		for text := range bytes.SplitSeq(data, []byte{0}) {
			if bytes.HasPrefix(text, offloadPreamble) {
				name := fmt.Sprintf("PTX object %d", len(link.Objects))
				link.Objects = append(link.Objects, abi.LinkObject{Type: abi.LinkPTX, Name: name, Image: text})
			}
		}
	}
	if len(link.Objects) == 0 {
		return nil, nil
	}
	return link.Append(nil), nil
}
