package soft_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/worker"
)

// compilersNames matches the names in the PTX of testdata that modules share: kernels,
// and variables and functions outside of them.
var compilersNames = regexp.MustCompile(`(?m)^(?:\.visible |\.extern |\.weak )*\.(?:entry|func|shared|global|const)(?: \.align \d+)?(?: \.[bu]\d+)?(?:  ?\([^)]*\))? ([\w$]+)`)

// bigModule returns 10 MB of PTX: the kernels of testdata as clang wrote them, repeated
// with other names.
var bigModule = sync.OnceValue(func() []byte {
	var files []string
	for _, name := range []string{"basic", "block", "flow", "matrix", "tile", "wait"} {
		text, err := os.ReadFile("testdata/kernels/" + name + ".ptx")
		if err != nil {
			panic(err)
		}
		files = append(files, marked(string(text)))
	}
	var src strings.Builder
	src.WriteString(".version 8.0\n.target sm_90\n.address_size 64\n")
	for n := 0; src.Len() < 10_000_000; n++ {
		src.WriteString(strings.ReplaceAll(files[n%len(files)], nameMark, fmt.Sprintf("_%d", n)))
	}
	return []byte(src.String())
})

// nameMark is replaced by the number of a copy.
const nameMark = "#"

// marked returns a file's text without its head, with nameMark after its names.
func marked(text string) string {
	text = regexp.MustCompile(`(?m)^\.(version|target|address_size) .*$`).ReplaceAllString(text, "")
	var names []string
	for _, m := range compilersNames.FindAllStringSubmatch(text, -1) {
		names = append(names, regexp.QuoteMeta(m[1]))
	}
	return regexp.MustCompile(`\b(?:`+strings.Join(names, "|")+`)\b`).ReplaceAllString(text, "${0}"+nameMark)
}

// BenchmarkModuleLoad loads 10 MB of PTX: only the heads of functions, as the guest's
// library does, and every kernel compiled. Baseline: BenchmarkModuleCopy.
func BenchmarkModuleLoad(b *testing.B) {
	b.Run("lazy", func(b *testing.B) { benchmarkLoad(b, worker.ModuleOptions{Lazy: true}) })
	b.Run("whole", func(b *testing.B) { benchmarkLoad(b, worker.ModuleOptions{}) })
}

func benchmarkLoad(b *testing.B, o worker.ModuleOptions) {
	src := bigModule()
	r := newRig(b, ptxHead)
	b.ResetTimer()
	for range b.N {
		m, _, info, err := r.c.ModuleLoad(src, o)
		if err != nil {
			b.Fatalf("load module: %v\n%s", err, info.ErrorLog)
		}
		if err := r.c.ModuleUnload(m); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkModuleCopy copies the same text.
func BenchmarkModuleCopy(b *testing.B) {
	src := bigModule()
	to := make([]byte, len(src))
	for b.Loop() {
		copy(to, src)
	}
}
