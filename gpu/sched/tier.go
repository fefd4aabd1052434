package sched

import "fmt"

// Tier is what a vGPU's owner pays for beyond its guaranteed share: how soon it
// gets the card, and how much of what nobody was promised.
type Tier string

// The tiers.
const (
	Premium  Tier = "premium"
	Standard Tier = "standard"
	Basic    Tier = "basic"
)

// Tiers from the best. In this order those that wait get their turn.
var Tiers = []Tier{Premium, Standard, Basic}

// ParseTier reads a tier; empty is Standard.
func ParseTier(s string) (Tier, error) {
	switch t := Tier(s); t {
	case "":
		return Standard, nil
	case Premium, Standard, Basic:
		return t, nil
	}
	return "", fmt.Errorf("unknown tier %q, want premium, standard or basic", s)
}

// weight is a best-effort vGPU's part of what is not guaranteed.
func (t Tier) weight() int64 {
	switch t {
	case Premium:
		return 4
	case Basic:
		return 1
	}
	return 2
}

// Claim is what a vGPU may have of a card's time.
type Claim struct {
	SharePercent int // guaranteed; 0: best effort
	Tier         Tier
}
