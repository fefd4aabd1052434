// Package written finds what of a library is written by hand in C, so that the
// generators of tables can hold these to it.
package written

import (
	"os"
	"path/filepath"
	"regexp"
)

// Functions are those of the C files in a folder whose names the expression's first
// group finds, by name, with the file of each. What is generated (stubs_gen.c) is
// left out.
func Functions(dir string, definition *regexp.Regexp) (map[string]string, error) {
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
