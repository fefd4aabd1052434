package container

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	oci "github.com/opencontainers/runtime-spec/specs-go"
	"tags.cncf.io/container-device-interface/pkg/cdi"
)

var update = flag.Bool("update", false, "write the golden files")

// fake returns a machine with the given nodes and with guest tools in the folder dir, so
// that its specification is the same everywhere except for the name of dir.
func fake(t *testing.T, nodes ...string) (m *Machine, dir string) {
	t.Helper()
	dir = t.TempDir()
	m = &Machine{Libraries: filepath.Join(dir, "lib"), Programs: filepath.Join(dir, "bin"), Absent: "/dev/dri has no render nodes"}
	for _, f := range []string{"lib/libcuda.so.1", "lib/libnvidia-ml.so.1", "lib/libbasalt-interop.so.1", "bin/basalt-cuda-run", "bin/nvidia-smi", "bin/basalt-container"} {
		write(t, filepath.Join(dir, f), "")
	}
	m.Nodes = nodes
	return m, dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// golden compares got with a file in testdata, which -update writes.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		write(t, path, got)
	}
	if want := read(t, path); got != want {
		t.Errorf("%s mismatch (-want +got):\n%s", path, cmp.Diff(want, got))
	}
}

// TestSpec checks the specification as text, and as the CDI library reads it: its version
// must be one that Podman 4.3 supports.
func TestSpec(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the golden file is for amd64")
	}
	m, dir := fake(t, "/dev/null", "/dev/zero") // device nodes that exist everywhere
	file := filepath.Join(dir, "cdi", "basalt.json")
	done, err := m.Renew(file)
	if err != nil || !strings.Contains(done, "(2) as nvidia.com/gpu=0") {
		t.Fatalf("Renew = %q, %v; want the names of 2 GPUs", done, err)
	}
	text := read(t, file)
	golden(t, "spec.json", strings.ReplaceAll(text, dir, "DIR"))
	s, err := cdi.ReadSpec(file, 0)
	if err != nil || s.Version != "0.5.0" {
		t.Fatalf("the CDI library reads %v, %v; want version 0.5.0", s, err)
	}
	cache, err := cdi.NewCache(cdi.WithSpecDirs(filepath.Dir(file)), cdi.WithAutoRefresh(false))
	if err != nil || len(cache.GetErrors()) > 0 {
		t.Fatalf("CDI cache: %v, errors %v, want none", err, cache.GetErrors())
	}
	for name, devices := range map[string]int{"0": 1, "1": 1, "all": 2} {
		var config oci.Spec
		if unresolved, err := cache.InjectDevices(&config, Kind+"="+name); err != nil {
			t.Errorf("inject device %s: unresolved %v, error %v", name, unresolved, err)
		} else if len(config.Linux.Devices) != devices || len(config.Linux.Resources.Devices) != devices || len(config.Mounts) != 14 {
			t.Errorf("device %s: %d devices, %d rules, %d mounts; want %d devices and rules, 14 mounts", name, len(config.Linux.Devices), len(config.Linux.Resources.Devices), len(config.Mounts), devices)
		}
	}
	if st, _ := os.Stat(file); st.Mode().Perm() != 0o644 {
		t.Errorf("mode of the specification = %v, want 0644: users other than root run containers too", st.Mode())
	}
}

// Renew replaces an old file, removes it when there is no vGPU, and writes it again.
func TestRenew(t *testing.T) {
	m, dir := fake(t, "/dev/null")
	file := filepath.Join(dir, "cdi", "basalt.json")
	write(t, file, "rubbish of an older version")
	steps := []struct {
		nodes []string
		want  string
	}{{[]string{"/dev/null"}, `"all"`}, {nil, ""}, {nil, ""}, {[]string{"/dev/null", "/dev/zero"}, `"1"`}}
	for i, s := range steps {
		m.Nodes = s.nodes
		if _, err := m.Renew(file); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(file)
		if s.want == "" && !errors.Is(err, os.ErrNotExist) || s.want != "" && !strings.Contains(string(text), s.want) {
			t.Errorf("step %d: specification %s (%v), want %q in it, or no file if that is empty", i, text, err, s.want)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "cdi", "*")); len(left) != 1 {
		t.Errorf("files in the folder = %q, want only the specification", left)
	}
	// If another vendor's file describes the same devices, engines use neither.
	write(t, filepath.Join(dir, "cdi", "nvidia.json"), read(t, file))
	if _, err := m.Renew(file); err == nil || !strings.Contains(err.Error(), "nvidia.json") {
		t.Errorf("Renew beside another file of the same devices: %v, want an error that names nvidia.json", err)
	}
}

func TestRenewWithoutTools(t *testing.T) {
	m, dir := fake(t, "/dev/null")
	if err := os.Remove(filepath.Join(dir, "lib", "libcuda.so.1")); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Renew(filepath.Join(dir, "s.json")); err == nil || !strings.Contains(err.Error(), "not installed: stat "+dir+"/lib/libcuda.so.1") {
		t.Errorf("Renew without libcuda: %v, want an error that the tools are not installed", err)
	}
	write(t, filepath.Join(dir, "lib", "musl"), "")
	if _, err := m.Renew(filepath.Join(dir, "s.json")); err == nil || !strings.Contains(err.Error(), "are musl's") {
		t.Errorf("Renew with the tools for musl: %v, want an error that they are musl's", err)
	}
}

func TestVGPUs(t *testing.T) {
	dir := t.TempDir()
	if nodes, absent := vgpus(dir, nil); nodes != nil || !strings.Contains(absent, dir+" has no render nodes") {
		t.Errorf("vgpus of an empty folder = %q, %q; want none, and that it has no render nodes", nodes, absent)
	}
	for _, n := range []string{"renderD130", "renderD128", "renderD1000", "renderD129", "card0"} {
		write(t, filepath.Join(dir, n), "")
	}
	except := func(names ...string) func(string) error {
		return func(path string) error {
			for _, n := range names {
				if filepath.Base(path) == n {
					return errors.New("its driver is i915")
				}
			}
			return nil
		}
	}
	nodes, absent := vgpus(dir, except("renderD128"))
	if got := strings.ReplaceAll(strings.Join(nodes, " "), dir+"/", ""); got != "renderD129 renderD130 renderD1000" || absent != "" {
		t.Errorf("vgpus = %q, reason %q; want renderD129 renderD130 renderD1000 and no reason", got, absent)
	}
	if nodes, absent := vgpus(dir, except("renderD128", "renderD129", "renderD130", "renderD1000")); nodes != nil || strings.Count(absent, "i915") != 4 {
		t.Errorf("vgpus with nodes of another driver only = %q, %q; want none and 4 reasons", nodes, absent)
	}
	if err := isVGPU("/dev/null"); err == nil || !strings.Contains(err.Error(), "not a DRM device") {
		t.Errorf("isVGPU(/dev/null) = %v, want that it is not a DRM device", err)
	}
	if err := isVGPU(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("isVGPU of a file that does not exist = %v, want %v", err, os.ErrNotExist)
	}
}

// With BASALT_GPU the machine has one GPU, which is a socket.
func TestSocket(t *testing.T) {
	m, dir := fake(t)
	m.Socket = filepath.Join(dir, "gpud.sock")
	text, err := m.Text()
	if err != nil {
		t.Fatal(err)
	}
	var s struct {
		Devices []struct {
			Name           string
			ContainerEdits struct {
				Env    []string
				Mounts []struct{ HostPath, ContainerPath string }
			}
		}
	}
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	if len(s.Devices) != 2 || s.Devices[1].ContainerEdits.Env[0] != "BASALT_GPU=unix:"+m.Socket || s.Devices[1].ContainerEdits.Mounts[0].ContainerPath != m.Socket {
		t.Errorf("devices = %+v, want 2 with BASALT_GPU and the mounted socket", s.Devices)
	}
	for _, bad := range []string{"tcp:1.2.3.4", "unix:relative", "unix:/nonexistent/socket"} {
		t.Setenv("BASALT_GPU", bad)
		if _, err := ThisMachine(); err == nil || !strings.Contains(err.Error(), bad) {
			t.Errorf("ThisMachine with BASALT_GPU=%s: %v, want an error that names it", bad, err)
		}
	}
}
