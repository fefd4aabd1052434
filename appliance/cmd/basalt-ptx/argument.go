package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/basalt-gpu/basalt/gpu/worker"
)

// argument is an argument of a kernel: a number, TYPE=VALUE, or a buffer, TYPE[N]=VALUE,….
// Missing values at the end of a buffer are zero.
type argument struct {
	text     string
	kind     kind
	elements int // of a buffer; 0: a number
	bytes    []byte
	address  uint64 // of a buffer on the device
}

// kind is the type of a number.
type kind struct {
	letter byte // s, u or f
	size   int  // bytes
}

const (
	maxElements = 1 << 28
	maxPrinted  = 64 // elements of a buffer
)

func parseArgument(s string) (a argument, err error) {
	a.text = s
	head, values, given := strings.Cut(s, "=")
	name, count, buffer := strings.Cut(strings.TrimSuffix(head, "]"), "[")
	if buffer != strings.HasSuffix(head, "]") || !buffer && !given {
		return a, fmt.Errorf("argument %q: want TYPE=VALUE or TYPE[N]=VALUE,…, e.g. u32=7 or f32[256]=1,2", s)
	}
	if a.kind, err = parseKind(name); err != nil {
		return a, fmt.Errorf("argument %q: %w", s, err)
	}
	if buffer {
		if a.elements, err = strconv.Atoi(count); err != nil || a.elements < 1 || a.elements > maxElements {
			return a, fmt.Errorf("argument %q: want 1 to %d elements", s, maxElements)
		}
	}
	list := []string(nil)
	if given {
		list = strings.Split(values, ",")
	}
	if len(list) > max(1, a.elements) {
		return a, fmt.Errorf("argument %q: %d values, want at most %d", s, len(list), max(1, a.elements))
	}
	a.bytes = make([]byte, max(1, a.elements)*a.kind.size)
	for i, v := range list {
		if err := a.kind.write(a.bytes[i*a.kind.size:], v); err != nil {
			return a, fmt.Errorf("argument %q: %w", s, err)
		}
	}
	return a, nil
}

func parseKind(s string) (k kind, err error) {
	switch s {
	case "s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64", "f32", "f64":
		bits, err := strconv.Atoi(s[1:])
		if err != nil {
			return kind{}, fmt.Errorf("parse number of bits: %w", err)
		}
		return kind{s[0], bits / 8}, nil
	}
	return k, fmt.Errorf("type %q: want s8 to s64, u8 to u64, f32 or f64", s)
}

// write parses a number and writes it to b.
func (k kind) write(b []byte, s string) error {
	var bits uint64
	switch k.letter {
	case 'f':
		v, err := strconv.ParseFloat(s, 8*k.size)
		if err != nil {
			return fmt.Errorf("parse value: %w", err)
		}
		bits = math.Float64bits(v)
		if k.size == 4 {
			bits = uint64(math.Float32bits(float32(v)))
		}
	case 's':
		v, err := strconv.ParseInt(s, 0, 8*k.size)
		if err != nil {
			return fmt.Errorf("parse value: %w", err)
		}
		bits = uint64(v)
	default:
		v, err := strconv.ParseUint(s, 0, 8*k.size)
		if err != nil {
			return fmt.Errorf("parse value: %w", err)
		}
		bits = v
	}
	var eight [8]byte
	binary.LittleEndian.PutUint64(eight[:], bits)
	copy(b[:k.size], eight[:])
	return nil
}

// text formats the number at the start of b.
func (k kind) text(b []byte) string {
	var eight [8]byte
	copy(eight[:], b[:k.size])
	bits := binary.LittleEndian.Uint64(eight[:])
	switch {
	case k.letter == 'f' && k.size == 4:
		return strconv.FormatFloat(float64(math.Float32frombits(uint32(bits))), 'g', -1, 32)
	case k.letter == 'f':
		return strconv.FormatFloat(math.Float64frombits(bits), 'g', -1, 64)
	case k.letter == 's':
		shift := 64 - 8*k.size
		return strconv.FormatInt(int64(bits)<<shift>>shift, 10)
	}
	return strconv.FormatUint(bits, 10)
}

// value returns the bytes of the parameter: the number, or the address of the buffer, which is
// allocated and filled.
func (a *argument) value(c worker.Context) ([]byte, error) {
	if a.elements == 0 {
		return a.bytes, nil
	}
	var err error
	if a.address, err = c.MemAlloc(uint64(len(a.bytes))); err != nil {
		return nil, fmt.Errorf("allocate %d bytes: %w", len(a.bytes), err)
	}
	if err := c.CopyHtoD(nil, a.address, a.bytes, nil); err != nil {
		return nil, fmt.Errorf("copy %d bytes to the device: %w", len(a.bytes), err)
	}
	return binary.LittleEndian.AppendUint64(nil, a.address), nil
}

// print writes the first elements of a buffer.
func (a *argument) print(c worker.Context, index int, out io.Writer) error {
	if a.elements == 0 {
		return nil
	}
	n := min(a.elements, maxPrinted)
	b, done := make([]byte, n*a.kind.size), make(chan error, 1)
	if err := c.CopyDtoH(nil, b, a.address, func(err error) { done <- err }); err != nil {
		return fmt.Errorf("copy a buffer from the device: %w", err)
	}
	if err := <-done; err != nil {
		return err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%d: %c%d[%d]", index, a.kind.letter, 8*a.kind.size, a.elements)
	for i := range n {
		text.WriteString(" " + a.kind.text(b[i*a.kind.size:]))
	}
	if n < a.elements {
		text.WriteString(" …")
	}
	text.WriteByte('\n')
	_, err := io.WriteString(out, text.String())
	return err
}
