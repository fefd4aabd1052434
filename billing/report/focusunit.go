package report

import (
	"math/big"
	"strconv"

	"github.com/basalt-gpu/basalt/api"
)

// measure is the FOCUS unit of a meter: count of the meter's units are one of the noun,
// per second for meters over time.
type measure struct {
	noun  string // empty: bytes
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

// named is a number with a name.
type named struct {
	name string
	of   int64
}

var (
	dataSizes = []named{{"GiB", 1 << 30}, {"TiB", 1 << 40}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"PiB", 1 << 50},
		{"GB", 1e9}, {"TB", 1e12}, {"MB", 1e6}, {"KB", 1e3}, {"PB", 1e15}, {"B", 1}}
	// A month has 30 days, as in the default prices.
	timeSpans = []named{{"Hours", 3600}, {"Months", 30 * 24 * 3600}, {"Days", 24 * 3600}, {"Years", 365 * 24 * 3600}, {"Minutes", 60}, {"Seconds", 1}}
)

// focusUnit is a unit in the format of FOCUS, and how many of a meter's units it
// contains.
type focusUnit struct {
	name string
	of   *big.Rat
}

// consumedUnit returns the unit in which usage of a meter is reported.
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

// pricingUnit returns the unit of per units of a meter, if it has a name; otherwise the
// unit in which its usage is reported.
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

// in converts a quantity of a meter's units to the unit; 0 if there is none.
func (u focusUnit) in(q api.Quantity) *big.Rat {
	if u.of == nil {
		return new(big.Rat)
	}
	return new(big.Rat).Quo(new(big.Rat).SetInt(q.Int()), u.of)
}

// price returns the price of one unit, in the currency, if per of the meter's units
// cost the given micros.
func (u focusUnit) price(micros, per int64) *big.Rat {
	one := new(big.Rat).SetFrac(big.NewInt(micros), new(big.Int).Mul(big.NewInt(per), big.NewInt(1_000_000)))
	return one.Mul(one, u.of)
}
