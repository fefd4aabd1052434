package abi

// What a Reading is of. A key that is not there is not known.
const (
	ReadingClockGraphics     = 1  // MHz, now
	ReadingClockSM           = 2  // MHz, now
	ReadingClockMemory       = 3  // MHz, now
	ReadingClockVideo        = 4  // MHz, now
	ReadingPowerLimit        = 5  // mW, the one in force
	ReadingFanSpeed          = 6  // per cent of the highest
	ReadingPerformanceState  = 7  // 0 is P0
	ReadingClockReasons      = 8  // nvmlClocksEventReason…: why clocks are low
	ReadingUncorrectedErrors = 9  // of memory, since the driver was loaded
	ReadingSlowdownCelsius   = 10 // temperature at which clocks are lowered
	ReadingShutdownCelsius   = 11 // temperature at which the card is turned off
	ReadingMaxClockGraphics  = 12 // MHz
	ReadingMaxClockSM        = 13 // MHz
	ReadingMaxClockMemory    = 14 // MHz
	ReadingMaxClockVideo     = 15 // MHz
	ReadingAccountedEnded    = 16 // how many processes that have ended stay accounted, at most
	ReadingEnergy            = 17 // mJ, since the driver was loaded
)
