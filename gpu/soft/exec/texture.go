package exec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/texture"
)

// Texture is the texture or surface that an object number refers to.
type Texture struct {
	texture.Texture
	Base    uint64 // device address of the image
	Surface bool
}

// bound is the object that a machine used last, with the bytes of its image. They are
// fewer if it is linear and larger than its memory.
type bound struct {
	object uint64
	t      *Texture
	mem    []byte
	simple bool // texture.Simple
}

// texture returns an object and its memory. It returns an error if the context has no
// such object, or if the program has freed the memory.
func (m *machine) texture(object uint64, surface bool) (*bound, error) {
	if b := &m.bound; b.t != nil && b.object == object && b.t.Surface == surface {
		return b, nil
	}
	t := m.env.texture(object)
	if t == nil && object&ir.BoundObject != 0 {
		return nil, fmt.Errorf("%w: nothing is bound to texture or surface reference %d of the module: bind it before the launch", abi.ErrIllegalAddress, object&^ir.BoundObject)
	}
	if t == nil || t.Surface != surface {
		return nil, fmt.Errorf("%w: object %#x, want a %s object of this context", abi.ErrIllegalAddress, object, map[bool]string{true: "surface", false: "texture"}[surface])
	}
	r, ok := FindRegion(m.env.table, t.Base)
	if !ok || !t.Linear && uint64(len(r.Data))-(t.Base-r.Base) < t.Bytes {
		return nil, fmt.Errorf("%w: the memory of texture or surface %#x, %d bytes at %#x, has been freed", abi.ErrIllegalAddress, object, t.Bytes, t.Base)
	}
	mem := r.Data[t.Base-r.Base:]
	m.bound = bound{object, t, mem[:min(uint64(len(mem)), t.Bytes)], t.Simple()}
	return &m.bound, nil
}

// reach returns an error if a fetch reads beyond the memory of a linear texture.
func (b *bound) reach(k *ir.Fetch, q *texture.Query) error {
	n := uint64(len(b.mem))
	if n == b.t.Bytes || !k.Gather && !b.t.Beyond(n, q) {
		return nil
	}
	return fmt.Errorf("%w: fetch of texel %d of texture %#x, whose memory at %#x has %d bytes, fewer than its %d texels of %d bytes",
		abi.ErrIllegalAddress, q.Texel[0], b.object, b.t.Base, n, b.t.Levels[0].Width, b.t.Format.Bytes())
}

// texture returns an object, or nil if there is none or nothing is bound to the
// reference.
func (l *Launch) texture(object uint64) *Texture {
	if i := object &^ ir.BoundObject; i != object {
		if i < uint64(len(l.References)) {
			return l.References[i]
		}
		return nil
	}
	if l.Textures == nil {
		return nil
	}
	return l.Textures(object)
}

// word returns a lane's value of an operand, or 0 if the operand is absent.
func (m *machine) word(r ir.Ref, lane int) uint32 {
	if r.Class == ir.ClassNone {
		return 0
	}
	return uint32(m.get(r, lane))
}

func (m *machine) words3(r [3]ir.Ref, lane int) (v [3]uint32) {
	for i := range r {
		v[i] = m.word(r[i], lane)
	}
	return v
}

func fetch(k *ir.Fetch) step {
	plain := !k.Gather && k.Sampler == ir.None && !k.Cube && k.Offset == [3]ir.Ref{ir.None, ir.None, ir.None} &&
		k.Packing == ir.Words && k.Resident == ir.None && k.Layer == ir.None && k.At[2] == ir.None
	return masked(func(m *machine, act []uint32) error {
		for w, lanes := range act {
			if plain && lanes != 0 {
				lanes = sample(k, m, w, lanes)
			}
			for ; lanes != 0; lanes &= lanes - 1 {
				if err := fetchLane(k, m, w*ir.WarpSize+bits.TrailingZeros32(lanes)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// sample fetches for some lanes of a warp, in order, as long as they have the simple
// texture of the first one and need no more than its texels, and returns the remaining
// lanes.
func sample(k *ir.Fetch, m *machine, w int, lanes uint32) uint32 {
	objects := m.v64(k.Object.Slot, w, w+1)[:ir.WarpSize]
	b, err := m.texture(objects[bits.TrailingZeros32(lanes)], false)
	if err != nil || !b.simple {
		return lanes
	}
	x := m.v32(k.At[0].Slot, w, w+1)[:ir.WarpSize]
	y := x
	if k.At[1] != ir.None {
		y = m.v32(k.At[1].Slot, w, w+1)[:ir.WarpSize]
	}
	var d [4][]uint32
	for i, r := range k.D {
		if r != ir.None {
			d[i] = m.v32(r.Slot, w, w+1)[:ir.WarpSize]
		}
	}
	var v [4]uint32
	for ; lanes != 0; lanes &= lanes - 1 {
		l := bits.TrailingZeros32(lanes)
		if objects[l] != b.object {
			break
		}
		if k.Whole {
			if !b.t.Texel(b.mem, int32(x[l]), int32(y[l]), 0, &v) {
				break
			}
		} else if !b.t.Sample(b.mem, math.Float32frombits(x[l]), math.Float32frombits(y[l]), 0, &v) {
			break
		}
		for i, out := range &d {
			if out != nil {
				out[l] = v[i]
			}
		}
	}
	return lanes
}

// fetchLane fetches for one lane.
func fetchLane(k *ir.Fetch, m *machine, l int) error {
	b, err := m.texture(m.get(k.Object, l), false)
	if err != nil {
		return err
	}
	t := b.t.Texture
	if k.Sampler != ir.None {
		s := m.env.texture(m.get(k.Sampler, l))
		if s == nil {
			return fmt.Errorf("%w: object %#x, want a sampler object of this context", abi.ErrIllegalAddress, m.get(k.Sampler, l))
		}
		t.Sampler = s.Sampler
	}
	q := query(k, m, l)
	if err := b.reach(k, &q); err != nil {
		return err
	}
	if k.Gather {
		writeTexel(k, m, l, t.Gather(b.mem, &q, k.Channel))
	} else {
		writeTexel(k, m, l, t.Fetch(b.mem, &q))
	}
	return nil
}

func query(k *ir.Fetch, m *machine, l int) texture.Query {
	q := texture.Query{Whole: k.Whole, Cube: k.Cube, Layer: m.word(k.Layer, l), Detail: k.Detail, Level: math.Float32frombits(m.word(k.Level, l))}
	at, offset, dx, dy := m.words3(k.At, l), m.words3(k.Offset, l), m.words3(k.DX, l), m.words3(k.DY, l)
	for i := range 3 {
		q.At[i], q.Texel[i], q.Offset[i], q.DX[i], q.DY[i] = math.Float32frombits(at[i]), int32(at[i]), int32(offset[i]), math.Float32frombits(dx[i]), math.Float32frombits(dy[i])
	}
	return q
}

func writeTexel(k *ir.Fetch, m *machine, l int, v [4]uint32) {
	if k.Packing != ir.Words {
		for i := range v {
			v[i] = uint32(texture.Half(v[i]))
		}
	}
	if k.Packing == ir.HalfPairs {
		v[0], v[1] = v[0]|v[1]<<16, v[2]|v[3]<<16
	}
	for i, d := range k.D {
		m.set(d, l, uint64(v[i]))
	}
	m.set(k.Resident, l, 1)
}

func property(o *ir.TextureProperty) step {
	return masked(func(m *machine, act []uint32) error {
		return eachLaneErr(act, func(l int) error {
			b, err := m.texture(m.get(o.Object, l), o.Surface)
			if err != nil {
				return err
			}
			m.set(o.D, l, uint64(o.Property.Of(&b.t.Texture, m.word(o.Level, l))))
			return nil
		})
	})
}

func isTexture(o *ir.IsTexture) step {
	return masked(func(m *machine, act []uint32) error {
		eachLane(act, func(l int) {
			t := m.env.texture(m.get(o.Object, l))
			m.set(o.D, l, uint64(bitOf(t != nil && t.Surface == o.Surface)))
		})
		return nil
	})
}

// find returns the bytes of n elements, or of a texel. They are nil for coordinates
// outside of the surface that are ignored.
func find(k *ir.Surface, m *machine, l, n int) ([]byte, *Texture, error) {
	b, err := m.texture(m.get(k.Object, l), true)
	if err != nil {
		return nil, nil, err
	}
	at := m.words3(k.At, l)
	unit, size := uint64(1), k.Size*uint64(n)
	if k.Texels {
		unit = b.t.Format.Bytes()
		size = unit
	}
	off, found, err := b.t.Locate(texture.Place{X: int32(at[0]), Y: int32(at[1]), Z: int32(at[2]), Layer: m.word(k.Layer, l)}, unit, size, k.Outside)
	if err != nil {
		return nil, nil, errors.Join(abi.ErrIllegalAddress, err)
	}
	if !found {
		return nil, b.t, nil
	}
	return b.mem[off:][:size], b.t, nil
}

func surfaceLoad(k *ir.SurfaceLoad) step {
	return masked(func(m *machine, act []uint32) error {
		return eachLaneErr(act, func(l int) error {
			b, _, err := find(&k.Surface, m, l, len(k.D))
			if err != nil {
				return err
			}
			for i, d := range k.D {
				v := uint64(0)
				if b != nil {
					v = readAs(b[uint64(i)*k.Size:], &access{Access: ir.Access{Size: k.Size}})
				}
				m.set(d, l, v)
			}
			return nil
		})
	})
}

func surfaceStore(k *ir.SurfaceStore) step {
	return masked(func(m *machine, act []uint32) error {
		m.did |= didChange
		return eachLaneErr(act, func(l int) error {
			b, t, err := find(&k.Surface, m, l, len(k.S))
			if err != nil || b == nil {
				return err
			}
			if k.Texels {
				var v [4]uint32
				for i, s := range k.S {
					v[i] = m.word(s, l)
				}
				t.Format.Encode(b, v)
				return nil
			}
			for i, s := range k.S {
				var v [8]byte
				binary.LittleEndian.PutUint64(v[:], m.get(s, l))
				copy(b[uint64(i)*k.Size:][:k.Size], v[:])
			}
			return nil
		})
	})
}

func surfaceReduce(k *ir.SurfaceReduce) step {
	return masked(func(m *machine, act []uint32) error {
		m.did |= didChange
		return eachLaneErr(act, func(l int) error {
			b, t, err := find(&k.Surface, m, l, 1)
			if err != nil || b == nil {
				return err
			}
			if uint64(len(b)) != k.Size {
				return fmt.Errorf("%w: reduction of %d bytes in a surface, want the %d bytes of its texels", abi.ErrIllegalAddress, k.Size, len(b))
			}
			f, x := k.F, m.get(k.S, l)
			if k.Texels && t.Format.Kind == texture.Signed {
				f = k.Signed
			}
			if k.Size == 8 {
				atomic64(b, func(o uint64) uint64 { return f(o, x, 0) })
			} else {
				atomic32(b, func(o uint32) uint32 { return uint32(f(uint64(o), x, 0)) })
			}
			return nil
		})
	})
}
