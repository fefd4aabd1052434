package sched

import (
	"errors"
	"math/rand"
	"testing"
)

const gib = 1 << 30

func TestAdmit(t *testing.T) {
	card := GPU{ID: "g", VRAM: 8 * gib, VRAMUsed: 6 * gib, ShareUsed: 70, VGPUs: 3}
	for name, c := range map[string]struct {
		change func(*GPU)
		r      Request
		want   Reason
	}{
		"fits exactly":         {nil, Request{2 * gib, 30}, ""},
		"best effort fits":     {func(g *GPU) { g.ShareUsed = 100 }, Request{gib, 0}, ""},
		"one byte too many":    {nil, Request{2*gib + 1, 30}, ReasonVRAM},
		"one per cent":         {nil, Request{2 * gib, 31}, ReasonShare},
		"no VRAM":              {nil, Request{0, 10}, ReasonInvalid},
		"negative share":       {nil, Request{gib, -1}, ReasonInvalid},
		"share over 100":       {nil, Request{gib, 101}, ReasonInvalid},
		"huge VRAM":            {nil, Request{1<<64 - 1, 1}, ReasonVRAM},
		"overfull card":        {func(g *GPU) { g.VRAM = 4 * gib; g.ShareUsed = 130 }, Request{1, 0}, ReasonVRAM},
		"larger than the card": {func(g *GPU) { g.VRAM = 16 * gib; g.Largest = 8 * gib }, Request{8*gib + 1, 1}, ReasonVRAM},
		"as large as the card": {func(g *GPU) { g.VRAM = 16 * gib; g.Largest = 8 * gib }, Request{8 * gib, 1}, ""},
		"count":                {func(g *GPU) { g.MaxVGPUs = 3 }, Request{gib, 1}, ReasonCount},
		"count not reached":    {func(g *GPU) { g.MaxVGPUs = 4 }, Request{gib, 1}, ""},
		"card takes no new":    {func(g *GPU) { g.Unschedulable = true }, Request{gib, 1}, ReasonUnschedulable},
	} {
		g := card
		if c.change != nil {
			c.change(&g)
		}
		got := Admit(g, c.r)
		if (got == nil) != (c.want == "") || got != nil && got.Reason != c.want {
			t.Errorf("%s: Admit = %v, want reason %q", name, got, c.want)
		}
	}
}

func TestFit(t *testing.T) {
	gpus := []GPU{
		{ID: "c-empty", VRAM: 8 * gib},
		{ID: "b-half", VRAM: 8 * gib, VRAMUsed: 4 * gib, ShareUsed: 50, VGPUs: 1},
		{ID: "a-full", VRAM: 8 * gib, VRAMUsed: 8 * gib, ShareUsed: 50, VGPUs: 1},
	}
	for name, c := range map[string]struct {
		r    Request
		want GPUID
	}{
		"packs":               {Request{2 * gib, 25}, "b-half"},
		"VRAM asks for whole": {Request{6 * gib, 25}, "c-empty"},
		"share asks for more": {Request{gib, 60}, "c-empty"},
	} {
		if got, err := Fit(gpus, c.r); err != nil || got.GPU != c.want {
			t.Errorf("%s: Fit = %v, %v, want card %s", name, got, err, c.want)
		}
	}
	var m *Misfit
	if _, err := Fit(nil, Request{gib, 1}); !errors.As(err, &m) || m.Reason != ReasonNoGPU {
		t.Errorf("Fit without cards: error = %v, want reason %s", err, ReasonNoGPU)
	}
	if _, err := Fit(gpus, Request{9 * gib, 1}); !errors.As(err, &m) || m.Reason != ReasonVRAM || m.Free != 8*gib || len(m.Others) != 3 {
		t.Errorf("Fit of 9 GiB: error = %v (%+v), want reason %s with 8 GiB free and 3 others", err, m, ReasonVRAM)
	}
	if _, err := Fit(gpus[1:], Request{gib, 80}); !errors.As(err, &m) || m.Reason != ReasonShare {
		t.Errorf("Fit of 80 %% share: error = %v, want reason %s", err, ReasonShare)
	}
	same := []GPU{{ID: "y", VRAM: gib}, {ID: "x", VRAM: gib}}
	if got, _ := Fit(same, Request{1, 1}); got.GPU != "x" {
		t.Errorf("Fit with two equal cards chose %s, want x", got.GPU)
	}
}

// TestFitNeverOverfills places and releases requests at random: no card ever
// exceeds its capacity.
func TestFitNeverOverfills(t *testing.T) {
	rnd := rand.New(rand.NewSource(1))
	gpus := []GPU{{ID: "a", VRAM: 16 * gib}, {ID: "b", VRAM: 24 * gib, MaxVGPUs: 3}, {ID: "c", VRAM: 80 * gib}}
	type placed struct {
		i int
		r Request
	}
	var all []placed
	for range 20000 {
		if len(all) > 0 && rnd.Intn(3) == 0 {
			k := rnd.Intn(len(all))
			gpus[all[k].i] = gpus[all[k].i].Release(all[k].r)
			all = append(all[:k], all[k+1:]...)
			continue
		}
		r := Request{VRAM: 1 + uint64(rnd.Int63n(20*gib)), SharePercent: rnd.Intn(60)}
		p, err := Fit(gpus, r)
		if err != nil {
			continue
		}
		for i := range gpus {
			if gpus[i].ID == p.GPU {
				gpus[i] = gpus[i].Take(r)
				all = append(all, placed{i, r})
			}
		}
		for _, g := range gpus {
			if g.VRAMUsed > g.VRAM || g.ShareUsed > 100 || g.MaxVGPUs > 0 && g.VGPUs > g.MaxVGPUs {
				t.Fatalf("card exceeds its capacity: %+v", g)
			}
		}
	}
}
