// Package written finds the functions of a library that are written by hand in C,
// so that the generators can compare tables with them.
package written

import (
	"os"
	"path/filepath"
	"regexp"
)

// Functions returns the functions of the C files in a folder, with the file of
// each, by name. Their names are matched by the first group of the expression.
// Generated files (stubs_gen.c) are skipped.
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
