package plan

import (
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

// TestCauses checks what the user of an instance that no node has room for is told.
func TestCauses(t *testing.T) {
	gpu := api.Cause{Code: api.CauseNoRoom, Missing: api.MissingGPU, Pool: api.DefaultPool, Bytes: 6 * gib}
	for name, c := range map[string]struct {
		state *State
		vram  int64
		want  api.Cause
	}{
		"no GPU":                               {cluster().node("n1", 8*gib), 6 * gib, gpu},
		"a GPU that is too small":              {cluster().node("n1", 8*gib).gpu("g1", "n1", 4*gib), 6 * gib, gpu},
		"one node without a GPU, one too full": {cluster().node("n1", 8*gib).node("n2", 8*gib).gpu("g1", "n2", 4*gib), 6 * gib, gpu},
		"too little memory":                    {cluster().node("n1", gib/2), 0, api.Cause{Code: api.CauseNoRoom, Missing: api.MissingMemory, Bytes: gib}},
		"no node":                              {cluster(), 0, api.Cause{Code: api.CauseNodeUnavailable}},
	} {
		t.Run(name, func(t *testing.T) {
			s := c.state.instance("a", "flv-1", c.vram, 0)
			settle(t, s)
			if a := s.Instances["a"].Assignment; a.Cause != c.want {
				t.Errorf("cause = %+v beside %q, want %+v", a.Cause, a.Reason, c.want)
			}
		})
	}
}
