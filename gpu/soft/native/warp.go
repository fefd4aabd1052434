package native

import (
	"math"
	"slices"

	"github.com/basalt-gpu/basalt/gpu/soft/amd64"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/regalloc"
)

// Bodies for all tiles of a warp. Threads of a product of matrices load from the same
// addresses of shared memory in rows and columns of a block of threads. A run of a region
// in which tiles of a warp have had the same addresses, or addresses at known distances,
// has a body that executes each instruction for all tiles before the next one: it examines
// the addresses of one tile, compares those of the others with them, and loads once what
// several tiles load. A run that stores consecutive elements to shared memory has such a
// body as well. These are quick bodies: they write nothing before the last check, and
// where one fails, the tiles execute the run one after another.

// maxWarpInsts is the maximum number of instructions of such a run.
const maxWarpInsts = 128

// Tiles describes the addresses of the tiles of a warp in a group.
type Tiles [tilesOfWarp]TileAt

// TileAt describes the addresses of the lanes of a tile: they are those of another tile,
// or of the tile itself, plus a number of bytes.
type TileAt struct{ of, more uint8 }

// apartTiles means that each tile has addresses of its own.
var apartTiles = Tiles{{of: 0}, {of: 1}, {of: 2}, {of: 3}}

// tileSteps are the distances of tiles in bytes that are recorded: those of consecutive
// tiles of consecutive lanes, which are often also those of rows of a matrix.
var tileSteps = []uint64{32, 64, 128}

// The bits of the observed patterns of a group (Context.Kinds) after those of its kinds.
const (
	pairBits = 8  // for each two tiles: they had the same addresses; they had others
	stepBits = 20 // for each tile but the first: its distance from the one before it was that of tileSteps; it was another
)

func pairBit(s, t int) int { return pairBits + 2*(t*(t-1)/2+s) }

func stepBit(t, i int) int { return stepBits + 4*(t-1) + i }

// tilePattern returns the bits of the addresses of the first lanes of tiles.
func tilePattern(first *[tilesOfWarp]uint64) (bits uint32) {
	for t := 1; t < tilesOfWarp; t++ {
		for s := range t {
			bit := pairBit(s, t)
			if first[s] != first[t] {
				bit++
			}
			bits |= 1 << bit
		}
		i := slices.Index(tileSteps, first[t]-first[t-1])
		if i < 0 {
			i = len(tileSteps)
		}
		bits |= 1 << stepBit(t, i)
	}
	return bits
}

// tilesOf returns what the tiles of a warp had in common each time.
func tilesOf(bits uint32) Tiles {
	tiles := apartTiles
	for t := 1; t < tilesOfWarp; t++ {
		at := TileAt{of: uint8(t)}
		for i, n := range tileSteps {
			before := tiles[t-1]
			if more := uint64(before.more) + n; bits>>stepBit(t, 0)&15 == 1<<i && more <= math.MaxUint8 {
				at = TileAt{before.of, uint8(more)}
			}
		}
		for s := t - 1; s >= 0; s-- {
			if bits>>pairBit(s, t)&3 == 1 {
				at = tiles[s]
			}
		}
		tiles[t] = at
	}
	return tiles
}

// warpPointers hold the addresses in memory of the first groups of a warp's tiles.
var warpPointers = []amd64.Reg{amd64.R14, amd64.R15, amd64.RBX, amd64.R12}

// warpTiles is the state of a builder of a body for all tiles of a warp.
type warpTiles struct {
	known  []Tiles // of groups, in the order of their first load
	tiles  [tilesOfWarp]warpTile
	failed bool
}

// warpTile has what a builder knows of one tile.
type warpTile struct {
	current map[ir.Ref]value
	dirty   []ir.Ref
	groups  []tileGroup
	loaded  [][]id // by load
}

// tileGroup is the group of a tile's loads. Their addresses are those of the group plus a
// number of bytes.
type tileGroup struct {
	*group
	more int64
}

// sharing reports whether a run can have a body for all tiles of a warp, and needs fewer
// loads or checks with it.
func (x *RegionRun) sharing() bool {
	o := &x.Options
	if len(x.Insts) > maxWarpInsts || o.Loop != nil && loopable(x.Insts) {
		return false
	}
	shares := false
	for i, k := range o.Expect {
		if k > consecutive || i >= len(o.Tiles) {
			return false
		}
		shares = shares || o.Tiles[i] != apartTiles
	}
	for i := range x.Insts {
		in := &x.Insts[i]
		a, kind := memoryOf(in.Op)
		if in.Guard != nil || kind > stores || kind == stores && a.N != 1 || a != nil && !forWarp(a, kind) {
			return false
		}
		shares = shares || kind == stores
	}
	return shares
}

// forWarp reports whether an access can be in a body for all tiles of a warp.
func forWarp(a *ir.Access, kind accessKind) bool {
	if a.Strong || a.Size < 4 || int64(a.Off) != int64(int32(a.Off)) {
		return false
	}
	return a.Space == ir.Shared || a.Space <= ir.Global && kind == loads
}

// warpBody builds the body of a run for all tiles of a warp. It returns nil if there is
// none.
func (x *RegionRun) warpBody(s *segment) *body {
	if !x.sharing() {
		return nil
	}
	o, b := x.Options, newBuilder()
	o.segment = s
	w := &warpTiles{known: o.Tiles}
	b.layout, b.segment, b.known, b.insts, b.expect = layout{uint64(o.Lanes)}, s, o.Constant, x.Insts, o.Expect
	b.quick, b.warp = true, w
	for t := range w.tiles {
		w.tiles[t].current = map[ir.Ref]value{}
	}
	b.current = w.tiles[0].current
	for i := range x.Insts {
		if _, ok := x.Insts[i].Op.(*ir.Store); ok {
			b.warpStore(&x.Insts[i], i, &o)
			continue
		}
		for t := range tilesOfWarp {
			b.switchTile(t)
			b.inst(&x.Insts[i], i, &o)
		}
	}
	var list []result
	for t := range tilesOfWarp {
		b.switchTile(t)
		list = append(list, b.pending(len(x.Insts), &o)...)
	}
	b.insert(list)
	if w.failed {
		return nil
	}
	made, err := b.allocate(&o)
	if err != nil || made.spilled() {
		return nil
	}
	return made
}

// switchTile makes a tile the one whose instructions are added.
func (b *builder) switchTile(t int) {
	tiles := &b.warp.tiles
	tiles[b.tile].current, tiles[b.tile].dirty = b.current, b.dirty
	b.current, b.dirty, b.tile = tiles[t].current, tiles[t].dirty, t
}

// spilled reports whether the body stores vectors that have no register.
func (b *body) spilled() bool {
	return slices.ContainsFunc(b.steps, func(s regalloc.Step) bool {
		return s.Kind == regalloc.Store && s.Slot >= len(b.places)
	})
}

// warpLoad adds a load of the current tile, or returns the vectors of an earlier tile that
// has loaded them from the same addresses.
func (b *builder) warpLoad(x access, n int) []id {
	w := b.warp
	tile := &w.tiles[b.tile]
	l, ok := b.grouped(x)
	if !ok || l.group.expect > consecutive || x.Space <= ir.Global && l.group.expect == equal {
		w.failed = true
		words := b.add(regalloc.Inst{}, n, func(*amd64.Assembler, regs) {})
		tile.loaded = append(tile.loaded, words)
		return words
	}
	b.left = len(b.code.Insts) - 1 // the comparison, or a later load that cannot leave
	var words []id
	for s := range b.tile {
		if w.more(s, l.group) == w.more(b.tile, l.group) {
			words = w.tiles[s].loaded[len(tile.loaded)]
		}
	}
	if words == nil {
		words = b.add(regalloc.Inst{Temps: []regalloc.Class{0, 0, 0}}, n, l.emit)
	}
	tile.loaded = append(tile.loaded, words)
	return words
}

// warpStore adds a store to shared memory of all tiles. It falls back unless the lanes of
// the whole warp store consecutive elements.
func (b *builder) warpStore(in *ir.Inst, index int, o *Options) {
	op := in.Op.(*ir.Store)
	x := b.newAccess(&op.Access, index, o)
	var addresses, data []id
	for t := range tilesOfWarp {
		b.switchTile(t)
		v := b.base(x.Access)
		addresses = append(addresses, v.lo, v.hi)
		data = append(data, b.elements(op, op.S[0])...)
	}
	b.add(regalloc.Inst{Uses: addresses, Temps: []regalloc.Class{0, 0, 0}}, 0, func(a *amd64.Assembler, r regs) { x.matchWarp(a, r) })
	b.left = len(b.code.Insts) - 1
	b.stores = true
	for i, d := range data {
		b.add(regalloc.Inst{Uses: []id{d}}, 0, func(a *amd64.Assembler, r regs) {
			a.Emit(amd64.VMOVDQU, amd64.Mem(warpPointers[0], 32*int32(i)), amd64.Y(r.use[0]))
		})
	}
}

// matchWarp sets the first of warpPointers to where in memory the lanes of a warp access
// consecutive elements. It falls back if they do not, or not all of them are in the
// window.
func (x *access) matchWarp(a *amd64.Assembler, r regs) {
	first, t, differ := amd64.Y(r.temp[0]), amd64.Y(r.temp[1]), amd64.Y(r.temp[2])
	no := x.quick.general
	a.Emit(amd64.VPBROADCASTQ, first, amd64.X(r.use[0]))
	for i, v := range r.use {
		to := t
		if i == 0 {
			to = differ
		}
		a.Emit(amd64.VPADDQ, to, first, amd64.At(strides(a, uint64(4*i), x.Size)))
		a.Emit(amd64.VPXOR, to, to, amd64.Y(v))
		if i > 0 {
			a.Emit(amd64.VPOR, differ, differ, t)
		}
	}
	a.Emit(amd64.VPTEST, differ, differ)
	a.JumpIf(amd64.CondNE, no)
	a.Emit(amd64.VMOVQ, amd64.Q(offset), amd64.X(r.use[0]))
	if n := int64(x.Off); n != 0 {
		a.Emit(amd64.ADD, amd64.Q(offset), amd64.Imm(n))
	}
	x.inside(a, ir.WarpSize*x.Size, no, no)
	a.Emit(amd64.MOV, amd64.Q(warpPointers[0]), amd64.Q(offset))
}

// enter records that a tile has loads of a group. w may be nil.
func (w *warpTiles) enter(t int, g *group, more int64) {
	if w != nil && w.more(t, g) < 0 {
		w.tiles[t].groups = append(w.tiles[t].groups, tileGroup{g, more})
	}
}

// more returns the distance of the addresses of a tile from those of a group, or -1 if the
// tile has no load of the group. w may be nil.
func (w *warpTiles) more(t int, g *group) int64 {
	if w == nil {
		return 0
	}
	for _, x := range w.tiles[t].groups {
		if x.group == g {
			return x.more
		}
	}
	return -1
}

// sharedGroup returns the group of an earlier tile for a new group of the current tile if
// that is expected to have addresses at a known distance, and adds the comparison. It
// returns nil if it is not.
func (b *builder) sharedGroup(v value) (g *group, more int64) {
	w := b.warp
	if w == nil {
		return nil, 0
	}
	n := len(w.tiles[b.tile].groups)
	if n >= len(w.known) {
		return nil, 0
	}
	at := w.known[n][b.tile]
	if int(at.of) >= b.tile || n >= len(w.tiles[at.of].groups) {
		return nil, 0
	}
	x := w.tiles[at.of].groups[n]
	more = x.more + int64(at.more)
	x.span = max(x.span, more)
	w.enter(b.tile, x.group, more)
	b.add(regalloc.Inst{Uses: []id{v.lo, v.hi, x.base.lo, x.base.hi}, Temps: []regalloc.Class{0, 0}}, 0, func(a *amd64.Assembler, r regs) {
		t, u := amd64.Y(r.temp[0]), amd64.Y(r.temp[1])
		lo, hi := amd64.Y(r.use[2]), amd64.Y(r.use[3])
		if more > 0 {
			by := amd64.At(a.Broadcast64(uint64(more)))
			a.Emit(amd64.VPADDQ, t, lo, by)
			a.Emit(amd64.VPADDQ, u, hi, by)
			lo, hi = t, u
		}
		a.Emit(amd64.VPXOR, t, lo, amd64.Y(r.use[0]))
		a.Emit(amd64.VPXOR, u, hi, amd64.Y(r.use[1]))
		a.Emit(amd64.VPOR, t, t, u)
		a.Emit(amd64.VPTEST, t, t)
		a.JumpIf(amd64.CondNE, b.general)
	})
	return x.group, more
}
