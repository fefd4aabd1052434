package sched

import "fmt"

// Tier is what a vGPU's owner pays for beyond its guaranteed share: how soon it
// gets the card, and how much of the time that is not guaranteed to others.
type Tier string

// The tiers.
const (
	Premium  Tier = "premium"
	Standard Tier = "standard"
	Basic    Tier = "basic"
)

// Tiers lists the tiers from the best, the order in which waiting vGPUs have
// their turn.
var Tiers = []Tier{Premium, Standard, Basic}

// ParseTier parses the name of a tier; an empty string is Standard.
func ParseTier(s string) (Tier, error) {
	switch t := Tier(s); t {
	case "":
		return Standard, nil
	case Premium, Standard, Basic:
		return t, nil
	}
	return "", fmt.Errorf("unknown tier %q, want premium, standard or basic", s)
}

// weight returns a best-effort vGPU's part of the time that is not guaranteed.
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
