package sched

import (
	"cmp"
	"slices"
)

// Placement is a card that a request fits, with a score.
type Placement struct {
	GPU GPUID
	// Score orders placements, higher is better. It ranges from 0 to 2000: the
	// thousandths of the card's VRAM plus the thousandths of its share that are
	// allocated once the request is on it. Packing keeps whole cards free for
	// large requests.
	Score int
}

// Fit returns the best card for the request. The error is a *Misfit: the reason
// of the card that came closest, with the reason of every card in Others.
func Fit(gpus []GPU, r Request) (Placement, error) {
	ranked, misfits := Rank(gpus, r)
	if len(ranked) > 0 {
		return ranked[0], nil
	}
	if len(misfits) == 0 {
		return Placement{}, &Misfit{Reason: ReasonNoGPU}
	}
	// The closest card is the one with the mildest reason; among VRAM misfits,
	// the one with the most free VRAM.
	closest := slices.MinFunc(misfits, func(a, b *Misfit) int {
		return cmp.Or(cmp.Compare(severity[a.Reason], severity[b.Reason]), cmp.Compare(b.Free, a.Free), cmp.Compare(a.GPU, b.GPU))
	})
	sum := *closest
	if len(misfits) > 1 {
		sum.GPU, sum.Others = "", misfits
	}
	return Placement{}, &sum
}

var severity = map[Reason]int{ReasonShare: 1, ReasonCount: 2, ReasonVRAM: 3, ReasonUnschedulable: 4, ReasonInvalid: 5}

// Rank returns the cards that the request fits, best first (ties ordered by ID),
// and the reasons of the others, ordered by ID.
func Rank(gpus []GPU, r Request) (fits []Placement, misfits []*Misfit) {
	for _, g := range gpus {
		if m := Admit(g, r); m != nil {
			misfits = append(misfits, m)
			continue
		}
		fits = append(fits, Placement{GPU: g.ID, Score: score(g.Take(r))})
	}
	slices.SortFunc(fits, func(a, b Placement) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.GPU, b.GPU))
	})
	slices.SortFunc(misfits, func(a, b *Misfit) int { return cmp.Compare(a.GPU, b.GPU) })
	return fits, misfits
}

func score(g GPU) int {
	return int(float64(g.VRAMUsed)/float64(g.VRAM)*1000) + g.ShareUsed*1000/FullShare
}
