package ir

import "fmt"

// Tile is how many neighbouring lanes of a warp an engine runs as one. A tile
// begins at a multiple of it.
const Tile = 8

// Shape is how the values of a register differ between the lanes of a tile.
type Shape struct {
	Kind ShapeKind
	// Stride is the difference between neighbouring lanes of an Affine value, in
	// arithmetic of the register's width.
	Stride uint64
}

// ShapeKind orders shapes: what two definitions have in common is the greater.
type ShapeKind uint8

// The kinds.
const (
	Unset   ShapeKind = iota // nothing has defined it so far
	Uniform                  // the same in all lanes
	Affine                   // a base and a constant stride
	Varying
)

func (s Shape) String() string {
	if s.Kind == Affine {
		return fmt.Sprintf("affine%+d", int64(s.Stride))
	}
	return [...]string{"unset", "uniform", "affine", "varying"}[s.Kind]
}

var (
	uniform = Shape{Kind: Uniform}
	varying = Shape{Kind: Varying}
)

// affine is the shape of a value with this stride in a register of a class.
func affine(stride uint64, c Class) Shape {
	if c == Class32 {
		stride = uint64(int64(int32(stride)))
	}
	if stride == 0 {
		return uniform
	}
	return Shape{Affine, stride}
}

// join is the shape of a value that has one or the other.
func (s Shape) join(t Shape) Shape {
	switch {
	case s.Kind == Unset || s == t:
		return t
	case t.Kind == Unset:
		return s
	}
	return varying
}

// scalar reports whether a base and a stride say all.
func (s Shape) scalar() bool { return s.Kind == Uniform || s.Kind == Affine }
