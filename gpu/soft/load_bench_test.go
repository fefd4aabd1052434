package soft_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/worker"
)

// compilersNames are the names in the PTX of testdata that modules share: kernels,
// and variables and functions outside of them.
var compilersNames = regexp.MustCompile(`(?m)^(?:\.visible |\.extern |\.weak )*\.(?:entry|func|shared|global|const)(?: \.align \d+)?(?: \.[bu]\d+)?(?:  ?\([^)]*\))? ([\w$]+)`)

// bigModule is at least so many bytes of PTX: the kernels of testdata as clang wrote
// them, over and over under other names.
func bigModule(b *testing.B, bytes int) []byte {
	files := []string{"basic", "block", "flow", "matrix", "tile", "wait"}
	var src strings.Builder
	src.WriteString(".version 8.0\n.target sm_90\n.address_size 64\n")
	for n := 0; src.Len() < bytes; n++ {
		src.WriteString(renamed(kernelFile(b, files[n%len(files)]), n))
	}
	return []byte(src.String())
}

// renamed returns a file's text without its head, with a number behind its names.
func renamed(text string, n int) string {
	for _, head := range []string{".version", ".target", ".address_size"} {
		text = regexp.MustCompile(`(?m)^\`+head+`.*$`).ReplaceAllString(text, "")
	}
	for _, m := range compilersNames.FindAllStringSubmatch(text, -1) {
		text = regexp.MustCompile(`\b`+regexp.QuoteMeta(m[1])+`\b`).ReplaceAllString(text, fmt.Sprintf("%s_%d", m[1], n))
	}
	return text
}

// BenchmarkModuleLoad loads 10 MB of PTX. Baseline: BenchmarkModuleCopy.
func BenchmarkModuleLoad(b *testing.B) {
	src := bigModule(b, 10_000_000)
	r := newRig(b, ptxHead)
	b.ResetTimer()
	for range b.N {
		m, _, info, err := r.c.ModuleLoad(src, worker.ModuleOptions{})
		if err != nil {
			b.Fatalf("%v\n%s", err, info.ErrorLog)
		}
		if err := r.c.ModuleUnload(m); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkModuleCopy copies the same text.
func BenchmarkModuleCopy(b *testing.B) {
	src := bigModule(b, 10_000_000)
	to := make([]byte, len(src))
	for b.Loop() {
		copy(to, src)
	}
}
