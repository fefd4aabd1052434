// Command gen generates files from functions.txt: the guest library's header,
// stubs and table of cuGetProcAddress, the worker's and the drivers' side of the
// commands, and docs/cuda-coverage.md. Run it with "go generate ./gpu/cudaapi".
package main

import (
	"fmt"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/basalt-gpu/basalt/gpu/cudaapi"
	"github.com/basalt-gpu/basalt/gpu/cudaapi/written"
)

const guest = "../guest"

func main() {
	log.SetFlags(0)
	if err := generate(); err != nil {
		log.Fatal(err)
	}
}

func generate() error {
	text, err := os.ReadFile("functions.txt")
	if err != nil {
		return err
	}
	t, err := cudaapi.Parse(string(text))
	if err != nil {
		return err
	}
	inC, err := written.Functions(filepath.Join(guest, "src"), definition)
	if err != nil {
		return err
	}
	if err := compare(t, inC); err != nil {
		return err
	}
	commands, err := t.Commands()
	if err != nil {
		return err
	}
	byHand, err := methods()
	if err != nil {
		return err
	}
	workerGo, err := workerCalls(commands)
	if err != nil {
		return err
	}
	workerTestGo, err := workerTest(commands)
	if err != nil {
		return err
	}
	passed := slices.DeleteFunc(slices.Clone(commands), func(c cudaapi.Command) bool { return byHand[c.Name] })
	cardGo, err := cardCalls(passed)
	if err != nil {
		return err
	}
	cardTestGo, err := cardTest(passed)
	if err != nil {
		return err
	}
	inDouble, err := doubled()
	if err != nil {
		return err
	}
	for name, data := range map[string][]byte{
		"../worker/calls_gen.go":                   workerGo,
		"../worker/calls_gen_test.go":              workerTestGo,
		card + "/calls_gen.go":                     cardGo,
		card + "/calls_gen_test.go":                cardTestGo,
		card + "/testdata/double_gen.c":            cardDouble(passed, inDouble),
		guest + "/include/basalt_cuda_types.h":     typesHeader(t),
		guest + "/include/basalt_cuda_functions.h": functionsHeader(t),
		guest + "/src/proc_table.c":                procTable(t),
		guest + "/src/stubs_gen.c":                 stubs(t, commands),
		guest + "/test/every_function_gen.c":       everyFunction(t),
		guest + "/test/exact_calls_gen.c":          exactCalls(commands),
		"../../docs/cuda-coverage.md":              coverage(t),
	} {
		if err := os.WriteFile(name, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

var definition = regexp.MustCompile(`(?m)^CUDA_API CUresult (cu\w+)\(`)

// compare compares the table with the functions that are written by hand.
func compare(t *cudaapi.Table, inC map[string]string) error {
	for _, f := range t.Functions {
		file := inC[f.Symbol]
		if f.Implementation == cudaapi.Own && file == "" {
			return fmt.Errorf("%s is own in functions.txt, but no file in %s/src defines it", f.Symbol, guest)
		}
		if f.Implementation != cudaapi.Own && file != "" {
			return fmt.Errorf("%s is defined in %s/src/%s, but functions.txt says %s", f.Symbol, guest, file, f.Implementation)
		}
	}
	for symbol, file := range inC {
		if t.Function(symbol) == nil {
			return fmt.Errorf("%s/src/%s defines %s, which has no row in functions.txt", guest, file, symbol)
		}
	}
	return nil
}
