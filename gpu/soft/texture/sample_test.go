package texture_test

import (
	"fmt"
	"math"
	"math/rand"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/soft/texture"
)

// simpleTexture returns a random image of one level, with random bits in its texels and
// random sampling parameters.
func simpleTexture(t testing.TB, r *rand.Rand, f texture.Format, turn int) (*texture.Texture, []byte) {
	t.Helper()
	size := texture.Size{Width: uint64(1 + r.Intn(9)), Height: uint64(r.Intn(2) * (1 + r.Intn(7)))}
	if turn%5 == 0 {
		size.Layered, size.Depth = true, 3
	}
	im, err := texture.NewImage(f, size)
	if turn%7 == 0 {
		im, err = texture.NewLinear(f, size.Width)
	}
	if err != nil {
		t.Fatal(err)
	}
	mem := make([]byte, im.Bytes)
	_, _ = r.Read(mem)
	for i := 3; i < len(mem) && turn%4 == 0; i += 4 { // zeros with a sign
		copy(mem[i-3:], []byte{0, 0, 0, 0x80})
	}
	s := texture.Sampler{Filtered: r.Intn(2) == 0, Normalized: r.Intn(2) == 0, Integers: r.Intn(2) == 0, Border: [4]float32{1, 2, 3, 4}}
	for i := range s.Address {
		s.Address[i] = texture.Address(r.Intn(4))
	}
	return &texture.Texture{Image: im, Sampler: s}, mem
}

// TestSample compares Sample and Texel with Fetch, on all formats and addressing modes.
func TestSample(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	sampled, turn := 0, 0
	for _, kind := range []texture.Kind{texture.Unsigned, texture.Signed, texture.Float} {
		for _, bits := range []uint8{8, 16, 32} {
			for _, channels := range []uint8{1, 2, 4} {
				f := texture.Format{Kind: kind, Bits: bits, Channels: channels}
				if !f.Valid() {
					continue
				}
				for range 400 {
					turn++
					x, mem := simpleTexture(t, r, f, turn)
					if !x.Simple() {
						t.Fatalf("an image of %d dimensions and one level is not simple, want it to be", x.Dims)
					}
					q := texture.Query{Layer: uint32(r.Intn(4)), Whole: r.Intn(4) == 0}
					var got [4]uint32
					ok := false
					if q.Whole {
						q.Texel = [3]int32{int32(r.Intn(12) - 2), int32(r.Intn(9) - 1)}
						ok = x.Texel(mem, q.Texel[0], q.Texel[1], q.Layer, &got)
					} else {
						q.At = [3]float32{coordinate(r, int64(x.Levels[0].Width), x.Normalized), coordinate(r, int64(x.Levels[0].Height), x.Normalized)}
						if r.Intn(30) == 0 {
							q.At[r.Intn(2)] = []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 1e30}[r.Intn(4)]
						}
						ok = x.Sample(mem, q.At[0], q.At[1], q.Layer, &got)
					}
					if !ok {
						continue
					}
					sampled++
					if want := x.Fetch(mem, &q); got != want {
						t.Fatalf("%+v, %+v of %d × %d, %+v: channels = %x, want %x as Fetch", f, x.Sampler, x.Levels[0].Width, x.Levels[0].Height, q, got, want)
					}
				}
			}
		}
	}
	if sampled < turn/2 {
		t.Errorf("%d of %d fetches did not need Fetch, want at least half", sampled, turn)
	}
}

// TestSampleWithoutMemory checks that a texel of linear memory beyond its end is left to
// Fetch, whose caller reports it.
func TestSampleWithoutMemory(t *testing.T) {
	im, err := texture.NewLinear(floats, 8)
	if err != nil {
		t.Fatal(err)
	}
	x := texture.Texture{Image: im}
	mem := make([]byte, 4*5+3)
	var v [4]uint32
	if !x.Texel(mem, 4, 0, 0, &v) || x.Texel(mem, 5, 0, 0, &v) || x.Sample(mem, 5, 0, 0, &v) || x.Texel(mem, -1, 0, 0, &v) {
		t.Error("texels 4, 5, 5 and -1 of 5: want only the first read")
	}
}

// BenchmarkSample measures fetches of two dimensions beside those of the general function.
func BenchmarkSample(b *testing.B) {
	for _, f := range []texture.Format{floats, {Kind: texture.Unsigned, Bits: 8, Channels: 4}} {
		for _, filtered := range []bool{false, true} {
			im, err := texture.NewImage(f, texture.Size{Width: 256, Height: 256})
			if err != nil {
				b.Fatal(err)
			}
			mem := make([]byte, im.Bytes)
			x := &texture.Texture{Image: im, Sampler: texture.Sampler{Filtered: filtered, Address: [3]texture.Address{texture.Clamp, texture.Clamp, texture.Clamp}}}
			name := fmt.Sprintf("%+v filtered=%v", f, filtered)
			b.Run(name+"/sample", func(b *testing.B) {
				var v [4]uint32
				for i := 0; b.Loop(); i++ {
					x.Sample(mem, float32(i&255)+0.3, float32(i>>8&255)+0.4, 0, &v)
				}
			})
			b.Run(name+"/fetch", func(b *testing.B) {
				for i := 0; b.Loop(); i++ {
					x.Fetch(mem, &texture.Query{At: [3]float32{float32(i&255) + 0.3, float32(i>>8&255) + 0.4}})
				}
			})
		}
	}
}
