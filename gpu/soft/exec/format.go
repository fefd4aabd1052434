package exec

import (
	"math"
	"strconv"
	"strings"
)

// The text of a kernel's printf (CUDA C++ Programming Guide, "Formatted Output":
// "%[flags][width][.precision][size]type"), formatted as by the C library of the host.

// Limits of the text of one call, as a few bytes of a kernel can request very long
// output.
const (
	maxText = 32 << 10 // bytes; the rest is truncated
	maxPad  = 4096     // maximum of width and precision
	maxArgs = 32       // arguments; further conversions are printed verbatim
)

// arguments returns the arguments of the conversions of a format, in order.
type arguments interface {
	// word returns the next argument, of 4 or 8 bytes.
	word(bytes uint64) (uint64, error)
	// text returns the bytes from an address up to a NUL, at most that many.
	text(address uint64, most int) ([]byte, error)
}

// conversion is one conversion specification of a format.
type conversion struct {
	minus, plus, blank, alternate, zero bool

	width     int
	precision int    // less than 0: not given
	size      string // "", "h", "hh", "l" or "ll"
	kind      byte
}

// formatText appends the output of a printf call to b, and returns the number of
// arguments it has read.
func formatText(b []byte, format string, a arguments) ([]byte, int, error) {
	used := 0
	for format != "" && len(b) < maxText {
		i := strings.IndexByte(format, '%')
		if i < 0 {
			i = len(format)
		}
		b, format = append(b, format[:i]...), format[i:]
		if format == "" {
			break
		}
		c, stars, n := parseConversion(format)
		if c.kind == '%' {
			b, format = append(b, '%'), format[n:]
			continue
		}
		if c.kind == 0 || used+stars+1 > maxArgs {
			b, format = append(b, format[:n]...), format[n:]
			continue
		}
		if err := c.readStars(format[:n], a); err != nil {
			return b, used, err
		}
		var err error
		if b, err = c.write(b, a); err != nil {
			return b, used, err
		}
		used, format = used+stars+1, format[n:]
	}
	return b[:min(len(b), maxText)], used, nil
}

// parseConversion parses the conversion that a format begins with. It returns the
// number n of its bytes, and how many of its numbers are arguments. An unknown
// conversion has kind 0.
func parseConversion(s string) (c conversion, stars, n int) {
	c.precision = -1
	for n = 1; n < len(s) && c.flag(s[n]); n++ {
	}
	number := func() (v int) {
		if n < len(s) && s[n] == '*' {
			n, stars = n+1, stars+1
			return 0
		}
		for ; n < len(s) && s[n] >= '0' && s[n] <= '9'; n++ {
			v = min(10*v+int(s[n]-'0'), maxPad)
		}
		return v
	}
	c.width = number()
	if n < len(s) && s[n] == '.' {
		n++
		c.precision = number()
	}
	for at := n; n < len(s) && n-at < 2 && (s[n] == 'h' || s[n] == 'l') && s[n] == s[at]; n++ {
		c.size = s[at : n+1]
	}
	if n == len(s) {
		return c, stars, n
	}
	if strings.IndexByte("diouxXcspaAeEfFgG%", s[n]) >= 0 {
		c.kind = s[n]
	}
	return c, stars, n + 1
}

// flag sets a flag, and reports whether b is one.
func (c *conversion) flag(b byte) bool {
	switch b {
	case '-':
		c.minus = true
	case '+':
		c.plus = true
	case ' ':
		c.blank = true
	case '#':
		c.alternate = true
	case '0':
		c.zero = true
	default:
		return false
	}
	return true
}

// readStars reads the width and the precision that are arguments.
func (c *conversion) readStars(text string, a arguments) error {
	width, precision, _ := strings.Cut(text, ".")
	if strings.Contains(width, "*") {
		v, err := a.word(4)
		if err != nil {
			return err
		}
		if c.width = clampPad(v); c.width < 0 {
			c.minus, c.width = true, -c.width
		}
	}
	if strings.Contains(precision, "*") {
		v, err := a.word(4)
		if err != nil {
			return err
		}
		c.precision = max(clampPad(v), -1)
	}
	return nil
}

func clampPad(v uint64) int { return min(max(int(int32(v)), -maxPad), maxPad) }

// write appends the conversion of its argument.
func (c *conversion) write(b []byte, a arguments) ([]byte, error) {
	bytes := uint64(4)
	if c.size == "l" || c.size == "ll" || strings.IndexByte("spaAeEfFgG", c.kind) >= 0 {
		bytes = 8
	}
	v, err := a.word(bytes)
	if err != nil {
		return b, err
	}
	switch c.kind {
	case 'd', 'i':
		s := c.signed(v)
		if s < 0 {
			return c.integer(b, "-", -uint64(s)), nil
		}
		return c.integer(b, c.sign(), uint64(s)), nil
	case 'u', 'o', 'x', 'X':
		return c.integer(b, "", c.unsigned(v)), nil
	case 'c':
		return c.pad(b, "", string([]byte{byte(v)}), false), nil
	case 'p':
		if v == 0 {
			return c.pad(b, "", "(nil)", false), nil
		}
		c.kind, c.alternate = 'x', true
		return c.integer(b, "", v), nil
	case 's':
		return c.text(b, v, a)
	}
	return c.float(b, math.Float64frombits(v)), nil
}

func (c *conversion) text(b []byte, address uint64, a arguments) ([]byte, error) {
	most := maxText
	if c.precision >= 0 {
		most = c.precision
	}
	if address == 0 {
		return c.pad(b, "", "(null)"[:min(most, 6)], false), nil
	}
	s, err := a.text(address, most)
	return c.pad(b, "", string(s), false), err
}

func (c *conversion) sign() string {
	switch {
	case c.plus:
		return "+"
	case c.blank:
		return " "
	}
	return ""
}

func (c *conversion) signed(v uint64) int64 {
	switch c.size {
	case "hh":
		return int64(int8(v))
	case "h":
		return int64(int16(v))
	case "":
		return int64(int32(v))
	}
	return int64(v)
}

func (c *conversion) unsigned(v uint64) uint64 {
	switch c.size {
	case "hh":
		return uint64(uint8(v))
	case "h":
		return uint64(uint16(v))
	case "":
		return uint64(uint32(v))
	}
	return v
}

func (c *conversion) integer(b []byte, prefix string, v uint64) []byte {
	base := 10
	switch c.kind {
	case 'o':
		base = 8
	case 'x', 'X':
		base = 16
	}
	digits := strconv.FormatUint(v, base)
	if v == 0 && c.precision == 0 {
		digits = ""
	}
	digits = strings.Repeat("0", max(0, c.precision-len(digits))) + digits
	if c.alternate && base == 8 && !strings.HasPrefix(digits, "0") {
		digits = "0" + digits
	}
	if c.alternate && base == 16 && v != 0 {
		prefix = "0x"
	}
	if c.kind == 'X' {
		prefix, digits = strings.ToUpper(prefix), strings.ToUpper(digits)
	}
	return c.pad(b, prefix, digits, c.precision < 0)
}

func (c *conversion) float(b []byte, v float64) []byte {
	prefix := c.sign()
	if math.Signbit(v) {
		prefix = "-"
	}
	v = math.Abs(v)
	var digits string
	number := false
	switch {
	case math.IsNaN(v):
		digits = "nan"
	case math.IsInf(v, 0):
		digits = "inf"
	case c.kind == 'a' || c.kind == 'A':
		hex := strconv.FormatFloat(v, 'x', c.precision, 64)
		prefix, digits, number = prefix+"0x", shortExponent(c.point(hex[2:], "p")), true
	default:
		digits, number = c.decimal(v), true
	}
	if c.kind < 'a' {
		prefix, digits = strings.ToUpper(prefix), strings.ToUpper(digits)
	}
	return c.pad(b, prefix, digits, number)
}

// decimal returns the digits of %e, %f and %g.
func (c *conversion) decimal(v float64) string {
	precision := c.precision
	if precision < 0 {
		precision = 6
	}
	switch c.kind {
	case 'e', 'E':
		return c.point(strconv.FormatFloat(v, 'e', precision, 64), "e")
	case 'f', 'F':
		return c.point(strconv.FormatFloat(v, 'f', precision, 64), "e")
	}
	precision = max(precision, 1)
	s := strconv.FormatFloat(v, 'e', precision-1, 64)
	exponent, _ := strconv.Atoi(s[strings.IndexByte(s, 'e')+1:])
	if exponent >= -4 && exponent < precision {
		s = strconv.FormatFloat(v, 'f', precision-1-exponent, 64)
	}
	if c.alternate {
		return c.point(s, "e")
	}
	number, rest, scientific := strings.Cut(s, "e")
	if strings.Contains(number, ".") {
		number = strings.TrimRight(strings.TrimRight(number, "0"), ".")
	}
	if scientific {
		number += "e" + rest
	}
	return number
}

// point adds the decimal point that # requires.
func (c *conversion) point(s, exponent string) string {
	if !c.alternate || strings.Contains(s, ".") {
		return s
	}
	if i := strings.Index(s, exponent); i >= 0 {
		return s[:i] + "." + s[i:]
	}
	return s + "."
}

// shortExponent converts "p+01" to "p+1", as C writes it.
func shortExponent(s string) string {
	i := strings.IndexByte(s, 'p') + 2
	for len(s) > i+1 && s[i] == '0' {
		s = s[:i] + s[i+1:]
	}
	return s
}

// pad appends a prefix and what follows it, padded to the width.
func (c *conversion) pad(b []byte, prefix, s string, zeros bool) []byte {
	fill := max(0, c.width-len(prefix)-len(s))
	switch {
	case c.minus:
		b = append(append(b, prefix...), s...)
		return append(b, strings.Repeat(" ", fill)...)
	case c.zero && zeros:
		b = append(append(b, prefix...), strings.Repeat("0", fill)...)
		return append(b, s...)
	}
	b = append(append(b, strings.Repeat(" ", fill)...), prefix...)
	return append(b, s...)
}
