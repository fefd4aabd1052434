package report

import (
	"math/big"
	"strconv"

	"github.com/basalt-gpu/basalt/api"
)

// measure is how a meter's unit is said in FOCUS: so many of it are one of a noun, by
// the second if it is held for a time.
type measure struct {
	noun  string // none: bytes
	count int64
	timed bool
}

var measures = map[api.Meter]measure{
	api.MeterVCPU:       {"vCPU", 1, true},
	api.MeterMemory:     {"", 1, true},
	api.MeterVolume:     {"", 1, true},
	api.MeterSnapshot:   {"", 1, true},
	api.MeterAddress:    {"Address", 1, true},
	api.MeterEgress:     {"", 1, false},
	api.MeterGPU:        {"GPU", 1_000_000_000, true},
	api.MeterGPUPremium: {"GPU", 1_000_000_000, true},
	api.MeterGPUBasic:   {"GPU", 1_000_000_000, true},
	api.MeterGPUShare:   {"GPU", 100, true},
	api.MeterVRAM:       {"", 1, true},
	api.MeterCopy:       {"", 1, false},
	api.MeterLaunch:     {"Launches", 1, false},
}

// named is a number that has a name.
type named struct {
	name string
	of   int64
}

var (
	dataSizes = []named{{"GiB", 1 << 30}, {"TiB", 1 << 40}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"PiB", 1 << 50},
		{"GB", 1e9}, {"TB", 1e12}, {"MB", 1e6}, {"KB", 1e3}, {"PB", 1e15}, {"B", 1}}
	// A month has 30 days, as in the prices that a new cluster has.
	timeSpans = []named{{"Hours", 3600}, {"Months", 30 * 24 * 3600}, {"Days", 24 * 3600}, {"Years", 365 * 24 * 3600}, {"Minutes", 60}, {"Seconds", 1}}
)

// focusUnit is a unit in the format of FOCUS, and how many of a meter's units one of it is.
type focusUnit struct {
	name string
	of   *big.Rat
}

// consumedUnit is that in which use of a meter is told.
func consumedUnit(m api.Meter) focusUnit {
	x, known := measures[m]
	switch {
	case !known:
		return focusUnit{"Units", big.NewRat(1, 1)}
	case x.noun == "":
		x.noun = "B"
	}
	if x.timed {
		x.noun += "-Seconds"
	}
	return focusUnit{x.noun, big.NewRat(x.count, 1)}
}

// pricingUnit is that which per of a meter's units are, where that has a name;
// otherwise the unit in which its use is told.
func pricingUnit(m api.Meter, per int64) focusUnit {
	x, known := measures[m]
	if !known || per < 1 || per%x.count != 0 {
		return consumedUnit(m)
	}
	nouns, spans, n := []named{{x.noun, 1}}, []named{{"", 1}}, per/x.count
	if x.noun == "" {
		nouns = dataSizes
	}
	if x.timed {
		spans = timeSpans
	}
	for _, span := range spans {
		for _, noun := range nouns {
			if noun.of <= n/span.of && noun.of*span.of == n {
				return focusUnit{joined(noun.name, span.name), big.NewRat(per, 1)}
			}
		}
	}
	if !x.timed && x.noun != "" {
		return focusUnit{strconv.FormatInt(n, 10) + " " + x.noun, big.NewRat(per, 1)}
	}
	return consumedUnit(m)
}

func joined(noun, span string) string {
	if span == "" {
		return noun
	}
	return noun + "-" + span
}

// in is a quantity of a meter's units in the unit; 0 if there is none.
func (u focusUnit) in(q api.Quantity) *big.Rat {
	if u.of == nil {
		return new(big.Rat)
	}
	return new(big.Rat).Quo(new(big.Rat).SetInt(q.Int()), u.of)
}

// price of one unit, in the currency, where per of the meter's units cost so many micros.
func (u focusUnit) price(micros, per int64) *big.Rat {
	one := new(big.Rat).SetFrac(big.NewInt(micros), new(big.Int).Mul(big.NewInt(per), big.NewInt(1_000_000)))
	return one.Mul(one, u.of)
}
