package cuda

import (
	"errors"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// libcuda reports some attributes only for loaded functions. A guest that loads each
// function has it loaded then; any other has all of them loaded with the module.
func TestFunctionsAreLoaded(t *testing.T) {
	c := open(t, newDouble(t), &gate{})
	whole := [abi.FunctionAttributes]int32{100, 101, 102, 103, 104, 105, 106, 107, 108, 109}
	part := whole
	part[0], part[8] = 0, 0
	for _, x := range []struct {
		name string
		o    worker.ModuleOptions
		want [abi.FunctionAttributes]int32
	}{{"at once", worker.ModuleOptions{OptLevel: 4}, whole}, {"when asked", worker.ModuleOptions{OptLevel: 4, Lazy: true}, part}} {
		t.Run(x.name, func(t *testing.T) {
			m, fs, info, err := c.ModuleLoad([]byte(source), x.o)
			if err != nil {
				t.Fatal(err)
			}
			if got := info.Functions[0].Attributes; got != x.want {
				t.Errorf("attributes after ModuleLoad = %v, want %v", got, x.want)
			}
			asked, err := c.(worker.LazyLoader).FunctionInfo(fs[0])
			if err != nil || asked.Attributes != whole || asked.Name != "first" || len(asked.Params) != len(info.Functions[0].Params) {
				t.Errorf("FunctionInfo = %+v, %v, want the attributes %v of the function", asked, err, whole)
			}
			if err := errors.Join(c.ModuleUnload(m), wait(t, c.Notify)); err != nil {
				t.Fatal(err)
			}
			if _, err := c.(worker.LazyLoader).FunctionInfo(fs[0]); !errors.Is(err, abi.ErrInvalidHandle) {
				t.Errorf("FunctionInfo of an unloaded module = %v, want %v", err, abi.ErrInvalidHandle)
			}
		})
	}
}
