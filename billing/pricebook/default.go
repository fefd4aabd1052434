package pricebook

import "github.com/basalt-gpu/basalt/api"

// Units of prices.
const (
	hour      = 3600                 // seconds
	gib       = 1 << 30              // bytes
	gibHour   = gib * hour           // byte-seconds
	gibMonth  = gibHour * 24 * 30    // byte-seconds; a month of 30 days
	gpuHour   = hour * 1_000_000_000 // nanoseconds
	cent      = 10_000               // micros
	shareHour = hour * 100           // hundredths of a GPU times seconds
	tib       = 1 << 40              // bytes
	million   = 1_000_000            // launches
	currency  = "EUR"                // ISO 4217

	includedEgress = 100 // GiB in a period
)

// Default is the price book of a new cluster until its operator changes it. Every meter
// has a price, so that nothing is free by accident: copies and launches are, since the
// GPU time that they take is charged.
func Default() api.PriceBookSpec {
	return api.PriceBookSpec{Currency: currency, Prices: []api.Price{
		{Meter: api.MeterVCPU, PriceMicros: 1 * cent, Per: hour, Unit: "vCPU hour"},
		{Meter: api.MeterMemory, PriceMicros: cent / 2, Per: gibHour, Unit: "GiB hour of memory"},
		{Meter: api.MeterVolume, PriceMicros: 5 * cent, Per: gibMonth, Unit: "GiB month of storage"},
		{Meter: api.MeterSnapshot, PriceMicros: 5 * cent, Per: gibMonth, Unit: "GiB month of snapshots"},
		{Meter: api.MeterAddress, PriceMicros: cent / 2, Per: hour, Unit: "hour of a floating IP"},
		{Meter: api.MeterEgress, PriceMicros: cent / 2, Per: gib, Unit: "GiB sent out", Tiers: []api.PriceTier{{UpTo: includedEgress}}},
		{Meter: api.MeterGPU, PriceMicros: 180 * cent, Per: gpuHour, Unit: "GPU hour"},
		{Meter: api.MeterGPUPremium, PriceMicros: 270 * cent, Per: gpuHour, Unit: "GPU hour, premium"},
		{Meter: api.MeterGPUBasic, PriceMicros: 90 * cent, Per: gpuHour, Unit: "GPU hour, basic"},
		{Meter: api.MeterGPUShare, PriceMicros: 180 * cent, Per: shareHour, Unit: "reserved GPU hour"},
		{Meter: api.MeterGPUShare, Where: api.PriceSelector{Tier: string(api.TierPremium)}, PriceMicros: 270 * cent, Per: shareHour, Unit: "reserved GPU hour, premium"},
		{Meter: api.MeterGPUShare, Where: api.PriceSelector{Tier: string(api.TierBasic)}, PriceMicros: 90 * cent, Per: shareHour, Unit: "reserved GPU hour, basic"},
		{Meter: api.MeterVRAM, PriceMicros: 1 * cent, Per: gibHour, Unit: "GiB hour of VRAM"},
		{Meter: api.MeterCopy, PriceMicros: 0, Per: tib, Unit: "TiB copied"},
		{Meter: api.MeterLaunch, PriceMicros: 0, Per: million, Unit: "million launches"},
	}}
}
