package exec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

// buffer returns arguments from a buffer, and texts by their address.
type buffer struct {
	bytes []byte
	at    uint64
	texts map[uint64]string
}

var errEnd = errors.New("the arguments end")

func (a *buffer) word(size uint64) (uint64, error) {
	a.at = (a.at + size - 1) &^ (size - 1)
	if a.at+size > uint64(len(a.bytes)) {
		return 0, errEnd
	}
	a.at += size
	return readUint(a.bytes[a.at-size:], size), nil
}

func (a *buffer) text(address uint64, most int) ([]byte, error) {
	s, ok := a.texts[address]
	if !ok {
		return nil, errEnd
	}
	return []byte(s[:min(len(s), most)]), nil
}

// TestFormatsAsC compares with the output of the C library (testdata/printf.c).
func TestFormatsAsC(t *testing.T) {
	raw, err := os.ReadFile("testdata/printf.txt")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(raw)) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 4)
		var size, v uint64
		if _, err := fmt.Sscanf(f[0]+" "+f[2], "%d %x", &size, &v); err != nil {
			t.Fatal(err)
		}
		got, used, err := formatText(nil, f[1], &buffer{bytes: binary.LittleEndian.AppendUint64(nil, v)[:size]})
		if err != nil || used != 1 || string(got) != f[3] {
			t.Errorf("formatText(%q) of %#x = %q, %d arguments, error %v; want %q, 1 argument", f[1], v, got, used, err, f[3])
		}
		n++
	}
	if n < 800 {
		t.Errorf("testdata/printf.txt has %d lines, want at least 800", n)
	}
}

func TestFormatText(t *testing.T) {
	le := binary.LittleEndian
	args := le.AppendUint32(nil, 0xfffffffa) // -6
	args = le.AppendUint32(args, 3)
	args = le.AppendUint32(args, 'x') // the next is at a multiple of 8
	args = le.AppendUint64(le.AppendUint32(args, 0), 0x1000)
	args = le.AppendUint64(le.AppendUint64(args, 0), 0x3ff8<<48) // 1.5
	texts := map[uint64]string{0x1000: "some text"}
	for _, c := range []struct {
		format, want string
		used         int
	}{
		{"", "", 0}, {"plain", "plain", 0}, {"100%%|%5%|", "100%|%|", 0},
		{"[%*d] %c %s %s %g", "[3     ] x some text (null) 1.5", 6},
		{"%d %d %c %.4s|%12s|", "-6 3 x some|      (null)|", 5},
		{"%.*d %c", "3 x", 3}, // a negative precision is ignored
		{"%q %y %", "%q %y %", 0}, {"%hhhd", "%hhhd", 0}, {"%lhd", "%lhd", 0}, {"%n", "%n", 0}, {"%5", "%5", 0}, {"%.", "%.", 0}, {"%-", "%-", 0},
	} {
		got, used, err := formatText([]byte("> "), c.format, &buffer{bytes: args, texts: texts})
		if err != nil || used != c.used || string(got) != "> "+c.want {
			t.Errorf("formatText(%q) = %q, %d arguments, error %v; want %q, %d arguments", c.format, got, used, err, "> "+c.want, c.used)
		}
	}
}

// TestFormatLimits checks the limits of the output that a few bytes of a kernel can
// request.
func TestFormatLimits(t *testing.T) {
	zeros := make([]byte, 4096)
	for _, c := range []struct {
		format    string
		size, arg int // bytes of text, arguments
	}{
		{"%2147483647d", maxPad, 1}, {"%.99999999999999999999d", maxPad, 1}, {"%-4097.5000f|", maxPad + 2 + 1, 1},
		{strings.Repeat("%4096d", 40), maxText, 8},
		{strings.Repeat("%d", 40), 32 + 2*8, 32},
		{strings.Repeat("a", 2*maxText), maxText, 0},
	} {
		got, used, err := formatText(nil, c.format, &buffer{bytes: zeros})
		if err != nil || len(got) != c.size || used != c.arg {
			t.Errorf("formatText(%.30q) = %d bytes, %d arguments, error %v; want %d bytes, %d arguments", c.format, len(got), used, err, c.size, c.arg)
		}
	}
	for _, format := range []string{"%d", "%*d", "%.*d", "%s"} {
		if _, _, err := formatText(nil, format, &buffer{bytes: []byte{1, 2}}); !errors.Is(err, errEnd) {
			t.Errorf("formatText(%q) without enough arguments: error %v, want %v", format, err, errEnd)
		}
	}
}

func FuzzFormatText(f *testing.F) {
	for _, s := range []string{"%d %s\n", "%*.*f|%-+#0 5lld", "%hhx%p%a%G", "%", "%%%n%.0g%2147483648d"} {
		f.Add(s, []byte("0123456789abcdef0123456789abcdef"))
	}
	f.Fuzz(func(t *testing.T, format string, args []byte) {
		b, used, err := formatText(nil, format, &buffer{bytes: args})
		if len(b) > maxText+maxPad+512 || err == nil && len(b) > maxText || used > maxArgs {
			t.Errorf("formatText(%q) = %d bytes, %d arguments, error %v; want at most %d bytes and %d arguments", format, len(b), used, err, maxText, maxArgs)
		}
	})
}
