package api

// CapacityTrend describes the forecast of a GPU model's capacity.
type CapacityTrend string

// Trends.
const (
	CapacityUnknown CapacityTrend = "unknown" // fewer than 7 days of records
	CapacitySteady  CapacityTrend = "steady"  // no significant growth, or not full within a year
	CapacityGrowing CapacityTrend = "growing"
	CapacityFull    CapacityTrend = "full"
)
