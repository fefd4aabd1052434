//go:build cgo

package guest_test

import (
	"bufio"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// walkEnv makes the test binary a program that walks through libnvidia-ml: its value
// is the library's path. A call that crashes ends only that process.
const walkEnv = "BASALT_TEST_WALK_NVML"

func init() {
	if path := os.Getenv(walkEnv); path != "" {
		os.Exit(walkNVML(path))
	}
}

// go-nvml, a client that is not ours, calls every method that it has of the library and
// of the device: each returns a code that NVML documents, and what it decodes is the vGPU.
func TestGoNVML(t *testing.T) {
	if packed != "" {
		t.Skip("the library's own build is walked through")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := startGPUD(t).command(t, self)
	cmd.Env = append(cmd.Env, walkEnv+"="+made("lib", "libnvidia-ml.so.1"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got := map[string]string{}
	for s := bufio.NewScanner(strings.NewReader(string(out))); s.Scan(); {
		name, result, _ := strings.Cut(s.Text(), " ")
		got[name] = result
	}
	for name, want := range map[string]string{
		"Device.GetName": "Success", "Device.GetUUID": "Success", "Device.GetMemoryInfo": "Success", "Device.GetMemoryInfo_v2": "Success",
		"Device.GetComputeRunningProcesses": "Success", "Device.GetClockInfo": "Success", "Device.GetAccountingMode": "Success",
		"Device.GetSerial": "Not Supported", "Device.GetNvLinkState": "Not Supported", "Device.GetPlatformInfo": "Not Supported",
		"Device.SetPersistenceMode": "Insufficient Permissions", "Device.SetPowerManagementLimit": "Insufficient Permissions",
		"Interface.UnitGetCount": "Success", "Interface.EventSetWait": "Timeout", "Interface.SystemGetDriverVersion": "Success", "Interface.DeviceGetCount": "Success",
		"decoded": "256 MiB, compute capability 9.0",
	} {
		if got[name] != want {
			t.Errorf("%s: %q, want %q", name, got[name], want)
		}
	}
	if len(got) < 350 {
		t.Errorf("it called only %d methods", len(got))
	}
}

func walkNVML(path string) int {
	lib := nvml.New(nvml.WithLibraryPath(path))
	if ret := lib.Init(); ret != nvml.SUCCESS {
		fmt.Fprintln(os.Stderr, "init:", ret)
		return 1
	}
	device, ret := lib.DeviceGetHandleByIndex(0)
	if ret != nvml.SUCCESS {
		fmt.Fprintln(os.Stderr, "device:", ret)
		return 1
	}
	set, ret := lib.EventSetCreate()
	if ret != nvml.SUCCESS {
		fmt.Fprintln(os.Stderr, "event set:", ret)
		return 1
	}
	w := walker{device: device, set: set}
	w.walk("Interface", reflect.ValueOf(&lib).Elem())
	w.walk("Device", reflect.ValueOf(&device).Elem())
	memory, ret := device.GetMemoryInfo()
	major, minor, ret2 := device.GetCudaComputeCapability()
	fmt.Printf("decoded %d MiB, compute capability %d.%d\n", memory.Total>>20, major, minor)
	if ret != nvml.SUCCESS || ret2 != nvml.SUCCESS || w.failed {
		return 1
	}
	return 0
}

type walker struct {
	device nvml.Device
	set    nvml.EventSet
	failed bool
}

// walk calls the methods of the interface that v holds, and prints what each returns.
func (w *walker) walk(name string, v reflect.Value) {
	for i := range v.NumMethod() {
		method := v.Type().Method(i).Name
		switch method {
		case "Init", "InitWithFlags", "Shutdown", "EventSetFree": // the session goes on
			continue
		case "GpmMetricsGet": // go-nvml wants samples, and nobody can make one
			continue
		}
		args, ok := w.arguments(v.Method(i).Type())
		if !ok {
			continue
		}
		results := v.Method(i).Call(args)
		ret, ok := results[len(results)-1].Interface().(nvml.Return)
		if !ok {
			continue // go-nvml's own
		}
		fmt.Printf("%s.%s %v\n", name, method, ret)
		if ret > nvml.ERROR_RESET_TYPE_NOT_SUPPORTED && ret != nvml.ERROR_UNKNOWN {
			fmt.Fprintf(os.Stderr, "%s.%s returns %d, which is no code of NVML\n", name, method, ret)
			w.failed = true
		}
	}
}

// arguments are of the types of a method; false where one is the handle of a thing that
// there is none of, which go-nvml cannot express.
func (w *walker) arguments(t reflect.Type) (args []reflect.Value, ok bool) {
	for i := range t.NumIn() {
		in := t.In(i)
		switch {
		case in == reflect.TypeFor[nvml.Device]():
			args = append(args, reflect.ValueOf(w.device))
		case in == reflect.TypeFor[nvml.EventSet]():
			args = append(args, reflect.ValueOf(w.set))
		case in.Kind() == reflect.Interface || t.IsVariadic():
			return nil, false
		case in == reflect.TypeFor[*nvml.GpuInstanceProfileInfo](): // go-nvml makes an array of so many
			args = append(args, reflect.ValueOf(&nvml.GpuInstanceProfileInfo{InstanceCount: 1}))
		case in.Kind() == reflect.Pointer:
			args = append(args, reflect.New(in.Elem()))
		case in.Kind() == reflect.Slice:
			args = append(args, reflect.MakeSlice(in, 1, 1))
		default:
			args = append(args, reflect.Zero(in))
		}
	}
	return args, true
}
