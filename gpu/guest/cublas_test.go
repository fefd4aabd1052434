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

// TestCublas runs the C tests of the BLAS libraries (blas/), which compare results with
// sums computed in long double.
func TestCublas(t *testing.T) {
	g := startGPUD(t)
	if got := g.run(t, object("blas/test/blas")); got != "blas: OK\n" {
		t.Errorf("blas printed %q, want %q", got, "blas: OK\n")
	}
}

// Without a driver, and with a driver that finds no vGPU, programs start, and creating a
// handle fails.
func TestCublasWithoutDriver(t *testing.T) {
	hidden := t.TempDir() // an empty libcuda.so.1 hides a driver that this machine may have
	if err := os.WriteFile(filepath.Join(hidden, "libcuda.so.1"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, driver := range []string{hidden, made("lib")} {
		var none *gpud
		cmd := none.command(t, object("blas/nodriver"))
		cmd.Env = append(cmd.Env, "LD_LIBRARY_PATH="+driver+":"+made("lib", "cublas"))
		const want = "CUBLAS_STATUS_NOT_INITIALIZED CUBLAS_STATUS_NOT_INITIALIZED and none\n"
		if out, err := cmd.CombinedOutput(); err != nil || !strings.HasSuffix(string(out), want) {
			t.Errorf("with the driver in %s, nodriver printed %q (%v), want it to end with %q", driver, out, err, want)
		}
	}
}

// torchFunctions returns the functions that PyTorch 2.6 imports, by the library's name.
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
		t.Fatalf("blas/testdata/torch-2.6.txt has %v, want 54 functions of libcublas and 11 of libcublasLt", needs)
	}
	return needs
}

// Every symbol has the version node of its library, nothing else is exported, and all
// functions that PyTorch needs are exported.
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
				t.Errorf("%s exports %s with version %q, want only its own functions, with version %q", library, name, version, library)
			}
		}
		for _, name := range needs {
			if !have[name] {
				t.Errorf("%s does not export %s, which PyTorch 2.6 needs", library, name)
			}
		}
	}
}

// docs/cuda-blas.md has a row for each function that PyTorch needs, and no other rows.
func TestCublasDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/cuda-blas.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "## What PyTorch 2.6 uses")
	table, _, _ = strings.Cut(table, "\n## ")
	var want []string
	for _, names := range torchFunctions(t) {
		want = append(want, names...)
	}
	got := regexp.MustCompile(`cublas\w+`).FindAllString(table, -1)
	slices.Sort(got)
	slices.Sort(want)
	if !ok || !slices.Equal(got, want) {
		t.Errorf("docs/cuda-blas.md (section found: %v) has rows for %v, want %v", ok, got, want)
	}
}

// The kernels in the tree are compiled for compute capability 6.0 and later.
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
			t.Errorf("%s does not contain %q", path, ".target sm_60")
		}
	}
}
