package guest_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// These tests use the runtime library (runtime/) as its users do: with programs that
// clang built with our headers, with programs in C, and through the dynamic loader.

// cudaPrograms builds all CUDA programs once and returns make's output.
var cudaPrograms = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("make", "--no-print-directory", "-j2", "BUILD="+filepath.Dir(outDir), "cudaprograms").CombinedOutput()
	return string(out), err
})

// cudaProgram builds all CUDA programs once and returns the path of one.
func cudaProgram(t *testing.T, name string) string {
	t.Helper()
	if _, err := exec.LookPath("clang++-19"); err != nil {
		t.Skip("clang++-19 is not installed (package clang-19): no CUDA program can be built")
	}
	if out, err := cudaPrograms(); err != nil {
		t.Fatalf("make cudaprograms: %v\n%s", err, out)
	}
	return object(filepath.Join("cuda", name))
}

func TestCUDAPrograms(t *testing.T) {
	g := startGPUD(t)
	for _, name := range []string{"reduction", "matmul", "histogram", "scan", "stencil", "streams", "symbols", "templates",
		"memory", "managed", "graphs", "nodes", "devices", "errors", "math", "libdevice", "threads", "perthread", "printf", "textures"} {
		t.Run(name, func(t *testing.T) {
			program := cudaProgram(t, name)
			if got, want := g.run(t, made("bin", "basalt-cuda-run"), program), name+": OK\n"; got != want {
				t.Errorf("%s printed %q, want %q", name, got, want)
			}
		})
	}
	t.Run("series", func(t *testing.T) {
		if got := g.run(t, made("bin", "basalt-cuda-run"), withoutLibdevice(t, cudaProgram(t, "math"))); got != "math: OK\n" {
			t.Errorf("math without libdevice printed %q, want %q", got, "math: OK\n")
		}
	})
	t.Run("loader", func(t *testing.T) {
		program := cudaProgram(t, "loader")
		if got := g.run(t, made("bin", "basalt-cuda-run"), program, object("cuda/plugin.so")); got != "loader: OK\nat exit\n" {
			t.Errorf("loader printed %q, want %q", got, "loader: OK\nat exit\n")
		}
	})
}

// TestBenchSoft runs the kernels of the soft GPU's benchmark with small sizes, and compares
// their results with the same computation in C.
func TestBenchSoft(t *testing.T) {
	program := cudaProgram(t, "../bench-soft")
	for _, engine := range []string{"automatic", "interpreted", "compiled"} {
		t.Run(engine, func(t *testing.T) {
			g := startGPUDWith(t, "--soft-gpu", "vram=256MiB,engine="+engine)
			cmd := g.command(t, made("bin", "basalt-cuda-run"), program, "smoke")
			cmd.Env = append(cmd.Env, "OMP_NUM_THREADS=2", "OMP_WAIT_POLICY=passive")
			if out, err := cmd.CombinedOutput(); err != nil || string(out) != "bench-soft: OK\n" {
				t.Errorf("bench-soft smoke printed %q (%v), want %q", out, err, "bench-soft: OK\n")
			}
		})
	}
}

// withoutLibdevice returns a copy of a program whose kernels compute with the series of
// the headers, as they do on a physical GPU: the functions in its PTX are renamed, so that
// the soft GPU does not replace them with its own.
func withoutLibdevice(t *testing.T, program string) string {
	b, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	const weak = ".weak .func  (.param .b64 func_retval0) __nv_sin"
	if !bytes.Contains(b, []byte(weak)) {
		t.Fatalf("%s has no PTX with %q", program, weak)
	}
	path := filepath.Join(t.TempDir(), filepath.Base(program))
	if err := os.WriteFile(path, bytes.ReplaceAll(b, []byte("__nv_"), []byte("__my_")), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	return path
}

// Programs in C, one for each version, check the version node of every exported function
// and the layout of the device's properties, and call each function with zeros and with
// invalid arguments.
func TestCudartVersions(t *testing.T) {
	g := startGPUD(t)
	for major, soname := range map[string]string{"11": "libcudart.so.11.0", "12": "libcudart.so.12", "13": "libcudart.so.13"} {
		got := g.run(t, made("bin", "basalt-cuda-run"), object("user-"+major), soname)
		if !strings.HasPrefix(got, "user: "+major) || !strings.HasSuffix(got, " of Basalt Soft GPU: OK\n") {
			t.Errorf("user-%s printed %q, want %q at its start and %q at its end", major, got, "user: "+major, " of Basalt Soft GPU: OK\n")
		}
		if got, want := g.run(t, made("bin", "basalt-cuda-run"), object("bad-"+major)), "bad: "+major+": OK\n"; got != want {
			t.Errorf("bad-%s printed %q, want %q", major, got, want)
		}
	}
}

// Calls of graphs, pools, textures and peers are translated to the calls that the driver
// expects. A fake driver checks the arguments, because no vGPU supports all of them.
func TestCudartTranslation(t *testing.T) {
	cmd := exec.Command(object("translate"))
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+object("fakedriver")+":"+made("lib"))
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "translate: OK\n" {
		t.Errorf("translate: %v, want success and %q; it printed\n%s", err, "translate: OK\n", out)
	}
}

// torchNeeds lists the functions that PyTorch 2.6 (with gloo) imports from the shared
// library, without their prefix cuda.
const torchNeeds = `DeviceCanAccessPeer DeviceEnablePeerAccess DeviceGetAttribute DeviceGetDefaultMemPool
DeviceGetPCIBusId DeviceGetStreamPriorityRange DeviceSynchronize DriverGetVersion EventCreate EventCreateWithFlags EventDestroy
EventElapsedTime EventQuery EventRecord EventSynchronize Free FreeAsync FreeHost FuncGetAttributes FuncSetAttribute GetDevice
GetDeviceCount GetDeviceProperties_v2 GetErrorName GetErrorString GetLastError GraphDebugDotPrint GraphDestroy GraphExecDestroy
GraphGetNodes GraphInstantiate GraphInstantiateWithFlags GraphLaunch HostAlloc HostGetDevicePointer HostRegister HostUnregister
IpcCloseMemHandle IpcGetEventHandle IpcGetMemHandle IpcOpenEventHandle IpcOpenMemHandle LaunchHostFunc LaunchKernel
LaunchKernelExC Malloc MallocAsync MemGetInfo MemPoolGetAttribute MemPoolSetAccess MemPoolSetAttribute MemPoolTrimTo Memcpy
MemcpyAsync MemcpyPeerAsync Memset MemsetAsync OccupancyMaxActiveBlocksPerMultiprocessorWithFlags PeekAtLastError
PointerGetAttributes ProfilerStart ProfilerStop RuntimeGetVersion SetDevice StreamBeginCapture StreamCreate
StreamCreateWithPriority StreamDestroy StreamEndCapture StreamGetCaptureInfo_v2 StreamGetPriority StreamIsCapturing StreamQuery
StreamSynchronize StreamWaitEvent ThreadExchangeStreamCaptureMode`

// Every symbol has the version node of its library, nothing else is exported, and all
// functions that PyTorch needs are exported.
func TestCudartExports(t *testing.T) {
	for _, soname := range []string{"libcudart.so.11.0", "libcudart.so.12", "libcudart.so.13"} {
		out, err := exec.Command("nm", "-D", "--defined-only", made("lib", soname)).Output()
		if err != nil {
			t.Fatal(err)
		}
		have := map[string]bool{}
		for line := range strings.Lines(string(out)) {
			f := strings.Fields(line)
			name, version, _ := strings.Cut(f[len(f)-1], "@@")
			have[name] = true
			if f[1] == "A" { // the version node itself
				continue
			}
			if version != soname || !strings.HasPrefix(strings.TrimPrefix(name, "__"), "cuda") {
				t.Errorf("%s exports %s with version %q, want only names with cuda at their start, with version %q", soname, name, version, soname)
			}
		}
		for _, n := range strings.Fields(torchNeeds) {
			if soname == "libcudart.so.12" && !have["cuda"+n] {
				t.Errorf("%s does not export cuda%s, which PyTorch 2.6 needs", soname, n)
			}
		}
	}
}

// Each function that libcudart.so.12 exports and does not refuse is called by a program
// here as it is meant to be used, or to check that a vGPU rejects it. bad-12 calls every
// function with invalid arguments.
func TestRuntimeFunctionsSucceed(t *testing.T) {
	cudaProgram(t, "graphs")
	programs, err := filepath.Glob(object("cuda/*"))
	if err != nil || len(programs) < 10 {
		t.Fatalf("%d CUDA programs were built, want at least 10: %v, %v", len(programs), programs, err)
	}
	out, err := exec.Command("nm", append([]string{"-D", "-u", object("user-12")}, programs...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	called := map[string]bool{}
	for word := range strings.FieldsSeq(string(out)) {
		name, _, _ := strings.Cut(word, "@")
		called[strings.TrimSuffix(strings.TrimSuffix(name, "_ptsz"), "_ptds")] = true
	}
	table, err := os.ReadFile("runtime/table/functions.txt")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile(`(?m)^(\d+)-(\d+) \S+ (\S+) \| .*?(cuda\w+)\(`)
	for _, f := range row.FindAllStringSubmatch(string(table), -1) {
		if f[1] <= "12" && f[2] >= "12" && f[3] != "refuse" && !called[f[4]] {
			t.Errorf("no program calls %s: add a call to gpu/guest/runtime/test/devices.cu or nodes.cu", f[4])
		}
	}
}

func TestCudartGeneratedFilesAreFresh(t *testing.T) {
	cmd := exec.Command("go", "run", "./gen", "-check")
	cmd.Dir = "runtime"
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go run ./gen -check in runtime: %v\n%s", err, out)
	}
}

// Without a driver a program starts, and its calls return the error for a missing driver.
func TestCudartWithoutDriver(t *testing.T) {
	var none *gpud
	alone := t.TempDir()
	library, err := os.ReadFile(made("lib", "libcudart.so.12"))
	if err != nil {
		t.Fatal(err)
	}
	// An empty libcuda.so.1 hides a driver that this machine may have.
	for name, content := range map[string][]byte{"libcudart.so.12": library, "libcuda.so.1": nil} {
		if err := os.WriteFile(filepath.Join(alone, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for dir, want := range map[string]string{
		made("lib"): "no CUDA-capable device is detected (100)",
		alone:       "CUDA driver version is insufficient for CUDA runtime version (35)",
	} {
		cmd := none.command(t, object("user-12"), "libcudart.so.12")
		cmd.Env = append(cmd.Env, "LD_LIBRARY_PATH="+dir)
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), want) {
			t.Errorf("user-12 with the libraries of %s printed %q (%v), want a failure and %q", dir, out, err, want)
		}
	}
}

func TestCudaRun(t *testing.T) {
	cmd := exec.Command(made("bin", "basalt-cuda-run"), "sh", "-c", "echo $LD_LIBRARY_PATH")
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH=/opt/other")
	out, err := cmd.CombinedOutput()
	first, rest, _ := strings.Cut(strings.TrimSpace(string(out)), ":")
	if err != nil || rest != "/opt/other" {
		t.Errorf("LD_LIBRARY_PATH under basalt-cuda-run = %q (%v), want a folder and then /opt/other", out, err)
	}
	if same, err := os.Stat(filepath.Join(first, "libcudart.so.12")); err != nil || same.Size() == 0 {
		t.Errorf("the first folder of LD_LIBRARY_PATH, %s, has no libcudart.so.12: %v", first, err)
	}
	cmd = exec.Command(made("bin", "basalt-cuda-run"), "--cublas", "sh", "-c", `test -f "${LD_LIBRARY_PATH##*:}/libcublas.so.12"`)
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("with --cublas, the last folder of LD_LIBRARY_PATH has no libcublas.so.12: %v\n%s", err, out)
	}
	if out, err := exec.Command(made("bin", "basalt-cuda-run")).CombinedOutput(); err == nil || !strings.HasPrefix(string(out), "usage: ") {
		t.Errorf("basalt-cuda-run without a program: %v, %q; want a failure and %q", err, out, "usage: ")
	}
}

// The installer puts the libraries beside a vendor's, and makes them the default only
// when BASALT_CUDART and BASALT_CUBLAS request it.
func TestInstallCudart(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("the installer needs root")
	}
	dest := t.TempDir()
	for _, step := range []struct {
		choice      string
		fails, conf bool
	}{{"", false, false}, {"default", false, true}, {"", false, true}, {"beside", false, false}, {"maybe", true, false}} {
		cmd := exec.Command(made("install.sh"))
		cmd.Env = append(os.Environ(), "DESTDIR="+dest, "BASALT_CUDART="+step.choice, "BASALT_CUBLAS="+step.choice)
		if out, err := cmd.CombinedOutput(); (err != nil) != step.fails {
			t.Fatalf("install.sh with BASALT_CUDART=%q: %v, want an error: %v\n%s", step.choice, err, step.fails, out)
		}
		for _, library := range []string{"cudart", "cublas"} {
			conf := filepath.Join(dest, "etc/ld.so.conf.d/00-basalt-"+library+".conf")
			if _, err := os.Stat(conf); (err == nil) != step.conf {
				t.Errorf("after BASALT_CUDART=%q: stat %s: %v, want the file to exist: %v", step.choice, conf, err, step.conf)
			}
		}
	}
	for _, f := range []string{"usr/lib/basalt/cudart/libcudart.so.11.0", "usr/lib/basalt/cudart/libcudart.so.12",
		"usr/lib/basalt/cudart/libcudart.so.13", "usr/include/basalt/cuda/cuda_runtime.h", "usr/lib/basalt/bin/basalt-cuda-run",
		"usr/lib/basalt/cublas/libcublas.so.12", "usr/lib/basalt/cublas/libcublasLt.so.12", "usr/include/basalt/cuda/cublas_v2.h",
		"usr/lib/basalt/bin/basalt-clang"} {
		if _, err := os.Stat(filepath.Join(dest, f)); err != nil {
			t.Errorf("the installer has not installed a file: %v", err)
		}
	}
	if _, err := os.Stat(filepath.Join(dest, "usr/lib/basalt/libcudart.so.12")); err == nil {
		t.Error("the installer put libcudart.so.12 into usr/lib/basalt, where the loader finds it by default")
	}
}
