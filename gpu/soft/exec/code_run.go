package exec

import (
	"math/bits"
	"slices"

	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/native"
)

// tiles is the number of tiles of a warp.
const tiles = ir.WarpSize / ir.Tile

// codeState is the state of a machine for machine code.
type codeState struct {
	code    *machineCode // nil if there is none yet
	context *native.Context
	files   native.Files
	bound   *Run              // the launch of files
	rows    bool              // warps are rows of threads (native.FindSteady)
	short   bool              // there are fewer parameters than the program declares: the region is not used
	table   []Region          // the table that windows are from
	windows [][]native.Window // by run: the allocation that each access used last
}

// useCode makes a machine use machine code if there is some.
func (m *machine) useCode(blocks int) {
	n := &m.native
	if n.code == nil || n.code.learns {
		c := m.p.warm(m.env.Engine, m.warps, blocks)
		if c == nil {
			return
		}
		if n.code == nil {
			n.context, n.windows = &native.Context{}, make([][]native.Window, len(c.runs))
		}
		m.blocks, n.code = c.blocks, c
	}
	m.bind()
	if t := m.env.table; len(t) != len(n.table) || len(t) > 0 && &t[0] != &n.table[0] {
		n.table = t
		n.clearWindows()
	}
}

// clearWindows forgets which allocations accesses have used.
func (n *codeState) clearWindows() {
	clear(n.windows)
	if n.context != nil {
		n.context.ClearWindows()
	}
}

// bind connects machine code to the registers and memory of the machine.
func (m *machine) bind() {
	n := &m.native
	if n.bound == m.of {
		return
	}
	n.bound = m.of
	n.files = native.Files{R32: m.r32, R64: m.r64, Preds: m.preds, Shared: m.shared, Params: m.env.Params, Local: m.local}
	if m.of.size == 1 { // else other blocks of the cluster may access the shared memory
		n.files.Exclusive = m.shared
	}
	n.context.Bind(&n.files)
	n.rows, n.short = m.env.Block[0]%ir.WarpSize == 0, len(m.env.Params) < int(m.p.ParamBytes)
	n.context.Begin(n.rows)
}

// forget drops references to the memory of a launch.
func (n *codeState) forget() {
	n.table, n.files, n.bound = nil, native.Files{}, nil
	n.clearWindows()
}

// runCode executes a run for the active lanes.
func (m *machine) runCode(r *run, act []uint32) error {
	windows := m.native.windowsOf(r)
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
		if err := m.runTiles(r, full, w*tiles, end*tiles, act, windows); err != nil {
			return err
		}
		w = end
	}
	m.did |= r.activity()
	m.reads = (m.reads + m.outcomeOf(r.loads, act)) * 0x9e3779b97f4a7c15
	return nil
}

// windowsOf returns the allocation that each access of a run used last.
func (n *codeState) windowsOf(r *run) []native.Window {
	if n.windows[r.number] == nil {
		n.windows[r.number] = make([]native.Window, max(len(r.windows[0]), len(r.windows[1])))
	}
	return n.windows[r.number]
}

// leftLanes are the lanes that have left a run at an instruction.
type leftLanes struct {
	inst int
	act  [maxWarps]uint32
}

// runTiles executes a run for some tiles. Lanes of tiles that leave the code are
// interpreted for the rest, all that have left at one instruction together: it may be
// one store, or one load, of a whole warp.
func (m *machine) runTiles(r *run, full bool, from, to int, act []uint32, used []native.Window) error {
	f, windows := r.some, r.windows[1]
	if full {
		f, windows = r.all, r.windows[0]
	}
	var left []leftLanes
	for resumed := false; from < to; resumed = true {
		tile, inst := m.native.context.Run(f, len(r.steps), act, used, from, to, resumed)
		if m.native.context.Changed() {
			m.did |= didChange
		}
		if tile == to {
			if full && m.native.code.learns { // the addresses of a tile that has left may have been examined before its accesses had their allocations
				m.native.context.Kinds(r.seen)
			}
			break
		}
		left = addLeft(left, inst, act, tile, tile+1)
		if from = tile + 1; r.ordered { // if two lanes store to one address, the value of the later one must remain
			left = addLeft(left, 0, act, from, to)
			break
		}
	}
	if len(left) == 0 {
		return nil
	}
	return m.interpretLeft(r, windows, left)
}

// addLeft adds the lanes of some tiles to those that have left at an instruction.
func addLeft(left []leftLanes, inst int, act []uint32, from, to int) []leftLanes {
	if from == to {
		return left
	}
	i := slices.IndexFunc(left, func(l leftLanes) bool { return l.inst == inst })
	if i < 0 {
		i, left = len(left), append(left, leftLanes{inst: inst})
	}
	for tile := from; tile < to; tile++ {
		left[i].act[tile/tiles] |= act[tile/tiles] & (0xff << (tile % tiles * ir.Tile))
	}
	return left
}

// interpretLeft interprets the rest of a run for lanes that have left it.
func (m *machine) interpretLeft(r *run, windows []int, left []leftLanes) error {
	slices.SortFunc(left, func(a, b leftLanes) int { return a.inst - b.inst })
	var lanes [maxWarps]uint32
	for i := left[0].inst; i < len(r.steps); i++ {
		leaves := len(left) > 0 && left[0].inst == i
		if leaves {
			for w, l := range left[0].act {
				lanes[w] |= l
			}
			left = left[1:]
		}
		if err := m.stepFor(&r.steps[i], lanes[:m.warps]); err != nil {
			return wrap(r.steps[i].at, err)
		}
		if leaves {
			m.widen(r, windows, i)
		}
	}
	return nil
}

// widen sets the window of an access to the allocation that was used last.
func (m *machine) widen(r *run, windows []int, inst int) {
	for i, at := range windows {
		if at != inst {
			continue
		}
		w := native.Window{Base: m.cache.Base, Data: m.cache.Data}
		m.native.windowsOf(r)[i] = w
		if r.region >= 0 {
			m.native.context.SetWindow(r.region+i, w)
		}
	}
}

// activity returns how a run accessed memory, for the detection of threads that wait.
func (r *run) activity() (a activity) {
	if r.stores {
		a |= didChange
	}
	if len(r.loads) > 0 {
		a |= didRead
	}
	return a
}

// outcomeOf returns a hash of the values that iterations of a loop have computed, in
// the first active lane, from what they loaded. Iterations that wait have the same
// hash.
func (m *machine) outcomeOf(loads []ir.Ref, act []uint32) (sum uint64) {
	if len(loads) == 0 {
		return 0
	}
	lane := 0
	for w, lanes := range act {
		if lanes != 0 {
			lane = w*ir.WarpSize + bits.TrailingZeros32(lanes)
			break
		}
	}
	for _, ref := range loads {
		sum = (sum + m.get(ref, lane)) * 0x9e3779b97f4a7c15
	}
	return sum
}
