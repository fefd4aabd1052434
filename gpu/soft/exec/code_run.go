package exec

import (
	"math/bits"
	"slices"

	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/native"
)

// tiles is how many a warp has.
const tiles = ir.WarpSize / ir.Tile

// codeState is what a machine keeps for machine code.
type codeState struct {
	code    *machineCode // nil: none yet
	context *native.Context
	files   native.Files
	table   []Region          // that windows are of
	windows [][]native.Window // by run: the allocation that each access used last
}

// useCode lets a machine go on with machine code where there is some.
func (m *machine) useCode(blocks int) {
	n := &m.native
	if n.code == nil {
		c := m.p.warm(m.env.Engine, m.warps, blocks)
		if c == nil {
			return
		}
		m.blocks, n.code, n.context, n.windows = c.blocks, c, &native.Context{}, make([][]native.Window, c.runs)
	}
	if t := m.env.table; len(t) != len(n.table) || len(t) > 0 && &t[0] != &n.table[0] {
		n.table = t
		clear(n.windows)
	}
}

// forget lets go of a launch's memory.
func (n *codeState) forget() {
	n.table, n.files = nil, native.Files{}
	clear(n.windows)
}

// runCode does a run for the active lanes.
func (m *machine) runCode(r *run, act []uint32) error {
	n := &m.native
	if n.windows[r.number] == nil {
		n.windows[r.number] = make([]native.Window, max(len(r.windows[0]), len(r.windows[1])))
	}
	n.files = native.Files{R32: m.r32, R64: m.r64, Preds: m.preds, Active: act, Shared: m.shared, Params: m.env.Params, Globals: n.windows[r.number]}
	for w := 0; w < len(act); {
		if act[w] == 0 {
			w++
			continue
		}
		full := act[w] == ^uint32(0)
		end := w + 1
		for end < len(act) && act[end] != 0 && (act[end] == ^uint32(0)) == full {
			end++
		}
		if err := m.runTiles(r, full, w*tiles, end*tiles, act); err != nil {
			return err
		}
		w = end
	}
	m.did |= r.activity()
	m.reads = (m.reads + m.outcomeOf(r, act)) * 0x9e3779b97f4a7c15
	return nil
}

// runTiles does a run for some tiles. Where the code leaves a tile, its lanes do
// the rest interpreted.
func (m *machine) runTiles(r *run, full bool, from, to int, act []uint32) error {
	f, windows := r.some, r.windows[1]
	if full {
		f, windows = r.all, r.windows[0]
	}
	for from < to {
		tile, inst := m.native.context.Run(f, &m.native.files, from, to)
		if tile == to {
			return nil
		}
		if from = tile + 1; r.stores {
			from = (tile/tiles + 1) * tiles // lanes of a warp that store to one address store once
		}
		if err := m.finish(r, windows, act, tile, inst, from); err != nil {
			return err
		}
	}
	return nil
}

// finish does what is left of a run from a tile on, whose lanes have come to an
// instruction, to another in the same warp. The access that it has come to gets
// the allocation that it uses now.
func (m *machine) finish(r *run, windows []int, act []uint32, tile, inst, to int) error {
	var here, behind [maxWarps]uint32
	w := tile / tiles
	here[w] = act[w] & lanesOf(tile, tile+1)
	behind[w] = act[w] & lanesOf(tile+1, to)
	for i := range r.steps {
		lanes := &behind
		if i == inst {
			here[w] |= behind[w]
		}
		if i >= inst {
			lanes = &here
		}
		if lanes[w] == 0 {
			continue
		}
		if err := m.stepFor(&r.steps[i], lanes[:m.warps]); err != nil {
			return wrap(r.steps[i].at, err)
		}
		if at := slices.Index(windows, i); i == inst && at >= 0 {
			m.native.windows[r.number][at] = native.Window{Base: m.cache.Base, Data: m.cache.Data}
		}
	}
	return nil
}

// lanesOf are the lanes of some tiles of one warp.
func lanesOf(from, to int) uint32 {
	return uint32(1<<((to-1)%tiles*ir.Tile+ir.Tile)-1) &^ (1<<(from%tiles*ir.Tile) - 1) & -bitOf(from < to)
}

// activity is what a run did, for threads that wait.
func (r *run) activity() (a activity) {
	if r.stores {
		a |= didChange
	}
	if len(r.loads) > 0 {
		a |= didRead
	}
	return a
}

// outcomeOf tells rounds of a loop apart by what they have computed in the first
// active lane from what they loaded: one that waits computes the same again.
func (m *machine) outcomeOf(r *run, act []uint32) (sum uint64) {
	if len(r.loads) == 0 {
		return 0
	}
	lane := 0
	for w, lanes := range act {
		if lanes != 0 {
			lane = w*ir.WarpSize + bits.TrailingZeros32(lanes)
			break
		}
	}
	for _, ref := range r.loads {
		sum = (sum + m.get(ref, lane)) * 0x9e3779b97f4a7c15
	}
	return sum
}
