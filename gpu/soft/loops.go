package soft

//go:generate go run ./gen

// predicate holds one bit per lane, 32 lanes a word.
type predicate []uint32
