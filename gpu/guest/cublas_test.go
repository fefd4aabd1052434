package guest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The BLAS libraries (blas/) against sums in long double, as their tests in C have them.
func TestCublas(t *testing.T) {
	g := startGPUD(t)
	if got := g.run(t, object("blas/test/blas")); got != "blas: OK\n" {
		t.Errorf("it printed %q", got)
	}
}

// Without a driver, and with one that has no vGPU, programs start and get no handle.
func TestCublasWithoutDriver(t *testing.T) {
	hidden := t.TempDir() // an empty file in its place hides a driver that this machine may have
	if err := os.WriteFile(filepath.Join(hidden, "libcuda.so.1"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, driver := range []string{hidden, made("lib")} {
		var none *gpud
		cmd := none.command(t, object("blas/nodriver"))
		cmd.Env = append(cmd.Env, "LD_LIBRARY_PATH="+driver+":"+made("lib", "cublas"))
		const want = "CUBLAS_STATUS_NOT_INITIALIZED CUBLAS_STATUS_NOT_INITIALIZED and none\n"
		if out, err := cmd.CombinedOutput(); err != nil || !strings.HasSuffix(string(out), want) {
			t.Errorf("with the driver of %s: %v, it printed %q", driver, err, out)
		}
	}
}

// torchFunctions is what PyTorch 2.6 takes from each library, by its name.
func torchFunctions(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("blas/testdata/torch-2.6.txt")
	if err != nil {
		t.Fatal(err)
	}
	needs, library := map[string][]string{}, ""
	for line := range strings.Lines(string(text)) {
		switch line = strings.TrimSpace(line); {
		case strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "lib"):
			library = line
		default:
			needs[library] = append(needs[library], line)
		}
	}
	if len(needs["libcublas.so.12"]) != 54 || len(needs["libcublasLt.so.12"]) != 11 {
		t.Fatalf("blas/testdata/torch-2.6.txt has %v, want 54 and 11 functions", needs)
	}
	return needs
}

// Every symbol has the version node of its library, nothing else is exported, and
// what PyTorch needs is there.
func TestCublasExports(t *testing.T) {
	for library, needs := range torchFunctions(t) {
		out, err := exec.Command("nm", "-D", "--defined-only", made("lib", "cublas", library)).Output()
		if err != nil {
			t.Fatal(err)
		}
		have := map[string]bool{}
		for line := range strings.Lines(string(out)) {
			f := strings.Fields(line)
			name, version, _ := strings.Cut(f[len(f)-1], "@@")
			if f[1] == "A" { // the version node itself
				continue
			}
			have[name] = true
			if version != library || strings.HasPrefix(name, "cublasLt") != (library == "libcublasLt.so.12") {
				t.Errorf("%s exports %s with version %q", library, name, version)
			}
		}
		for _, name := range needs {
			if !have[name] {
				t.Errorf("%s lacks %s", library, name)
			}
		}
	}
}

// docs/cuda-blas.md has a row for each function that PyTorch needs, and no other.
func TestCublasDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/cuda-blas.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "## What PyTorch 2.6 takes")
	table, _, _ = strings.Cut(table, "\n## ")
	var want []string
	for _, names := range torchFunctions(t) {
		want = append(want, names...)
	}
	got := regexp.MustCompile(`cublas\w+`).FindAllString(table, -1)
	slices.Sort(got)
	slices.Sort(want)
	if !ok || !slices.Equal(got, want) {
		t.Errorf("docs/cuda-blas.md has %v, want %v", got, want)
	}
}

// The kernels in the tree are for GPUs from compute capability 6.0 on.
func TestCublasKernels(t *testing.T) {
	modules, err := filepath.Glob("blas/ptx/*.ptx")
	if err != nil || len(modules) != 17 {
		t.Fatalf("blas/ptx has %d modules (%v), want 17", len(modules), err)
	}
	for _, path := range modules {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "\n.target sm_60\n") {
			t.Errorf("%s is not for sm_60", path)
		}
	}
}
