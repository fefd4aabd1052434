package exec

import (
	"bytes"
	"fmt"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// Output that kernels write for the user of the program.

// Output receives what a kernel writes to abi.OutputStdout or OutputStderr. It is
// called from several goroutines, and must not retain text.
type Output func(to uint32, text []byte)

// text returns the bytes from a generic address up to a NUL, at most that many.
func (m *machine) text(address uint64, most, lane int) ([]byte, error) {
	if most == 0 {
		return nil, nil
	}
	b, err := m.window(ir.Generic, address, 1, lane)
	if err != nil {
		return nil, err
	}
	b = b[:min(len(b), most)]
	if i := bytes.IndexByte(b, 0); i >= 0 {
		return b[:i], nil
	}
	if len(b) < most {
		return nil, fmt.Errorf("%w: text at address %#x: found no NUL in the %d bytes of its memory", abi.ErrIllegalAddress, address, len(b))
	}
	return b, nil
}

// laneArguments returns the arguments of one lane's call of vprintf, which are in a
// buffer, each at its own alignment (CUDA C++ Programming Guide, "Formatted Output";
// promoted as C promotes those of a function with "...").
type laneArguments struct {
	m    *machine
	lane int
	at   uint64
}

func (a *laneArguments) word(size uint64) (uint64, error) {
	a.at = (a.at + size - 1) &^ (size - 1)
	b, err := a.m.window(ir.Generic, a.at, size, a.lane)
	if err != nil {
		return 0, err
	}
	a.at += size
	return readUint(b, size), nil
}

func (a *laneArguments) text(address uint64, most int) ([]byte, error) {
	return a.m.text(address, most, a.lane)
}

func readUint(b []byte, size uint64) (v uint64) {
	for i := range size {
		v |= uint64(b[i]) << (8 * i)
	}
	return v
}

func print(o *ir.Print) step {
	result, format, args := word{o.Result}, word{o.Format}, word{o.Args}
	return masked(func(m *machine, act []uint32) error {
		return eachLaneErr(act, func(l int) error {
			n, err := m.print(format.get(m, l), args.get(m, l), l)
			result.set(m, l, uint64(uint32(n)))
			return err
		})
	})
}

// print executes the call of one lane. It returns the number of arguments that the
// format has, or -1 if the format is null.
func (m *machine) print(format, args uint64, lane int) (int32, error) {
	if m.env.Stop.Load() { // a call may write much
		return 0, errStopped
	}
	if format == 0 {
		return -1, nil
	}
	f, err := m.text(format, maxText, lane)
	if err != nil {
		return 0, err
	}
	b, n, err := formatText(m.printed[:0], string(f), &laneArguments{m, lane, args})
	if err != nil {
		return 0, err
	}
	m.printed = b
	m.env.write(abi.OutputStdout, b)
	return int32(n), nil
}

func (l *Launch) write(to uint32, text []byte) {
	if l.Output != nil && len(text) > 0 {
		l.Output(to, text)
	}
}

// maxAsserted is how much of each text of an assertion is printed, in bytes.
const maxAsserted = 1024

// assertion returns the step that prints the line of each lane and ends the kernel.
func assertion(o *ir.Assertion) step {
	return masked(func(m *machine, act []uint32) error {
		var first string
		err := eachLaneErr(act, func(l int) error {
			line, err := m.asserted(o, l)
			if err == nil {
				m.env.write(abi.OutputStderr, []byte(line))
			}
			if first == "" {
				first = line
			}
			return err
		})
		if err != nil {
			return err
		}
		return fmt.Errorf("%w: %s", abi.ErrAssert, bytes.TrimRight([]byte(first), "\n"))
	})
}

// asserted returns the text that the driver of a GPU prints (CUDA C++ Programming
// Guide, "Assertion").
func (m *machine) asserted(o *ir.Assertion, lane int) (string, error) {
	var texts [3]string
	for i, w := range [3]ir.Word{o.File, o.Function, o.Message} {
		b, err := m.text(word{w}.get(m, lane), maxAsserted, lane)
		if err != nil {
			return "", err
		}
		texts[i] = string(b)
	}
	block := m.env.Block
	x, rest := uint32(lane)%block[0], uint32(lane)/block[0]
	return fmt.Sprintf("%s:%d: %s: block: [%d,%d,%d], thread: [%d,%d,%d] Assertion `%s` failed.\n",
		texts[0], uint32(word{o.Line}.get(m, lane)), texts[1], m.ctaid[0], m.ctaid[1], m.ctaid[2], x, rest%block[1], rest/block[1], texts[2]), nil
}
