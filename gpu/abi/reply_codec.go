package abi

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrRecord is the error of a record that does not conform to reply.go.
var ErrRecord = errors.New("bad record")

// Limits that the decoders enforce; a worker's records stay below them.
const (
	maxAttributes = 4096
	maxRecordList = 1 << 20 // functions, parameters, globals, processes
)

// Append appends the record to b.
func (r DeviceInfoReply) Append(b []byte) []byte {
	w := beginRecord(b)
	w.u64(r.TotalMemory)
	w.b = append(w.b, r.UUID[:]...)
	w.u32(uint32(len(r.Attributes)))
	w.u32(0)
	for _, a := range r.Attributes {
		w.u32(uint32(a))
	}
	w.str(r.Name)
	w.str(r.DriverVersion)
	w.u32(r.CUDAVersion)
	w.u32(r.Devices)
	return w.end()
}

// DecodeDeviceInfoReply decodes a record; errors wrap ErrRecord.
func DecodeDeviceInfoReply(b []byte) (r DeviceInfoReply, err error) {
	d := openRecord(b)
	r.TotalMemory = d.u64()
	copy(r.UUID[:], d.take(16))
	n := d.count(4, maxAttributes)
	d.u32()
	for range n {
		r.Attributes = append(r.Attributes, int32(d.u32()))
	}
	r.Name = d.str()
	r.DriverVersion = d.str()
	r.CUDAVersion = d.u32()
	r.Devices = 1
	if d.err == nil && len(d.b)-d.pos >= 4 {
		r.Devices = d.u32()
	}
	return r, d.err
}

// Append appends the record to b.
func (m ModuleInfo) Append(b []byte) []byte {
	w := beginRecord(b)
	w.u32(uint32(len(m.Functions)))
	w.u32(uint32(len(m.Globals)))
	for _, f := range m.Functions {
		w.str(f.Name)
		w.u32(uint32(len(f.Params)))
		for _, p := range f.Params {
			w.u32(p.Offset)
			w.u32(p.Size)
		}
		for _, a := range f.Attributes {
			w.u32(uint32(a))
		}
	}
	for _, g := range m.Globals {
		w.str(g.Name)
		if w.size()%8 != 0 {
			w.u32(0)
		}
		w.u64(g.Address)
		w.u64(g.Size)
	}
	w.str(m.InfoLog)
	w.str(m.ErrorLog)
	m.appendRefused(w)
	return w.end()
}

func (m ModuleInfo) appendRefused(w *recordWriter) {
	refused := uint32(0)
	for _, f := range m.Functions {
		if f.Refused != "" {
			refused++
		}
	}
	if refused == 0 {
		return
	}
	w.u32(refused)
	for i, f := range m.Functions {
		if f.Refused != "" {
			w.u32(uint32(i))
			w.str(f.Refused)
		}
	}
}

// DecodeModuleInfo decodes a record; errors wrap ErrRecord.
func DecodeModuleInfo(b []byte) (m ModuleInfo, err error) {
	d := openRecord(b)
	functions := d.count(0, maxRecordList)
	globals := d.count(0, maxRecordList)
	for i := 0; i < functions && d.err == nil; i++ {
		f := FunctionInfo{Name: d.str()}
		for n := d.count(8, maxRecordList); n > 0; n-- {
			f.Params = append(f.Params, ParamInfo{Offset: d.u32(), Size: d.u32()})
		}
		for k := range f.Attributes {
			f.Attributes[k] = int32(d.u32())
		}
		m.Functions = append(m.Functions, f)
	}
	for i := 0; i < globals && d.err == nil; i++ {
		g := GlobalInfo{Name: d.str()}
		if d.pos%8 != 0 {
			d.u32()
		}
		g.Address, g.Size = d.u64(), d.u64()
		m.Globals = append(m.Globals, g)
	}
	m.InfoLog = d.str()
	m.ErrorLog = d.str()
	if d.err == nil && len(d.b)-d.pos >= 4 {
		m.decodeRefused(d)
	}
	return m, d.err
}

func (m *ModuleInfo) decodeRefused(d *recordReader) {
	for n := d.count(8, len(m.Functions)); n > 0 && d.err == nil; n-- {
		i, why := d.u32(), d.str()
		if uint64(i) >= uint64(len(m.Functions)) {
			d.fail("invalid function %d of %d", i, len(m.Functions))
			return
		}
		m.Functions[i].Refused = why
	}
}

// Append appends the record to b.
func (r VGPUStatusReply) Append(b []byte) []byte {
	w := beginRecord(b)
	w.u64(r.VRAMLimit)
	w.u64(r.VRAMUsed)
	w.u32(r.GPUUtilization)
	w.u32(r.MemoryUtilization)
	w.u32(r.Temperature)
	w.u32(r.PowerMilliwatts)
	w.u32(uint32(len(r.Processes)))
	w.u32(0)
	for _, p := range r.Processes {
		w.u32(p.PID)
		w.u32(0)
		w.u64(p.VRAMUsed)
		w.str(p.Name)
	}
	w.u32(uint32(len(r.Readings)))
	for _, g := range r.Readings {
		w.u32(g.Key)
		w.u32(0)
		w.u64(g.Value)
	}
	w.u32(uint32(len(r.Accounted)))
	for _, a := range r.Accounted {
		w.u32(a.PID)
		w.u32(a.GPUUtilization)
		w.u64(a.Start)
		w.u64(a.End)
		w.u64(a.GPUNanos)
		w.u64(a.PeakVRAM)
	}
	w.u32(uint32(len(r.Samples)))
	for _, s := range r.Samples {
		w.u64(s.At)
		w.u32(s.GPUUtilization)
		w.u32(0)
	}
	w.u32(uint32(len(r.Events)))
	for _, e := range r.Events {
		w.u64(e.At)
		w.u32(e.XID)
		w.u32(e.PID)
	}
	return w.end()
}

// DecodeVGPUStatusReply decodes a record; errors wrap ErrRecord.
func DecodeVGPUStatusReply(b []byte) (r VGPUStatusReply, err error) {
	d := openRecord(b)
	r.VRAMLimit, r.VRAMUsed = d.u64(), d.u64()
	r.GPUUtilization, r.MemoryUtilization = d.u32(), d.u32()
	r.Temperature, r.PowerMilliwatts = d.u32(), d.u32()
	n := d.count(20, maxRecordList)
	d.u32()
	for i := 0; i < n && d.err == nil; i++ {
		p := ProcessInfo{PID: d.u32()}
		d.u32()
		p.VRAMUsed = d.u64()
		p.Name = d.str()
		r.Processes = append(r.Processes, p)
	}
	if d.err == nil && len(d.b)-d.pos >= 4 {
		r.decodeMore(d)
	}
	return r, d.err
}

// decodeMore decodes the fields that older records lack.
func (r *VGPUStatusReply) decodeMore(d *recordReader) {
	for n := d.count(16, maxRecordList); n > 0; n-- {
		g := Reading{Key: d.u32()}
		d.u32()
		g.Value = d.u64()
		r.Readings = append(r.Readings, g)
	}
	for n := d.count(40, maxRecordList); n > 0; n-- {
		r.Accounted = append(r.Accounted, AccountedProcess{
			PID: d.u32(), GPUUtilization: d.u32(), Start: d.u64(), End: d.u64(), GPUNanos: d.u64(), PeakVRAM: d.u64(),
		})
	}
	for n := d.count(16, maxRecordList); n > 0; n-- {
		r.Samples = append(r.Samples, Sample{At: d.u64(), GPUUtilization: d.u32()})
		d.u32()
	}
	if d.err != nil || len(d.b)-d.pos < 4 {
		return
	}
	for n := d.count(16, maxRecordList); n > 0; n-- {
		r.Events = append(r.Events, GPUEvent{At: d.u64(), XID: d.u32(), PID: d.u32()})
	}
}

// recordWriter appends one record; its total is filled in at the end.
type recordWriter struct {
	b     []byte
	start int
}

func beginRecord(b []byte) *recordWriter {
	w := &recordWriter{b: b, start: len(b)}
	w.u32(RecordVersion)
	w.u32(0)
	return w
}

func (w *recordWriter) size() int { return len(w.b) - w.start }

func (w *recordWriter) u32(v uint32) { w.b = binary.LittleEndian.AppendUint32(w.b, v) }

func (w *recordWriter) u64(v uint64) { w.b = binary.LittleEndian.AppendUint64(w.b, v) }

func (w *recordWriter) str(s string) {
	w.u32(uint32(len(s)))
	w.b = append(w.b, s...)
	for w.size()%4 != 0 {
		w.b = append(w.b, 0)
	}
}

func (w *recordWriter) end() []byte {
	binary.LittleEndian.PutUint32(w.b[w.start+4:], uint32(w.size()))
	return w.b
}

// recordReader decodes one record; after the first error it returns zeros.
type recordReader struct {
	b   []byte
	pos int
	err error
}

func openRecord(b []byte) *recordReader {
	d := &recordReader{b: b}
	version, total := d.u32(), d.u32()
	switch {
	case d.err != nil:
	case version != RecordVersion:
		d.fail("unsupported version %d", version)
	case total < 8 || uint64(total) > uint64(len(b)):
		d.fail("record has total size %d in %d bytes", total, len(b))
	default:
		d.b = b[:total]
	}
	return d
}

func (d *recordReader) fail(format string, a ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: %s", ErrRecord, fmt.Sprintf(format, a...))
	}
	d.b, d.pos = nil, 0
}

func (d *recordReader) take(n int) []byte {
	if d.err != nil || n > len(d.b)-d.pos {
		d.fail("truncated at byte %d", len(d.b))
		return make([]byte, min(n, 16))
	}
	d.pos += n
	return d.b[d.pos-n : d.pos]
}

func (d *recordReader) u32() uint32 { return binary.LittleEndian.Uint32(d.take(4)) }

func (d *recordReader) u64() uint64 { return binary.LittleEndian.Uint64(d.take(8)) }

// count reads the length of a list whose elements have at least each bytes.
func (d *recordReader) count(each, limit int) int {
	n := d.u32()
	if uint64(n) > uint64(limit) || uint64(n)*uint64(each) > uint64(len(d.b)-d.pos) {
		d.fail("list of %d entries is too long", n)
		return 0
	}
	return int(n)
}

func (d *recordReader) str() string {
	n := d.u32()
	if uint64(n) > uint64(len(d.b)-d.pos) {
		d.fail("string of %d bytes is too long", n)
		return ""
	}
	s := string(d.take(int(n)))
	d.take((4 - d.pos%4) % 4)
	return s
}
