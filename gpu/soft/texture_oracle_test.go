package soft_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/ptx"
	"github.com/basalt-gpu/basalt/gpu/soft/oracle"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// placesKernel returns a kernel that executes a body for each thread's four words, %c0
// to %c3 as bits and %x0 to %x3 as numbers, and stores %f0 to %f3 in their place.
func placesKernel(body string) string {
	return ptxHead + `.visible .entry k(.param .u64 words, .param .u64 object) {
.reg .b64 %w, %t; .reg .f32 %f<4>, %x<4>; .reg .b32 %c<4>, %i; 
ld.param.u64 %w, [words]; ld.param.u64 %t, [object]; mov.u32 %i, %tid.x; mad.wide.u32 %w, %i, 16, %w;
ld.global.v4.b32 {%c0, %c1, %c2, %c3}, [%w]; mov.b32 %x0, %c0; mov.b32 %x1, %c1; mov.b32 %x2, %c2; mov.b32 %x3, %c3;
mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;
` + body + `
st.global.v4.f32 [%w], {%f0, %f1, %f2, %f3};
}`
}

// textureForm is an instruction on an image of these dimensions.
type textureForm struct {
	body    string
	dims    int
	layered bool
	whole   bool // coordinates are integers; 4 bytes each, for surfaces
	surface bool
}

var textureForms = map[string]textureForm{
	"1d":            {body: "tex.1d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%t, {%x1}];", dims: 1},
	"2d":            {body: "tex.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%t, {%x1, %x2}];", dims: 2},
	"3d":            {body: "tex.3d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%t, {%x1, %x2, %x3, %x3}];", dims: 3},
	"a1d":           {body: "tex.a1d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%t, {%c0, %x1}];", dims: 1, layered: true},
	"a2d":           {body: "tex.a2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%t, {%c0, %x1, %x2, %x2}];", dims: 2, layered: true},
	"2d whole":      {body: "tex.2d.v4.f32.s32 {%f0,%f1,%f2,%f3}, [%t, {%c1, %c2}];", dims: 2, whole: true},
	"3d whole":      {body: "tex.3d.v4.f32.s32 {%f0,%f1,%f2,%f3}, [%t, {%c1, %c2, %c3, %c3}];", dims: 3, whole: true},
	"2d offset":     {body: "tex.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%t, {%x1, %x2}], {-3, 2};", dims: 2},
	"tld4":          {body: "tld4.g.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%t, {%x1, %x2}];", dims: 2},
	"suld.1d.clamp": {body: "suld.b.1d.b32.clamp %f0, [%t, {%c1}];", dims: 1, whole: true, surface: true},
	"suld.2d.zero":  {body: "suld.b.2d.v2.b32.zero {%f0, %f1}, [%t, {%c1, %c2}];", dims: 2, whole: true, surface: true},
	"suld.a2d":      {body: "suld.b.a2d.b32.zero %f2, [%t, {%c0, %c1, %c2, %c2}];", dims: 2, layered: true, whole: true, surface: true},
	"suld.3d.clamp": {body: "suld.b.3d.b32.clamp %f2, [%t, {%c1, %c2, %c3, %c3}];", dims: 3, whole: true, surface: true},
	"sust.2d": {body: "and.b32 %c1, %c1, 8; mov.b32 %f3, 0f40E00000; sust.b.2d.v2.b32.zero [%t, {%c1, %c2}], {%f3, %f3};",
		dims: 2, whole: true, surface: true},
}

// TestTexturesAgainstOracle compares each form with the oracle, in each addressing
// mode, filtered or not.
func TestTexturesAgainstOracle(t *testing.T) {
	for name, f := range textureForms {
		t.Run(name, func(t *testing.T) {
			for seed := range int64(8) {
				f.differ(t, rand.New(rand.NewSource(seed)))
			}
		})
	}
}

// sampled sets random sampling parameters on the oracle's image, and returns them for
// the texture object.
func (f *textureForm) sampled(rnd *rand.Rand, im *oracle.Image) (how abi.TextureCreate) {
	if f.surface {
		return abi.TextureCreate{Surface: 1}
	}
	how.Filter = uint32(rnd.Intn(2))
	if im.Linear = how.Filter == 1; rnd.Intn(2) == 0 && !f.whole {
		how.Flags, im.Normalized = abi.TextureNormalized, true
	}
	im.Border = [4]float32{5, 6, 0, 0}
	how.Border = im.Border
	for d := range 3 {
		im.Mode[d] = oracle.Mode(rnd.Intn(4))
		how.Address[d] = uint32(im.Mode[d])
	}
	return how
}

// words returns the arguments of the threads: a layer and coordinates.
func (f *textureForm) words(rnd *rand.Rand, threads int, im *oracle.Image) (b []byte) {
	for range threads {
		b = binary.LittleEndian.AppendUint32(b, uint32(rnd.Intn(5)))
		for d := range 3 {
			n := float64(im.Size[d])
			v := math.Float32bits(float32((rnd.Float64()*5 - 2) * n))
			switch {
			case f.surface && d == 0:
				v = uint32(8 * (rnd.Intn(12) - 3))
			case f.whole:
				v = uint32(rnd.Intn(12) - 3)
			case rnd.Intn(20) == 0:
				v = [...]uint32{0x7fc00000, 0x7f800000, 0xff800000, 0x7f7fffff}[rnd.Intn(4)]
			case im.Normalized:
				v = math.Float32bits(float32(rnd.Intn(4096)-1500) / 512)
			}
			b = binary.LittleEndian.AppendUint32(b, v)
		}
	}
	return b
}

func (f *textureForm) differ(t *testing.T, rnd *rand.Rand) {
	const threads = 40
	im := oracle.Image{Dims: f.dims, Size: [3]int64{8, 1, 1}, Layers: 1, Channels: 2}
	desc := abi.ArrayCreate{Width: 8, Format: formatFloat, Channels: 2, Levels: 1, Flags: abi.ArraySurface}
	if f.dims > 1 {
		im.Size[1], desc.Height = 4, 4
	}
	if f.dims > 2 {
		im.Size[2], desc.Depth = 2, 2
	}
	if f.layered {
		im.Layers, desc.Depth, desc.Flags = 3, 3, desc.Flags|abi.ArrayLayered
	}
	var texels []byte
	for range im.Size[0] * im.Size[1] * im.Size[2] * im.Layers * im.Channels {
		im.Texels = append(im.Texels, float32(rnd.Intn(4096)-2048))
		texels = append(texels, floatBytes(im.Texels[len(im.Texels)-1])...)
	}
	how := f.sampled(rnd, &im)
	src, words := placesKernel(f.body), f.words(rnd, threads, &im)
	r := newRig(t, src)
	a := r.array(desc)
	r.fill(a, &desc, 0, texels)
	object, mem := r.object(how, a), r.buffer(words)
	r.launch("k", [3]uint32{1, 1, 1}, [3]uint32{threads, 1, 1}, 0, mem, object)
	got, err := r.read(mem, len(words))
	if err != nil {
		t.Fatal(err)
	}
	mod, err := ptx.Parse(src)
	if err != nil {
		t.Fatal(err)
	}
	want := bytes.Clone(words)
	l := oracle.Launch{Func: mod.Funcs[0], Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{threads, 1, 1}, Params: pack(mem, object),
		Memory: oracleMemory{mem: want}.bytes, Images: map[uint64]*oracle.Image{object: &im}}
	if err := l.Run(); err != nil {
		t.Fatalf("oracle: %v", err)
	}
	if f.surface {
		r.sameTexels(a, &desc, im.Texels)
	}
	for i := 0; i < len(want); i += 16 {
		if !bytes.Equal(got[i:][:16], want[i:][:16]) {
			t.Fatalf("%+v, thread %d: fetch at %s = %s, want %s as the oracle", how, i/16, four(words[i:]), four(got[i:]), four(want[i:]))
		}
	}
}

// sameTexels compares an array with the oracle's image.
func (r *rig) sameTexels(a worker.Array, desc *abi.ArrayCreate, want []float32) {
	r.Helper()
	size := desc.Extent(0)
	mem := r.buffer(make([]byte, 4*len(want)))
	if err := r.textures().ArrayCopy(nil, abi.ArrayCopy{Dst: mem, Size: size, Pitch: size[0], Rows: size[1], Arrays: abi.ArrayCopySrc}, nil, a, nil); err != nil {
		r.Fatal(err)
	}
	got, err := r.read(mem, 4*len(want))
	if err != nil || !bytes.Equal(got, floatBytes(want...)) {
		r.Errorf("texels of the surface = %x, error %v; want %x as the oracle", got, err, floatBytes(want...))
	}
}

// four formats words as numbers.
func four(b []byte) (s string) {
	for i := range 4 {
		v := binary.LittleEndian.Uint32(b[4*i:])
		s += fmt.Sprintf(" %v (%d)", math.Float32frombits(v), int32(v))
	}
	return s
}
