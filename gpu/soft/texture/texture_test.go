package texture_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/soft/oracle"
	"github.com/basalt-gpu/basalt/gpu/soft/texture"
)

var floats = texture.Format{Kind: texture.Float, Bits: 32, Channels: 1}

// image returns an image of random numbers of at most 16 bits, so that the weighted
// sums of both sides are exact.
func image(t testing.TB, r *rand.Rand, s texture.Size) (*texture.Image, []byte) {
	t.Helper()
	im, err := texture.NewImage(floats, s)
	if err != nil {
		t.Fatal(err)
	}
	mem := make([]byte, im.Bytes)
	for i := 0; i < len(mem); i += 4 {
		binary.LittleEndian.PutUint32(mem[i:], single(float64(r.Intn(1<<12)-1<<11)))
	}
	return im, mem
}

// number stores its index in each texel of one level.
func number(im *texture.Image, mem []byte) {
	l, n := im.Levels[0], 0
	for row := range uint64(im.Layers) * uint64(l.Height) {
		for x := range uint64(l.Width) {
			binary.LittleEndian.PutUint32(mem[row*l.Pitch+4*x:], single(float64(n)))
			n++
		}
	}
}

// texels returns the texels of an image of one level, without the padding between rows.
func texels(im *texture.Image, mem []byte) (all []float32) {
	l := im.Levels[0]
	for row := range uint64(im.Layers) * uint64(l.Height) * uint64(l.Depth) {
		for x := range uint64(l.Width) {
			all = append(all, math.Float32frombits(binary.LittleEndian.Uint32(mem[row*l.Pitch+4*x:])))
		}
	}
	return all
}

func numbers(mem []byte) (all []float64) {
	for ; len(mem) >= 4; mem = mem[4:] {
		all = append(all, float64(math.Float32frombits(binary.LittleEndian.Uint32(mem))))
	}
	return all
}

func single(f float64) uint32 { return math.Float32bits(float32(f)) }

// coordinate returns coordinates of interest: texel centers and edges, ties of the
// weights, far outside.
func coordinate(r *rand.Rand, n int64, normalized bool) float32 {
	x := r.Float64()*6 - 3
	switch r.Intn(4) {
	case 0:
		x = float64(r.Intn(13)-6) / 2
	case 1:
		x = math.Round(x*float64(n)*512) / 512 / float64(n)
	case 2:
		x = math.Round(x*float64(n)*2) / 2 / float64(n)
	}
	if !normalized {
		x *= float64(n)
	}
	return float32(x)
}

func TestFetchAgainstProgrammingGuide(t *testing.T) {
	for _, size := range [][3]int64{{7, 0, 0}, {16, 0, 0}, {5, 3, 0}, {8, 4, 0}, {3, 5, 4}, {1, 1, 1}} {
		for _, normalized := range []bool{false, true} {
			for mode := texture.Wrap; mode <= texture.Border; mode++ {
				t.Run(fmt.Sprint(size, normalized, mode), func(t *testing.T) {
					against(t, size, normalized, mode)
				})
			}
		}
	}
}

func against(t *testing.T, size [3]int64, normalized bool, mode texture.Address) {
	r := rand.New(rand.NewSource(1))
	im, mem := image(t, r, texture.Size{Width: uint64(size[0]), Height: uint64(size[1]), Depth: uint64(size[2])})
	p := oracle.Image{Dims: im.Dims, Size: [3]int64{1, 1, 1}, Layers: 1, Channels: 1, Texels: texels(im, mem), Border: [4]float32{77}, Normalized: normalized}
	x := texture.Texture{Image: im, Sampler: texture.Sampler{Normalized: normalized, Border: p.Border}}
	for d := range 3 {
		p.Size[d] = max(1, size[d])
		x.Address[d] = texture.Address((int(mode) + d) % 4)
		p.Mode[d] = oracle.Mode(x.Address[d])
	}
	for range 500 {
		var q texture.Query
		for d := range im.Dims {
			q.At[d], q.Offset[d] = coordinate(r, p.Size[d], normalized), int32(r.Intn(4)*r.Intn(2))
		}
		if normalized && p.Size != [3]int64{8, 4, 1} && p.Size != [3]int64{16, 1, 1} && p.Size != [3]int64{1, 1, 1} {
			q.Offset = [3]int32{} // parts of a size that is not a power of two are inexact
		}
		for _, x.Filtered = range []bool{false, true} {
			p.Linear = x.Filtered
			if got, want := x.Fetch(mem, &q)[0], math.Float32bits(p.Fetch(q.At, q.Offset, 0, 0)); got != want {
				t.Fatalf("Fetch at %v with offset %v, filtered = %v: %v, want %v", q.At, q.Offset, x.Filtered, math.Float32frombits(got), math.Float32frombits(want))
			}
		}
	}
}

// TestSumsOfACard compares with sums of an H100, where products of the two weights are
// rounded to 8 bits too.
func TestSumsOfACard(t *testing.T) {
	for _, c := range []struct {
		texels [4]float64
		x, y   float64 // weights of the second, in parts of 256
		want   float64 // parts of 256
	}{
		{[4]float64{1283, -343, -788, 1787}, 28, 186, -18266},
		{[4]float64{-1024, -603, 783, -112}, 28, 186, 59426},
		{[4]float64{1572, -1249, -118, -680}, 228, 218, -170930},
		{[4]float64{1982, -1150, -462, 766}, 16, 193, 37908},
	} {
		im, mem := image(t, rand.New(rand.NewSource(3)), texture.Size{Width: 2, Height: 2})
		for i, v := range c.texels {
			binary.LittleEndian.PutUint32(mem[uint64(i/2)*im.Levels[0].Pitch+uint64(i%2*4):], single(v))
		}
		x := texture.Texture{Image: im, Sampler: texture.Sampler{Filtered: true}}
		q := texture.Query{At: [3]float32{float32(c.x/256 + 0.5), float32(c.y/256 + 0.5)}}
		if got := x.Fetch(mem, &q)[0]; got != single(c.want/256) {
			t.Errorf("Fetch of %v = %v, want %v", c, math.Float32frombits(got), c.want/256)
		}
	}
}

func TestNeitherNumberNorFinite(t *testing.T) {
	im, mem := image(t, rand.New(rand.NewSource(2)), texture.Size{Width: 4, Height: 3, Depth: 2})
	for mode := texture.Wrap; mode <= texture.Border; mode++ {
		for _, normalized := range []bool{false, true} {
			for _, c := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat32, -math.MaxFloat32} {
				x := texture.Texture{Image: im, Sampler: texture.Sampler{Filtered: true, MipLinear: true, Normalized: normalized, Address: [3]texture.Address{mode, mode, mode}}}
				f := float32(c)
				x.Fetch(mem, &texture.Query{At: [3]float32{f, f, f}, Offset: [3]int32{math.MaxInt32, math.MinInt32, 0}, Level: f, Detail: texture.ByLevel})
				x.Fetch(mem, &texture.Query{Whole: true, Texel: [3]int32{math.MaxInt32, math.MinInt32, -1}, Offset: [3]int32{math.MaxInt32, math.MinInt32, 0}})
			}
		}
	}
}

// TestFormats fetches texels of every format with significant values.
func TestFormats(t *testing.T) {
	for _, c := range []struct {
		f        texture.Format
		bytes    []byte
		integers uint32 // without conversion
		number   float64
	}{
		{texture.Format{Kind: texture.Unsigned, Bits: 8, Channels: 1}, []byte{255}, 255, 1},
		{texture.Format{Kind: texture.Unsigned, Bits: 8, Channels: 1}, []byte{51}, 51, 0.2},
		{texture.Format{Kind: texture.Signed, Bits: 8, Channels: 1}, []byte{0x80}, 0xffffff80, -1},
		{texture.Format{Kind: texture.Signed, Bits: 8, Channels: 1}, []byte{127}, 127, 1},
		{texture.Format{Kind: texture.Unsigned, Bits: 16, Channels: 1}, []byte{0xff, 0xff}, 65535, 1},
		{texture.Format{Kind: texture.Signed, Bits: 16, Channels: 1}, []byte{0, 0x80}, 0xffff8000, -1},
		{texture.Format{Kind: texture.Float, Bits: 16, Channels: 1}, []byte{0, 0x3c}, single(1), 1},
		{texture.Format{Kind: texture.Float, Bits: 16, Channels: 1}, []byte{1, 0x80}, single(-0x1p-24), -0x1p-24},
		{texture.Format{Kind: texture.Float, Bits: 16, Channels: 1}, []byte{0xff, 0x7b}, single(65504), 65504},
		{texture.Format{Kind: texture.Float, Bits: 32, Channels: 1}, []byte{0, 0, 0x20, 0xc0}, single(-2.5), -2.5},
	} {
		im, err := texture.NewLinear(c.f, 1)
		if err != nil {
			t.Fatal(err)
		}
		q := texture.Query{Whole: true}
		x := texture.Texture{Image: im, Sampler: texture.Sampler{Integers: true}}
		if got := x.Fetch(c.bytes, &q); got != [4]uint32{c.integers} {
			t.Errorf("%v of % x as integers = %#x, want %#x", c.f, c.bytes, got, c.integers)
		}
		x.Integers = false
		if got := x.Fetch(c.bytes, &q); got != [4]uint32{single(c.number)} {
			t.Errorf("%v of % x = %v, want %v", c.f, c.bytes, math.Float32frombits(got[0]), c.number)
		}
	}
	im, err := texture.NewLinear(texture.Format{Kind: texture.Unsigned, Bits: 8, Channels: 4}, 2)
	if err != nil {
		t.Fatal(err)
	}
	x := texture.Texture{Image: im, Sampler: texture.Sampler{SRGB: true}}
	mem := []byte{0, 0, 0, 0, 255, 10, 188, 51}
	got := x.Fetch(mem, &texture.Query{Whole: true, Texel: [3]int32{1}})
	want := [4]uint32{single(1), single(10 / 255. / 12.92), single(math.Pow((188/255.+0.055)/1.055, 2.4)), single(0.2)}
	if got != want {
		t.Errorf("sRGB = %x, want %x", got, want)
	}
	for _, outside := range []int32{-1, 2, math.MaxInt32, math.MinInt32} {
		if got := x.Fetch(mem, &texture.Query{Whole: true, Texel: [3]int32{outside}}); got != ([4]uint32{}) {
			t.Errorf("texel %d of a row = %x, want 0", outside, got)
		}
	}
}

// TestHalf checks that all halves are unchanged by a fetch and a store.
func TestHalf(t *testing.T) {
	f := texture.Format{Kind: texture.Float, Bits: 16, Channels: 1}
	im, err := texture.NewLinear(f, 1)
	if err != nil {
		t.Fatal(err)
	}
	x := texture.Texture{Image: im}
	for h := range 1 << 16 {
		if h&0x7c00 == 0x7c00 && h&0x3ff != 0 {
			continue // NaN
		}
		mem, back := []byte{byte(h), byte(h >> 8)}, make([]byte, 2)
		v := x.Fetch(mem, &texture.Query{Whole: true})
		if f.Encode(back, v); back[0] != mem[0] || back[1] != mem[1] {
			t.Fatalf("half % x after a fetch and Encode = % x, want it unchanged", mem, back)
		}
	}
}

func TestLayersAndLevels(t *testing.T) {
	r := rand.New(rand.NewSource(3))
	im, mem := image(t, r, texture.Size{Width: 8, Height: 4, Depth: 3, Layered: true, Levels: 4})
	if len(im.Levels) != 4 || im.Levels[3].Width != 1 || im.Levels[3].Height != 1 {
		t.Fatalf("levels = %+v, want 4 of which the last is 1 by 1", im.Levels)
	}
	all := numbers(mem)
	at := func(level, x, y, layer uint64) float64 {
		l := im.Levels[level]
		return all[(l.Offset+layer*l.Slice+y*l.Pitch)/4+x]
	}
	x := texture.Texture{Image: im, Sampler: texture.Sampler{Normalized: true, Address: [3]texture.Address{1, 1, 1}, MaxLevel: 10}}
	for _, c := range []struct {
		lod, bias, most float32
		linear          bool
		want            float64
	}{
		{lod: 0, most: 9, want: at(0, 6, 3, 2)},
		{lod: 1.49, most: 9, want: at(1, 3, 1, 2)},
		{lod: 1.5, most: 9, want: at(2, 1, 0, 2)},
		{lod: 99, most: 9, want: at(3, 0, 0, 2)},
		{lod: -5, most: 9, want: at(0, 6, 3, 2)},
		{lod: 3, most: 1, want: at(1, 3, 1, 2)},
		{lod: 0, bias: 2, most: 9, want: at(2, 1, 0, 2)},
		{lod: 0.25, most: 9, linear: true, want: .75*at(0, 6, 3, 2) + .25*at(1, 3, 1, 2)},
		{lod: 2.999, most: 9, linear: true, want: at(3, 0, 0, 2)},
	} {
		x.Bias, x.MaxLevel, x.MipLinear = c.bias, c.most, c.linear
		q := texture.Query{At: [3]float32{0.8, 0.9}, Layer: 7, Detail: texture.ByLevel, Level: c.lod}
		if got := x.Fetch(mem, &q)[0]; got != single(c.want) {
			t.Errorf("Fetch with level %v, bias %v, maximum %v = %v, want %v", c.lod, c.bias, c.most, math.Float32frombits(got), c.want)
		}
	}
	x.Bias, x.MaxLevel, x.MipLinear = 0, 9, false
	q := texture.Query{At: [3]float32{0.8, 0.9}, Layer: 1, Detail: texture.ByGradient, DX: [3]float32{0.5}, DY: [3]float32{0, 0.1}}
	if got := x.Fetch(mem, &q)[0]; got != single(at(2, 1, 0, 1)) { // a step of 4 texels
		t.Errorf("Fetch with a step of 4 texels = %v, want %v of level 2", math.Float32frombits(got), at(2, 1, 0, 1))
	}
}

// TestCube checks that the six axes, and directions near them, select their faces.
func TestCube(t *testing.T) {
	im, err := texture.NewImage(floats, texture.Size{Width: 2, Height: 2, Depth: 12, Cube: true, Layered: true})
	if err != nil {
		t.Fatal(err)
	}
	mem := make([]byte, im.Bytes)
	number(im, mem)
	x := texture.Texture{Image: im, Sampler: texture.Sampler{Normalized: true}}
	for _, c := range []struct {
		at    [3]float32
		layer uint32
		want  float64
	}{
		{[3]float32{2, 0.5, -0.5}, 0, 4*0 + 1}, {[3]float32{-2, 0.5, -0.5}, 0, 4*1 + 0},
		{[3]float32{0.5, 1, -0.5}, 0, 4*2 + 1}, {[3]float32{0.5, -1, -0.5}, 0, 4*3 + 3},
		{[3]float32{0.5, 0.2, 1}, 0, 4*4 + 1}, {[3]float32{0.5, 0.2, -1}, 0, 4*5 + 0},
		{[3]float32{0.5, 0.2, -1}, 1, 4*11 + 0}, {[3]float32{0.5, 0.2, -1}, 9, 4*11 + 0},
	} {
		q := texture.Query{At: c.at, Cube: true, Layer: c.layer}
		if got := x.Fetch(mem, &q)[0]; got != single(c.want) {
			t.Errorf("direction %v of cube %d = %v, want %v", c.at, c.layer, math.Float32frombits(got), c.want)
		}
	}
	x.Fetch(mem, &texture.Query{Cube: true}) // no direction at all
	if x.Image, err = im.View(floats, 0, 0, 1, 3); err != nil {
		t.Fatal(err)
	}
	x.Fetch(mem, &texture.Query{At: [3]float32{1, 0, 0}, Cube: true, Layer: 9}) // three faces are not a cube
}

func TestGather(t *testing.T) {
	im, err := texture.NewImage(floats, texture.Size{Width: 3, Height: 2})
	if err != nil {
		t.Fatal(err)
	}
	mem := make([]byte, im.Bytes)
	number(im, mem)
	x := texture.Texture{Image: im, Sampler: texture.Sampler{Address: [3]texture.Address{texture.Clamp, texture.Clamp}}}
	if got, want := x.Gather(mem, &texture.Query{At: [3]float32{1.7, 1}}, 0), [4]uint32{single(4), single(5), single(2), single(1)}; got != want {
		t.Errorf("Gather = %x, want %x", got, want)
	}
}

func TestLocate(t *testing.T) {
	im, err := texture.NewImage(texture.Format{Kind: texture.Unsigned, Bits: 8, Channels: 4}, texture.Size{Width: 3, Height: 2, Depth: 2, Layered: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		p          texture.Place
		unit, size uint64
		o          texture.Outside
		at         uint64
		ok, fails  bool
	}{
		{p: texture.Place{X: 8, Y: 1, Layer: 1}, unit: 1, size: 4, at: 32 + 16 + 8, ok: true},
		{p: texture.Place{X: 2, Y: 1}, unit: 4, size: 4, at: 16 + 8, ok: true},
		{p: texture.Place{X: 12}, unit: 1, size: 4, fails: true},
		{p: texture.Place{X: 12}, unit: 1, size: 4, o: texture.Nothing},
		{p: texture.Place{X: 12, Y: -1, Layer: 9}, unit: 1, size: 4, o: texture.Nearest, at: 32 + 8, ok: true},
		{p: texture.Place{X: 2}, unit: 1, size: 4, o: texture.Nearest, fails: true}, // misaligned
		{p: texture.Place{X: 8}, unit: 1, size: 8, o: texture.Nearest, at: 0, ok: true},
		{p: texture.Place{X: 0}, unit: 1, size: 16, o: texture.Nearest, fails: true}, // wider than a row
		{p: texture.Place{X: math.MinInt32, Y: math.MinInt32}, unit: 4, size: 4, o: texture.Nearest, ok: true},
	} {
		at, ok, err := im.Locate(c.p, c.unit, c.size, c.o)
		if at != c.at || ok != c.ok || (err != nil) != c.fails || err != nil && !errors.Is(err, texture.ErrOutside) {
			t.Errorf("Locate = %d, %v, error %v; want %+v", at, ok, err, c)
		}
	}
}

func TestEncode(t *testing.T) {
	for _, c := range []struct {
		f    texture.Format
		in   uint32
		want uint32
	}{
		{texture.Format{Kind: texture.Unsigned, Bits: 8, Channels: 1}, 300, 255},
		{texture.Format{Kind: texture.Signed, Bits: 8, Channels: 1}, 0xffffff00, 0x80},
		{texture.Format{Kind: texture.Signed, Bits: 16, Channels: 1}, 40000, 32767},
		{texture.Format{Kind: texture.Float, Bits: 16, Channels: 1}, single(1 + 0x1p-11), 0x3c00},
		{texture.Format{Kind: texture.Float, Bits: 16, Channels: 1}, single(2 - 0x1p-12), 0x4000},
		{texture.Format{Kind: texture.Float, Bits: 16, Channels: 1}, single(1e9), 0x7c00},
		{texture.Format{Kind: texture.Float, Bits: 32, Channels: 1}, single(0.1), single(0.1)},
	} {
		b := make([]byte, 4)
		c.f.Encode(b, [4]uint32{c.in})
		if got := binary.LittleEndian.Uint32(b); got != c.want {
			t.Errorf("%v of %#x = %#x, want %#x", c.f, c.in, got, c.want)
		}
	}
}

func TestSizes(t *testing.T) {
	for _, s := range []texture.Size{
		{}, {Height: 1}, {Width: 1, Depth: 1}, {Width: texture.MaxWidth1D + 1}, {Width: 1 << 63, Height: 1 << 63, Depth: 1 << 63},
		{Width: 4, Height: 4, Depth: 5, Cube: true}, {Width: 4, Height: 3, Depth: 6, Cube: true}, {Width: 4, Height: 4, Depth: 12, Cube: true},
		{Width: 4, Height: 4, Layered: true}, {Width: 4, Height: 4, Depth: texture.MaxLayers + 1, Layered: true},
		{Width: 4, Levels: 4}, {Width: 4, Levels: 1 << 31},
	} {
		if im, err := texture.NewImage(floats, s); err == nil {
			t.Errorf("NewImage(%+v) returned an image of %d bytes, want an error", s, im.Bytes)
		}
	}
	if _, err := texture.NewPitched(floats, 4, 4, 15); err == nil {
		t.Error("NewPitched with a pitch less than a row: no error, want one")
	}
	im, _ := image(t, rand.New(rand.NewSource(4)), texture.Size{Width: 4, Depth: 3, Layered: true, Levels: 3})
	if _, err := im.View(texture.Format{Kind: texture.Unsigned, Bits: 16, Channels: 1}, 0, 0, 0, 0); err == nil {
		t.Error("View with smaller texels: no error, want one")
	}
	v, err := im.View(texture.Format{Kind: texture.Unsigned, Bits: 8, Channels: 4}, 1, 2, 2, 2)
	if err != nil || v.Layers != 1 || len(v.Levels) != 2 || v.Levels[0].Offset != 3*16+2*16 {
		t.Errorf("View = %+v, error %v; want one layer and 2 levels at offset %d", v, err, 3*16+2*16)
	}
}

func BenchmarkFetch(b *testing.B) {
	im, mem := image(b, rand.New(rand.NewSource(5)), texture.Size{Width: 256, Height: 256})
	for name, filtered := range map[string]bool{"nearest": false, "linear": true} {
		b.Run(name, func(b *testing.B) {
			x := texture.Texture{Image: im, Sampler: texture.Sampler{Filtered: filtered, Normalized: true}}
			q := texture.Query{}
			for b.Loop() {
				q.At[0] += 1. / 256
				x.Fetch(mem, &q)
			}
		})
	}
}
