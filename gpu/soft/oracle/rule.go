package oracle

import (
	"fmt"

	"github.com/basalt-gpu/basalt/gpu/ptx"
)

// An instruction that the oracle does not implement ends the launch with an error that
// names the form: an opcode, a type, or a combination of them. failed adds the thread and
// the instruction to this error and to all others.

// missing returns the error of an instruction whose form is not implemented. The form
// names what decides, as in package compile.
func missing(form string, args ...any) error {
	return fmt.Errorf("not implemented by the oracle: %s", fmt.Sprintf(form, args...))
}

// failed returns the error of the instruction that a thread executes, with the thread,
// the line and the text of the instruction.
func (t *thread) failed(in *ptx.Inst, err error) error {
	return fmt.Errorf("thread %v, line %d, %s: %w", t.tid, in.Line, in.Text, err)
}
