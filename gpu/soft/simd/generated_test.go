package simd

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/basalt-gpu/basalt/appliance/test/kit/built"
)

func TestLoopsAreFresh(t *testing.T) {
	gen := built.Program(t, "gpu/soft/simd/gen")
	dir := t.TempDir()
	table, err := os.ReadFile("../ops/avx2.txt")
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"ops/avx2.txt": table, "simd/x": nil} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(gen)
	cmd.Dir = filepath.Join(dir, "simd")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("run gen: %v: %s", err, out)
	}
	for _, name := range []string{"avx2_amd64.s", "avx2_amd64.go"} {
		want, err := os.ReadFile(filepath.Join(cmd.Dir, name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s differs from the output of gen for avx2.txt: run go generate ./gpu/soft/simd", name)
		}
	}
}
