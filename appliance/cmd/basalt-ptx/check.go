package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/basalt-gpu/basalt/gpu/fatbin"
	"github.com/basalt-gpu/basalt/gpu/ptx"
	"github.com/basalt-gpu/basalt/gpu/soft/compile"
)

// Image is one module of a file.
type Image struct {
	File    string   `json:"file"`
	Number  int      `json:"number"`          // index within a file with several modules
	Error   string   `json:"error,omitempty"` // why the module is refused
	Kernels []Kernel `json:"kernels"`
}

// Kernel is one kernel of a module.
type Kernel struct {
	Name string `json:"name"`
	Runs bool   `json:"runs"`
	Line int    `json:"line,omitempty"` // line of the PTX of the refused instruction
	// Rule is the rule of PTX that the instruction violates, or the feature that is not
	// implemented.
	Rule        string `json:"rule,omitempty"`
	Instruction string `json:"instruction,omitempty"`
	Why         string `json:"why,omitempty"` // the whole error
}

func check(name string) ([]Image, error) {
	images, err := readImages(name)
	if err != nil {
		return nil, err
	}
	var list []Image
	for n, b := range images {
		i := compiled(b)
		i.File, i.Number = name, n
		list = append(list, i)
	}
	return list, nil
}

// readImages returns the modules in a file.
func readImages(name string) ([][]byte, error) {
	file, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	images, err := imagesOf(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return images, nil
}

// imagesOf returns the modules in the content of a file.
func imagesOf(file []byte) ([][]byte, error) {
	if !fatbin.IsELF(file) && !fatbin.IsArchive(file) {
		return [][]byte{file}, nil
	}
	list, err := fatbin.Objects(file)
	if err != nil {
		return nil, fmt.Errorf("read the images of the file: %w", err)
	}
	if fatbin.IsELF(file) {
		image, err := offloadImage(file)
		if err != nil {
			return nil, err
		}
		if image != nil {
			list = append(list, image)
		}
	}
	if len(list) == 0 {
		return nil, errors.New("the file contains no fatbin and no PTX of GCC's offloading: a cubin is machine code, which a soft GPU cannot run; keep the PTX (nvcc -gencode arch=compute_61,code=compute_61)")
	}
	return list, nil
}

// compiled compiles a module as a soft GPU does, and returns which kernels it can run.
func compiled(image []byte) (i Image) {
	kernels, err := compile.DefaultCapability.Check(image)
	if err != nil {
		i.Error = err.Error()
	}
	for _, k := range kernels {
		v := Kernel{Name: k.Name, Runs: k.Err == nil}
		if k.Err != nil {
			v.Why = k.Err.Error()
		}
		var where *ptx.Error
		if errors.As(k.Err, &where) {
			v.Line, v.Rule, v.Instruction = where.Line, where.Msg, where.Text
		}
		i.Kernels = append(i.Kernels, v)
	}
	return i
}

func (i Image) refused() (n int) {
	for _, k := range i.Kernels {
		if !k.Runs {
			n++
		}
	}
	return n
}

func (i Image) refuses() bool { return i.Error != "" || i.refused() > 0 }

func (i Image) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s", i.File)
	if i.Number > 0 {
		fmt.Fprintf(&b, ", image %d", i.Number)
	}
	if i.Error != "" {
		fmt.Fprintf(&b, ": refused: %s\n", i.Error)
		return b.String()
	}
	fmt.Fprintf(&b, ": %d of %d kernels refused\n", i.refused(), len(i.Kernels))
	for _, k := range i.Kernels {
		if k.Runs {
			fmt.Fprintf(&b, "  runs     %s\n", k.Name)
		} else {
			fmt.Fprintf(&b, "  refused  %s: %s\n", k.Name, k.Why)
		}
	}
	return b.String()
}
