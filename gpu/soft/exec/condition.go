package exec

import (
	"encoding/binary"

	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

// setCondition returns the step that stores the value of a condition of a graph. A
// handle that is not that of a condition is treated as an ordinary address.
func setCondition(o *ir.SetCondition) step {
	handle, value := word{o.Handle}, word{o.Value}
	return masked(func(m *machine, act []uint32) error {
		return eachLaneErr(act, func(l int) error {
			b, err := m.window(ir.Global, handle.get(m, l), 4, l)
			if err == nil {
				binary.LittleEndian.PutUint32(b, uint32(value.get(m, l)))
			}
			return err
		})
	})
}
