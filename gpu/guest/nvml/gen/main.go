// Command gen generates from functions.txt the functions of the guest's libnvidia-ml that
// are not written by hand, its header, the test that calls every function, and
// docs/nvml-coverage.md. Run it with "go generate ./gpu/guest/nvml/gen".
package main

//go:generate go run .

import (
	"fmt"
	"log"
	"os"
	"regexp"

	"github.com/basalt-gpu/basalt/gpu/cudaapi/written"
)

func main() {
	log.SetFlags(0)
	if err := generate(); err != nil {
		log.Fatal(err)
	}
}

// generate checks functions.txt against the functions that are written by hand, and writes
// all files.
func generate() error {
	text, err := os.ReadFile("../functions.txt")
	if err != nil {
		return err
	}
	t, err := parse(string(text))
	if err != nil {
		return err
	}
	byHand, err := written.Functions("..", definition)
	if err != nil {
		return err
	}
	if err := compare(t, byHand); err != nil {
		return err
	}
	for name, data := range map[string][]byte{
		"../functions.h":                    header(t),
		"../stubs_gen.c":                    stubs(t),
		"../../test/nvml_every_gen.c":       every(t),
		"../../../../docs/nvml-coverage.md": coverage(t),
	} {
		if err := os.WriteFile(name, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// definition matches the definition of a function that is written by hand, or that a macro
// expands to.
var definition = regexp.MustCompile(`(?m)^(?:NVML_API (?:nvmlReturn_t |const char \*)|[A-Z_]+\()(nvml[A-Z]\w+)\b`)

// compare returns an error if a function is own in the table and not written by hand, or the
// other way round.
func compare(t *table, byHand map[string]string) error {
	for _, f := range t.functions {
		file := byHand[f.name]
		if f.how == own && file == "" {
			return fmt.Errorf("%s is own in functions.txt, and no file of gpu/guest/nvml defines it", f.name)
		}
		if f.how != own && file != "" {
			return fmt.Errorf("%s is defined in %s, but functions.txt says %s", f.name, file, f.how)
		}
	}
	for name, file := range byHand {
		if t.by[name] == nil {
			return fmt.Errorf("%s defines %s, which has no row in functions.txt", file, name)
		}
	}
	return nil
}
