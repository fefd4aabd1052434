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

// walkEnv is the environment variable that makes the test binary a program that calls all
// methods of libnvidia-ml. Its value is the library's path. A call that crashes ends only
// that process.
const walkEnv = "BASALT_TEST_WALK_NVML"

func init() {
	if path := os.Getenv(walkEnv); path != "" {
		os.Exit(walkNVML(path))
	}
}

// TestGoNVML calls every method that go-nvml, NVIDIA's own client, has for the library and
// for the device. Each returns a code that NVML documents, and the decoded values are
// those of the vGPU.
func TestGoNVML(t *testing.T) {
	if packed != "" {
		t.Skip("calls the library that this test builds, not the packed one")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := startGPUD(t).command(t, self)
	cmd.Env = append(cmd.Env, walkEnv+"="+made("lib", "libnvidia-ml.so.1"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("call all methods of go-nvml: %v\n%s", err, out)
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
			t.Errorf("result of %s = %q, want %q", name, got[name], want)
		}
	}
	if len(got) < 350 {
		t.Errorf("the program called %d methods, want at least 350", len(got))
	}
}

// walkNVML calls all methods of the library at path, and prints their results. It returns
// the exit status.
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

// walker calls methods with the handles of a device and of an event set.
type walker struct {
	device nvml.Device
	set    nvml.EventSet
	failed bool
}

// walk calls the methods of the interface that v holds, and prints the result of each.
func (w *walker) walk(name string, v reflect.Value) {
	for i := range v.NumMethod() {
		method := v.Type().Method(i).Name
		switch method {
		case "Init", "InitWithFlags", "Shutdown", "EventSetFree": // they would end the session, or free what later calls use
			continue
		case "GpmMetricsGet": // go-nvml needs samples, and a vGPU has none
			continue
		}
		args, ok := w.arguments(v.Method(i).Type())
		if !ok {
			continue
		}
		results := v.Method(i).Call(args)
		ret, ok := results[len(results)-1].Interface().(nvml.Return)
		if !ok {
			continue // a method of go-nvml's own, not of the library
		}
		fmt.Printf("%s.%s %v\n", name, method, ret)
		if ret > nvml.ERROR_RESET_TYPE_NOT_SUPPORTED && ret != nvml.ERROR_UNKNOWN {
			fmt.Fprintf(os.Stderr, "%s.%s returns %d, want a return code of NVML\n", name, method, ret)
			w.failed = true
		}
	}
}

// arguments returns arguments for a method of type t. ok is false if the method needs the
// handle of an object that does not exist here, which go-nvml cannot express.
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
		case in == reflect.TypeFor[*nvml.GpuInstanceProfileInfo](): // go-nvml allocates an array of InstanceCount elements
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
