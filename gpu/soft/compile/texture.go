package compile

import (
	"strings"

	"github.com/basalt-gpu/basalt/gpu/ptx"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
	"github.com/basalt-gpu/basalt/gpu/soft/texture"
)

// Texture and surface instructions (PTX ISA, "Texture Instructions", "Surface
// Instructions").

func addTextures() {
	decoders["tex"], decoders["tld4"], decoders["txq"] = (*compiler).tex, (*compiler).tld4, (*compiler).txq
	decoders["suld"], decoders["sust"], decoders["sured"], decoders["suq"] = (*compiler).suld, (*compiler).sust, (*compiler).sured, (*compiler).suq
	decoders["istypep"] = (*compiler).istypep
}

// geometry describes the coordinates of an instruction.
type geometry struct {
	dims    int
	layered bool
	cube    bool
}

var geometries = map[string]geometry{
	"1d": {dims: 1}, "2d": {dims: 2}, "3d": {dims: 3}, "a1d": {dims: 1, layered: true}, "a2d": {dims: 2, layered: true},
	"cube": {dims: 3, cube: true}, "acube": {dims: 3, cube: true, layered: true},
}

// geometryOf returns the geometry among the modifiers.
func (c *compiler) geometryOf(in *ptx.Inst) (geometry, error) {
	for _, m := range in.Mods {
		if g, ok := geometries[m]; ok {
			return g, nil
		}
		if strings.HasSuffix(m, "2dms") {
			return geometry{}, missing(in, "textures with several samples, .%s", m)
		}
	}
	return geometry{}, broken(in, qualifiers(in.Mods), "%s must have a geometry: .1d, .2d, .3d, .a1d, .a2d, .cube or .acube", in.Op)
}

// object returns the register with the number of a texture or surface object, or of a
// reference.
func (c *compiler) object(o *ptx.Operand) (ir.Ref, error) {
	return c.source(o, ir.Class64, ptx.U64)
}

// texelPlace is the operand [object, coordinates] or [object, sampler, coordinates].
type texelPlace struct {
	object, sampler, layer ir.Ref
	at                     [3]ir.Ref
}

func (c *compiler) texelPlace(mem *ptx.Operand, g geometry, t ptx.Type) (w texelPlace, err error) {
	w = texelPlace{sampler: ir.None, layer: ir.None, at: absent3()}
	n := len(mem.List)
	if mem.Kind != ptx.KindMem || mem.Off != 0 || n != 2 && n != 3 {
		return w, broken(c.in, kindOf(mem), "the texel of %s must be [object, coordinates] or [object, sampler, coordinates]", c.in.Op)
	}
	if w.object, err = c.object(&mem.List[0]); err != nil {
		return w, err
	}
	if n == 3 {
		if w.sampler, err = c.object(&mem.List[1]); err != nil {
			return w, err
		}
	}
	list := vectorOf(&mem.List[n-1])
	if g.layered {
		var layer [1]ir.Ref
		if err := c.three(layer[:], list, ptx.U32); err != nil {
			return w, err
		}
		w.layer, list = layer[0], list[1:]
	}
	return w, c.three(w.at[:g.dims], list, t)
}

func absent3() [3]ir.Ref { return [3]ir.Ref{ir.None, ir.None, ir.None} }

// three compiles the first elements of a list, of 32 bits each.
func (c *compiler) three(to []ir.Ref, list []ptx.Operand, t ptx.Type) (err error) {
	if len(list) < len(to) {
		return broken(c.in, len(list), "a vector of %s must have at least %d more elements for its geometry", c.in.Op, len(to))
	}
	for i := range to {
		if err := c.checkOperand(&list[i], t, agrees); err != nil {
			return err
		}
		if to[i], err = c.source(&list[i], ir.Class32, t); err != nil {
			return err
		}
	}
	return nil
}

// vectorOf returns the elements of a vector operand, or the operand itself.
func vectorOf(o *ptx.Operand) []ptx.Operand {
	if o.Kind == ptx.KindVec {
		return o.List
	}
	return []ptx.Operand{*o}
}

// fetch compiles what tex and tld4 have in common: types, result, coordinates. It
// returns the remaining operands.
func (c *compiler) fetch(in *ptx.Inst) (k ir.Fetch, g geometry, rest []ptx.Operand, err error) {
	if g, err = c.geometryOf(in); err != nil {
		return k, g, nil, err
	}
	var types []ptx.Type
	for _, m := range in.Mods {
		if t, ok := ptx.TypeByName(m); ok {
			types = append(types, t)
		}
	}
	if len(types) != 2 {
		return k, g, nil, broken(in, len(types), "%s must have 2 types, of the result and the coordinates", in.Op)
	}
	if types[1] != ptx.F32 && (types[1] != ptx.S32 || g.cube) {
		return k, g, nil, broken(in, "."+types[1].String(), "the type of the coordinates of %s must be .f32, or .s32 except for cubes", in.Op)
	}
	if len(in.Args) < 2 {
		return k, g, nil, fewOperands(in, len(in.Args), 2)
	}
	k = ir.Fetch{Resident: ir.None, Level: ir.None, Offset: absent3(), DX: absent3(), DY: absent3(), Whole: types[1] == ptx.S32, Cube: g.cube}
	if err := c.fetched(&k, &in.Args[0], types[0]); err != nil {
		return k, g, nil, err
	}
	w, err := c.texelPlace(&in.Args[1], g, types[1])
	k.Object, k.Sampler, k.At, k.Layer = w.object, w.sampler, w.at, w.layer
	return k, g, in.Args[2:], err
}

// fetched compiles the result of a fetch.
func (c *compiler) fetched(k *ir.Fetch, d *ptx.Operand, t ptx.Type) (err error) {
	if d.Kind == ptx.KindPair {
		if k.Resident, err = c.dest(&d.List[1], ir.ClassPred); err != nil {
			return err
		}
		d = &d.List[0]
	}
	n := 4
	switch t {
	case ptx.F16:
		k.Packing = ir.Halves
	case ptx.F16x2:
		k.Packing, n = ir.HalfPairs, 2
	case ptx.F32, ptx.U32, ptx.S32, ptx.B32:
	default:
		return missing(c.in, "%s with a result of type .%s", c.in.Op, t)
	}
	list := vectorOf(d)
	if len(list) != n {
		return wrongLength(c.in, d, n)
	}
	for i := range list {
		if list[i].Kind == ptx.KindSink {
			k.D = append(k.D, ir.None)
			continue
		}
		if o := &list[i]; o.Kind == ptx.KindReg && c.fr.f.Regs[o.Reg].Type.Size() != t.Size() {
			r := &c.fr.f.Regs[o.Reg]
			return broken(c.in, "."+r.Type.String(), "register %s must have the size of a .%s", r.Name, t)
		}
		r, err := c.dest(&list[i], ir.Class32)
		if err != nil {
			return err
		}
		k.D = append(k.D, r)
	}
	return nil
}

// offset compiles the operand after the coordinates of a fetch: an offset in texels.
func (c *compiler) offset(k *ir.Fetch, g geometry, rest []ptx.Operand) error {
	switch {
	case len(rest) == 0:
		return nil
	case len(rest) > 1 || g.cube, rest[0].Kind != ptx.KindVec && g.dims > 1:
		return missing(c.in, "%s with a comparison with a depth", c.in.Op)
	}
	return c.three(k.Offset[:g.dims], vectorOf(&rest[0]), ptx.S32)
}

func (c *compiler) tex(in *ptx.Inst) ([]ir.Op, error) {
	k, g, rest, err := c.fetch(in)
	if err != nil {
		return nil, err
	}
	switch {
	case in.Has("level"):
		if len(rest) < 1 {
			return nil, fewOperands(in, len(in.Args), 3)
		}
		k.Detail = texture.ByLevel
		t := ptx.F32
		if k.Whole {
			t = ptx.S32
		}
		if k.Level, err = c.source(&rest[0], ir.Class32, t); err != nil {
			return nil, err
		}
		rest = rest[1:]
	case in.Has("grad"):
		if len(rest) < 2 {
			return nil, fewOperands(in, len(in.Args), 4)
		}
		k.Detail = texture.ByGradient
		for i, to := range []*[3]ir.Ref{&k.DX, &k.DY} {
			if err := c.three(to[:g.dims], vectorOf(&rest[i]), ptx.F32); err != nil {
				return nil, err
			}
		}
		rest = rest[2:]
	}
	if err := c.offset(&k, g, rest); err != nil {
		return nil, err
	}
	return []ir.Op{&k}, nil
}

func (c *compiler) tld4(in *ptx.Inst) ([]ir.Op, error) {
	k, g, rest, err := c.fetch(in)
	if err != nil {
		return nil, err
	}
	if k.Gather, k.Channel = true, -1; len(in.Mods) > 0 {
		k.Channel = strings.Index("rgba", in.Mods[0])
	}
	if k.Channel < 0 || len(in.Mods[0]) != 1 {
		return nil, broken(in, qualifiers(in.Mods), "the first qualifier of tld4 must be .r, .g, .b or .a")
	}
	if k.Whole || g.dims != 2 && !g.cube {
		return nil, broken(in, qualifiers(in.Mods), "tld4 must have a geometry of 2 dimensions or a cube, and coordinates of type .f32")
	}
	if err := c.offset(&k, g, rest); err != nil {
		return nil, err
	}
	return []ir.Op{&k}, nil
}

var properties = map[string]texture.Property{
	"width": texture.Width, "height": texture.Height, "depth": texture.Depth, "array_size": texture.LayerCount,
	"channel_data_type": texture.DataType, "channel_order": texture.Order, "normalized_coords": texture.NormalizedCoordinates,
	"num_mipmap_levels": texture.LevelCount, "num_samples": texture.SampleCount,
}

func (c *compiler) txq(in *ptx.Inst) ([]ir.Op, error) { return c.query(in, false) }
func (c *compiler) suq(in *ptx.Inst) ([]ir.Op, error) { return c.query(in, true) }

// query compiles txq and suq.
func (c *compiler) query(in *ptx.Inst, surface bool) ([]ir.Op, error) {
	mods := in.Mods
	level, args := ir.None, 2
	if len(mods) > 0 && mods[0] == "level" && !surface {
		mods, args = mods[1:], 3
	}
	if len(mods) != 2 || mods[1] != "b32" {
		return nil, broken(in, qualifiers(in.Mods), "%s must have a property and the type .b32", in.Op)
	}
	if err := operands(in, args); err != nil {
		return nil, err
	}
	if a := &in.Args[1]; a.Kind != ptx.KindMem || len(a.List) != 1 || a.Off != 0 {
		return nil, broken(in, kindOf(a), "operand 2 of %s must be [object]", in.Op)
	}
	p, ok := properties[mods[0]]
	if !ok {
		return nil, missing(in, "%s with property .%s", in.Op, mods[0])
	}
	d, err := c.dest(&in.Args[0], ir.Class32)
	if err != nil {
		return nil, err
	}
	object, err := c.object(&in.Args[1].List[0])
	if err == nil && args == 3 {
		level, err = c.source(&in.Args[2], ir.Class32, ptx.U32)
	}
	if err != nil {
		return nil, err
	}
	return []ir.Op{&ir.TextureProperty{D: d, Object: object, Level: level, Property: p, Surface: surface}}, nil
}

func (c *compiler) istypep(in *ptx.Inst) ([]ir.Op, error) {
	if len(in.Mods) != 1 {
		return nil, broken(in, qualifiers(in.Mods), "istypep must have one qualifier, .texref or .surfref")
	}
	if err := operands(in, 2); err != nil {
		return nil, err
	}
	d, err := c.dest(&in.Args[0], ir.ClassPred)
	if err != nil {
		return nil, err
	}
	object, err := c.object(&in.Args[1])
	if err != nil {
		return nil, err
	}
	switch in.Mods[0] {
	case "texref":
		return []ir.Op{&ir.IsTexture{D: d, Object: object}}, nil
	case "surfref":
		return []ir.Op{&ir.IsTexture{D: d, Object: object, Surface: true}}, nil
	}
	return nil, missingQualifiers(in, in.Mods)
}

// surface compiles what surface instructions have in common. n is the number of
// elements of .vec.
func (c *compiler) surface(in *ptx.Inst, mem *ptx.Operand) (k ir.Surface, t ptx.Type, n int, err error) {
	g, err := c.geometryOf(in)
	if err != nil {
		return k, t, 0, err
	}
	n, t = 1, ptx.NoType
	outside := map[string]texture.Outside{"trap": texture.Trap, "clamp": texture.Nearest, "zero": texture.Nothing}
	bounded := false
	for _, m := range in.Mods {
		if mt, ok := ptx.TypeByName(m); ok {
			t = mt
		} else if o, ok := outside[m]; ok {
			k.Outside, bounded = o, true
		} else if m == "v2" || m == "v4" {
			n = int(m[1] - '0')
		}
	}
	k.Texels, k.Size = in.Has("p"), uint64(t.Size())
	if err := surfaceRule(in, g, t, n, bounded); err != nil {
		return k, t, n, err
	}
	w, err := c.texelPlace(mem, g, ptx.S32)
	k.Object, k.At, k.Layer = w.object, w.at, w.layer
	if err == nil && w.sampler != ir.None {
		err = broken(in, "[object, sampler, coordinates]", "the texel of %s must be [object, coordinates]", in.Op)
	}
	return k, t, n, err
}

// surfaceRule returns an error unless the qualifiers of a surface instruction are
// consistent. bounded means that they specify the behavior outside of the surface.
func surfaceRule(in *ptx.Inst, g geometry, t ptx.Type, n int, bounded bool) error {
	switch {
	case in.Has("p") == in.Has("b"):
		return broken(in, qualifiers(in.Mods), "%s must have either .b or .p", in.Op)
	case t == ptx.NoType:
		return broken(in, qualifiers(in.Mods), "%s must have a type", in.Op)
	case n*int(t.Size()) > 16:
		return broken(in, n*int(t.Size()), "the vector of %s must have at most 16 bytes", in.Op)
	case g.cube:
		return broken(in, qualifiers(in.Mods), "the geometry of %s must not be a cube", in.Op)
	case !bounded:
		return broken(in, qualifiers(in.Mods), "%s must have one of the qualifiers .trap, .clamp and .zero", in.Op)
	}
	return nil
}

func (c *compiler) suld(in *ptx.Inst) ([]ir.Op, error) {
	if in.Has("p") {
		return nil, broken(in, qualifiers(in.Mods), "suld must have the qualifier .b")
	}
	if err := operands(in, 2); err != nil {
		return nil, err
	}
	k, t, n, err := c.surface(in, &in.Args[1])
	if err != nil {
		return nil, err
	}
	list := vectorOf(&in.Args[0])
	if len(list) != n {
		return nil, wrongLength(in, &in.Args[0], n)
	}
	dst := make([]ir.Ref, n)
	for i := range list {
		if dst[i], err = c.loadDest(&list[i], t); err != nil {
			return nil, err
		}
	}
	return []ir.Op{&ir.SurfaceLoad{Surface: k, D: dst}}, nil
}

func (c *compiler) sust(in *ptx.Inst) ([]ir.Op, error) {
	if err := operands(in, 2); err != nil {
		return nil, err
	}
	k, t, n, err := c.surface(in, &in.Args[0])
	if err != nil {
		return nil, err
	}
	list := vectorOf(&in.Args[1])
	if len(list) != n {
		return nil, wrongLength(in, &in.Args[1], n)
	}
	if k.Texels && t.Size() != 4 {
		return nil, broken(in, "."+t.String(), "the type of sust.p must have 32 bits")
	}
	src := make([]ir.Ref, n)
	for i := range list {
		cl := classOf(t)
		if o := &list[i]; o.Kind == ptx.KindReg && c.fr.regs[o.Reg].Class == ir.Class64 {
			cl = ir.Class64
		}
		if src[i], err = c.source(&list[i], cl, t); err != nil {
			return nil, err
		}
	}
	return []ir.Op{&ir.SurfaceStore{Surface: k, S: src}}, nil
}

func (c *compiler) sured(in *ptx.Inst) ([]ir.Op, error) {
	if len(in.Mods) < 2 {
		return nil, broken(in, qualifiers(in.Mods), "sured must have .b or .p and an operation")
	}
	if err := operands(in, 2); err != nil {
		return nil, err
	}
	k, t, n, err := c.surface(in, &in.Args[0])
	if err != nil {
		return nil, err
	}
	as, signed := t, t
	if k.Texels { // .b32: the surface's format determines the type
		as, signed = ptx.U32, ptx.S32
	}
	op := in.Mods[1]
	f, g := ops.UpdateFor(op, as), ops.UpdateFor(op, signed)
	if f == nil || g == nil || n != 1 || k.Texels && t != ptx.B32 || !strings.Contains(" add min max and or ", " "+op+" ") {
		return nil, missingQualifiers(in, in.Mods)
	}
	src, err := c.source(&in.Args[1], classOf(t), t)
	if err != nil {
		return nil, err
	}
	return []ir.Op{&ir.SurfaceReduce{Surface: k, S: src, F: f, Signed: g, What: op + "." + t.String()}}, nil
}
