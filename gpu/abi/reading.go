package abi

// Keys of a Reading. A value whose key is missing is not known.
const (
	ReadingClockGraphics     = 1  // MHz, current
	ReadingClockSM           = 2  // MHz, current
	ReadingClockMemory       = 3  // MHz, current
	ReadingClockVideo        = 4  // MHz, current
	ReadingPowerLimit        = 5  // mW, the limit in force
	ReadingFanSpeed          = 6  // percent of the maximum
	ReadingPerformanceState  = 7  // 0 is P0
	ReadingClockReasons      = 8  // nvmlClocksEventReason…: reasons for low clocks
	ReadingUncorrectedErrors = 9  // of memory, since the driver was loaded
	ReadingSlowdownCelsius   = 10 // temperature in °C at which clocks are lowered
	ReadingShutdownCelsius   = 11 // temperature in °C at which the card is turned off
	ReadingMaxClockGraphics  = 12 // MHz
	ReadingMaxClockSM        = 13 // MHz
	ReadingMaxClockMemory    = 14 // MHz
	ReadingMaxClockVideo     = 15 // MHz
	ReadingAccountedEnded    = 16 // maximum number of ended processes that stay accounted
	ReadingEnergy            = 17 // mJ, since the driver was loaded
	ReadingLinkGeneration    = 18 // of PCI Express, current
	ReadingLinkWidth         = 19 // lanes of PCI Express, current
	ReadingMaxLinkGeneration = 20 // of PCI Express, of the card and its slot
	ReadingMaxLinkWidth      = 21 // lanes of PCI Express, of the card and its slot
	ReadingEventTypes        = 22 // nvmlEventType…: the events that the host reports
	ReadingMemoryUtilization = 23 // percent of the last second in which the vGPU's work used the card's memory
)
