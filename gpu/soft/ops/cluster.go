package ops

// Addresses in the shared memory of a cluster: those of the block's own begin at 0,
// those of the block with a rank at (rank + 1) << ClusterShift.

// ClusterShift is the width of an address in the shared memory of one block.
const ClusterShift = 18

const ownShared = 1<<ClusterShift - 1

// Mapa returns mapa for addresses of 32 bits in shared memory.
func Mapa() Operation {
	return Operation{Name: "mapa.b32", Loop: func(d, a, rank []uint32) {
		for i := range d {
			d[i] = a[i]&ownShared | (rank[i]+1)<<ClusterShift
		}
	}}
}

// MapaGeneric returns mapa for generic addresses; shared memory begins at base.
func MapaGeneric(base uint64) Operation {
	return Operation{Name: "mapa.b64", Constants: []uint64{base}, Loop: func(d, a []uint64, rank []uint32) {
		for i := range d {
			d[i] = base + ((a[i]-base)&ownShared | uint64(rank[i]+1)<<ClusterShift)
		}
	}}
}

// Part returns the operation that tells which block an address of shared memory belongs
// to: 0 for the block's own, else the rank plus one.
func Part() Operation {
	return Operation{Name: "part.b32", Loop: func(d, a []uint32) {
		for i := range d {
			d[i] = a[i] >> ClusterShift
		}
	}}
}

// PartGeneric returns Part for addresses of 64 bits; shared memory begins at base.
func PartGeneric(base uint64) Operation {
	return Operation{Name: "part.b64", Constants: []uint64{base}, Loop: func(d []uint32, a []uint64) {
		for i := range d {
			d[i] = uint32((a[i] - base) >> ClusterShift)
		}
	}}
}

// Rank returns the operation that computes a rank from a Part and the block's own rank.
func Rank() Operation {
	return Operation{Name: "rank.b32", Loop: func(d, part, own []uint32) {
		for i := range d {
			d[i] = part[i] - 1
			if part[i] == 0 {
				d[i] = own[i]
			}
		}
	}}
}
