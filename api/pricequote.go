package api

import "time"

// quotedHours is the number of hours of the month that a price quote rates.
const quotedHours = 720

// PriceQuoteQuery is a valid request for a price quote, with what it refers to.
type PriceQuoteQuery struct {
	Request PriceQuoteRequest
	Book    PriceBook
	Flavor  Flavor    // zero: none
	Begin   time.Time // of the month, a full hour
}

// ValidatePriceQuote checks a request for a quote by a price book.
func ValidatePriceQuote(book PriceBookSpec, q PriceQuoteRequest) error {
	var changed error
	if q.Prices != nil {
		changed = Join(ChangePriceBook(book, *q.Prices), ValidatePriceBook(*q.Prices))
	}
	return Join(joined(
		text("flavor", q.Flavor), text("storageClass", q.StorageClass), text("model", q.Model), text("pool", q.Pool),
		oneOf("tier", q.Tier, append(GPUTiers(), "")...),
		volumeBytes("rootBytes", q.RootBytes),
		between("vramBytes", q.VramBytes, 0, MaxVRAMBytes, bytesUnit),
		between("sharePercent", q.SharePercent, 0, 100, "%"),
		between("hours", q.Hours, 0, quotedHours, " hours"),
		between("gpuPercent", q.GpuPercent, 0, 100, "%")), changed)
}
