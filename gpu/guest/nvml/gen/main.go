// Command gen writes what follows from functions.txt: the guest's libnvidia-ml as far as
// nobody writes it by hand, its header, the test that calls every function, and
// docs/nvml-coverage.md. Run it with "go generate ./gpu/guest/nvml/gen".
package main

//go:generate go run .

import (
	"fmt"
	"log"
	"os"
	"path/filepath"
	"regexp"
)

func main() {
	log.SetFlags(0)
	if err := generate(); err != nil {
		log.Fatal(err)
	}
}

func generate() error {
	text, err := os.ReadFile("../functions.txt")
	if err != nil {
		return err
	}
	t, err := parse(string(text))
	if err != nil {
		return err
	}
	written, err := definitions("..")
	if err != nil {
		return err
	}
	if err := compare(t, written); err != nil {
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

// definition is a function that is written by hand, or one that a macro makes.
var definition = regexp.MustCompile(`(?m)^(?:NVML_API (?:nvmlReturn_t |const char \*)|[A-Z_]+\()(nvml[A-Z]\w+)\b`)

// definitions are the functions that are written by hand, and where.
func definitions(dir string) (map[string]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.c"))
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, f := range files {
		if filepath.Base(f) == "stubs_gen.c" {
			continue
		}
		text, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		for _, m := range definition.FindAllSubmatch(text, -1) {
			all[string(m[1])] = filepath.Base(f)
		}
	}
	return all, nil
}

// compare holds the table to what is written by hand.
func compare(t *table, written map[string]string) error {
	for _, f := range t.functions {
		file := written[f.name]
		if f.how == own && file == "" {
			return fmt.Errorf("%s is own in functions.txt, and no file of gpu/guest/nvml defines it", f.name)
		}
		if f.how != own && file != "" {
			return fmt.Errorf("%s is defined in %s, but functions.txt says %s", f.name, file, f.how)
		}
	}
	for name, file := range written {
		if t.by[name] == nil {
			return fmt.Errorf("%s defines %s, which has no row in functions.txt", file, name)
		}
	}
	return nil
}
