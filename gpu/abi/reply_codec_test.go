package abi

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func deviceInfo() DeviceInfoReply {
	return DeviceInfoReply{
		TotalMemory: 1 << 30, UUID: [16]byte{1, 2, 3}, Attributes: []int32{0, 1024, -1},
		Name: "Basalt vGPU", DriverVersion: "550.163.01", CUDAVersion: 12040, Devices: 2,
	}
}

func moduleInfo() ModuleInfo {
	return ModuleInfo{
		Functions: []FunctionInfo{
			{Name: "add", Params: []ParamInfo{{0, 8}, {8, 4}}, Attributes: [FunctionAttributes]int32{1024, 0, 64}},
			{Name: "_Z3mulPf", Refused: "line 7: not implemented: opcode frob: frob;"},
		},
		Globals: []GlobalInfo{{"a", 0x7000, 4}, {"table", 0x8000, 1 << 20}},
		InfoLog: "ptxas info", ErrorLog: "",
	}
}

func vgpuStatus() VGPUStatusReply {
	return VGPUStatusReply{
		VRAMLimit: 1 << 30, VRAMUsed: 5, GPUUtilization: 99, MemoryUtilization: 1, Temperature: 40, PowerMilliwatts: 70000,
		Processes: []ProcessInfo{{PID: 7, VRAMUsed: 4, Name: "a"}, {PID: 8, VRAMUsed: 1, Name: "python3"}},
		Readings:  []Reading{{ReadingClockSM, 1410}, {9999, 1 << 40}},
		Accounted: []AccountedProcess{{PID: 7, GPUUtilization: 50, Start: 1 << 50, GPUNanos: 9, PeakVRAM: 4}, {PID: 6, Start: 1, End: 2}},
		Samples:   []Sample{{At: 1 << 50, GPUUtilization: 7}},
		Events:    []GPUEvent{{At: 1 << 51, XID: 31, PID: 7}, {At: 1<<51 + 1, XID: 13, PID: 8}},
	}
}

func TestRecordsRoundTrip(t *testing.T) {
	prefix := []byte{1, 2, 3} // records are laid out from their own start
	if got, err := DecodeDeviceInfoReply(deviceInfo().Append(prefix)[3:]); err != nil || cmp.Diff(deviceInfo(), got) != "" {
		t.Errorf("device info: error %v, mismatch (-want +got):\n%s", err, cmp.Diff(deviceInfo(), got))
	}
	if got, err := DecodeModuleInfo(moduleInfo().Append(prefix)[3:]); err != nil || cmp.Diff(moduleInfo(), got) != "" {
		t.Errorf("module info: error %v, mismatch (-want +got):\n%s", err, cmp.Diff(moduleInfo(), got))
	}
	if got, err := DecodeVGPUStatusReply(vgpuStatus().Append(prefix)[3:]); err != nil || cmp.Diff(vgpuStatus(), got) != "" {
		t.Errorf("status: error %v, mismatch (-want +got):\n%s", err, cmp.Diff(vgpuStatus(), got))
	}
}

// An older worker ends its record after the samples, or after the processes.
func TestOldStatusIsRead(t *testing.T) {
	check := func(want VGPUStatusReply, lists int) {
		t.Helper()
		b := want.Append(nil)
		b = b[:len(b)-lists*4] // without the counts of its last lists, which are empty
		binary.LittleEndian.PutUint32(b[4:], uint32(len(b)))
		if got, err := DecodeVGPUStatusReply(b); err != nil || cmp.Diff(want, got) != "" {
			t.Errorf("status without its last %d lists: error %v, mismatch (-want +got):\n%s", lists, err, cmp.Diff(want, got))
		}
	}
	want := vgpuStatus()
	want.Events = nil
	check(want, 1)
	want.Readings, want.Accounted, want.Samples = nil, nil, nil
	check(want, 4)
}

// The bytes are a contract with the guest's C code, so the test lists them.
func TestModuleInfoBytes(t *testing.T) {
	got := ModuleInfo{
		Functions: []FunctionInfo{{Name: "k", Params: []ParamInfo{{0, 4}}, Attributes: [FunctionAttributes]int32{9: -2}}},
		Globals:   []GlobalInfo{{"abcd", 0x1122334455667788, 3}},
		InfoLog:   "i", ErrorLog: "",
	}.Append(nil)
	want := []byte{
		1, 0, 0, 0, 124, 0, 0, 0, // version, total
		1, 0, 0, 0, 1, 0, 0, 0, // functions, globals
		1, 0, 0, 0, 'k', 0, 0, 0, // name
		1, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, // one parameter
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff,
		4, 0, 0, 0, 'a', 'b', 'c', 'd', // ends at 84: four bytes to the next multiple of 8
		0, 0, 0, 0,
		0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 3, 0, 0, 0, 0, 0, 0, 0,
		1, 0, 0, 0, 'i', 0, 0, 0, // info log
		0, 0, 0, 0, // error log
	}
	want[4] = byte(len(want))
	if !bytes.Equal(got, want) {
		t.Errorf("encoded record:\n% x\nwant:\n% x", got, want)
	}
}

func TestCutRecordsAreErrors(t *testing.T) {
	for name, c := range map[string]struct {
		b      []byte
		decode func([]byte) error
	}{
		"device": {deviceInfo().Append(nil), func(b []byte) error { _, err := DecodeDeviceInfoReply(b); return err }},
		"module": {moduleInfo().Append(nil), func(b []byte) error { _, err := DecodeModuleInfo(b); return err }},
		"status": {vgpuStatus().Append(nil), func(b []byte) error { _, err := DecodeVGPUStatusReply(b); return err }},
	} {
		for n := range c.b {
			if err := c.decode(c.b[:n]); !errors.Is(err, ErrRecord) {
				t.Errorf("decode of %s truncated to %d of %d bytes = %v, want %v", name, n, len(c.b), err, ErrRecord)
			}
		}
		if err := c.decode(append(c.b, "later bytes are not the record's"...)); err != nil {
			t.Errorf("decode of %s with bytes after it = %v, want no error", name, err)
		}
	}
}

func FuzzRecords(f *testing.F) {
	f.Add(deviceInfo().Append(nil))
	f.Add(moduleInfo().Append(nil))
	f.Add(vgpuStatus().Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := DecodeDeviceInfoReply(b); err == nil {
			if again, err := DecodeDeviceInfoReply(r.Append(nil)); err != nil || cmp.Diff(r, again) != "" {
				t.Errorf("device info %+v was encoded and decoded as %+v, %v, want the same", r, again, err)
			}
		}
		if r, err := DecodeModuleInfo(b); err == nil {
			if again, err := DecodeModuleInfo(r.Append(nil)); err != nil || cmp.Diff(r, again) != "" {
				t.Errorf("module info %+v was encoded and decoded as %+v, %v, want the same", r, again, err)
			}
		}
		if r, err := DecodeVGPUStatusReply(b); err == nil {
			if again, err := DecodeVGPUStatusReply(r.Append(nil)); err != nil || cmp.Diff(r, again) != "" {
				t.Errorf("status %+v was encoded and decoded as %+v, %v, want the same", r, again, err)
			}
		}
	})
}
