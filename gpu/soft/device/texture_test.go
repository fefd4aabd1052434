package device

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/texture"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// words reads numbers from the fuzzer's input; after its end they are 0.
type words []byte

func (w *words) next() uint32 {
	var b [4]byte
	*w = (*w)[copy(b[:], *w):]
	return binary.LittleEndian.Uint32(b[:])
}

func (w *words) float() float32 { return math.Float32frombits(w.next()) }

// args reads the arguments of a command.
func (w *words) args(n int) []byte {
	b := make([]byte, n)
	*w = (*w)[copy(b, *w):]
	return b
}

func argBytes(op abi.Op) int { n, _ := op.ArgSize(); return n }

// use executes a fetch and locates a surface element, with arguments from the input, on
// any image.
func use(t *testing.T, w *words, x *texture.Texture, mem []byte) {
	q := texture.Query{Whole: w.next()&1 != 0, Cube: w.next()&1 != 0, Layer: w.next(), Detail: texture.Detail(w.next() % 3), Level: w.float()}
	for i := range 3 {
		q.At[i], q.Texel[i], q.Offset[i], q.DX[i], q.DY[i] = w.float(), int32(w.next()), int32(w.next()), w.float(), w.float()
	}
	x.Fetch(mem, &q)
	x.Gather(mem, &q, int(w.next()%4))
	for p := texture.Width; p <= texture.NormalizedCoordinates; p++ {
		p.Of(x, w.next())
	}
	size := uint64(1) << (w.next() % 5)
	off, ok, err := x.Locate(texture.Place{X: int32(w.next()), Y: int32(w.next()), Z: int32(w.next()), Layer: w.next()}, 1+uint64(w.next()%16), size, texture.Outside(w.next()%3))
	if err == nil && ok && (off > x.Bytes || size > x.Bytes-off) {
		t.Errorf("Locate returned %d bytes at offset %d, want them in the image's %d bytes", size, off, x.Bytes)
	}
}

// FuzzTextures checks that any description of an array and of an object on it, or on
// memory, is either refused or creates an object that any fetch can use.
func FuzzTextures(f *testing.F) {
	for _, a := range []abi.ArrayCreate{
		{Width: 4, Height: 4, Format: 0x20, Channels: 1, Levels: 3}, {Width: 4, Height: 4, Depth: 12, Format: 1, Channels: 4, Flags: 5, Levels: 1},
		{Width: 3, Height: 2, Depth: 5, Format: 0x10, Channels: 2, Levels: 2, Flags: abi.ArraySurface}, {Width: 9, Depth: 2, Flags: 1, Format: 9, Channels: 1, Levels: 1},
	} {
		for _, o := range []abi.TextureCreate{
			{Filter: 1, Flags: 2}, {Resource: 1, Filter: 1, MipFilter: 1, Flags: 2, MaxLevel: 9, View: 22}, {Surface: 1},
			{Resource: 2, Width: 8, Format: 1, Channels: 4}, {Resource: 3, Width: 4, Height: 4, Pitch: 32, Format: 0x20, Channels: 1},
		} {
			f.Add(append(o.Append(a.Append(nil)), 1, 0, 0, 0, 0, 0, 0x80, 0x7f, 0, 0, 0xc0, 0x7f))
		}
	}
	driver, err := New(Options{VRAM: 64 << 20, SMs: 1})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := driver.Close(); err != nil {
			f.Error(err)
		}
	})
	ctx, err := driver.NewContext(0, nil, worker.NewWindow(abi.Windows()[0]))
	if err != nil {
		f.Fatal(err)
	}
	c := ctx.(*Context)
	plain, err := c.MemAlloc(4096)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, made []byte) {
		w := words(made)
		a := abi.DecodeArrayCreate(w.args(argBytes(abi.OpArrayCreate)))
		o := abi.DecodeTextureCreate(w.args(argBytes(abi.OpTextureCreate)))
		if a.Check() != nil || a.Bytes() > 16<<20 || o.Check() != nil {
			return
		}
		arr, err := c.ArrayCreate(a)
		if err != nil {
			return
		}
		defer func() {
			if err := c.ArrayDestroy(arr); err != nil {
				t.Error(err)
			}
		}()
		if n := arr.(*array).image.Bytes; n > a.Bytes() {
			t.Errorf("array uses %d bytes, but ArrayCreate.Bytes = %d, want at least as many", n, a.Bytes())
		}
		if o.Level >= a.Levels {
			return // the worker checks
		}
		if !o.OnArray() {
			o.Base = plain
		}
		object, err := c.TextureCreate(o, arr)
		if err != nil {
			return
		}
		x := c.texture(object)
		mem, err := c.memory(x.Base, x.Bytes)
		if err != nil && x.Linear && x.Bytes > 4096 {
			return // larger than its memory: TestLinearTextureLargerThanItsMemory
		}
		if err != nil {
			t.Fatalf("memory of an object: %v, want the bytes of its image", err)
		}
		use(t, &w, &x.Texture, mem[:x.Bytes])
		if err := c.TextureDestroy(object, x.Surface); err != nil {
			t.Error(err)
		}
	})
}
