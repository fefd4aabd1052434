package api

// KindOffer is the kind in offers, which are computed and never stored.
const KindOffer Kind = "Offer"

// OfferQuery selects offers. Empty fields select all.
type OfferQuery struct {
	Organization OrganizationID // whose prices apply; empty: those of the price book named default
	Model, Pool  string
	Tier         GPUTier
	Flavor       FlavorID // of whole instances; empty: only the GPU slice is offered
	RootBytes    int64    // of those instances; 0: the flavor's
	// VRAMBytes and SharePercent select a single slice; VRAMBytes 0 selects the usual
	// ones.
	VRAMBytes, SharePercent int64
	Limit                   int
	Continue                string
}

// offerShares are the GPU shares of the usual slices, in percent.
var offerShares = [...]int64{100, 50, 25, 10}

// GPUTiers returns all tiers, in descending order of priority.
func GPUTiers() []GPUTier { return []GPUTier{TierPremium, TierStandard, TierBasic} }

// Slice is a part of a GPU: VRAM in bytes and GPU time in percent.
type Slice struct{ VRAMBytes, SharePercent int64 }

// SlicesOf returns the usual slices of a GPU with the given bytes of VRAM, the largest
// first. Their VRAM is proportional to their share, rounded down to 256 MiB unless that
// leaves nothing, so that the number of slices that the share implies fits on the GPU.
func SlicesOf(vram int64) (out []Slice) {
	const step = 256 << 20
	for _, share := range offerShares {
		part := vram * share / 100
		if part >= step {
			part -= part % step
		} else {
			part -= part % (1 << 20)
		}
		if part >= MinVRAMBytes {
			out = append(out, Slice{part, share})
		}
	}
	return out
}

// ValidateOfferQuery checks a query.
func ValidateOfferQuery(q OfferQuery) error {
	least := int64(MinVRAMBytes)
	if q.VRAMBytes == 0 {
		least = 0
	}
	var alone *Error
	if q.VRAMBytes == 0 && q.SharePercent != 0 {
		alone = invalid("sharePercent", "a share of what? give vramBytes too")
	}
	return joined(
		text("model", q.Model),
		text("pool", q.Pool),
		oneOf("tier", q.Tier, "", TierPremium, TierStandard, TierBasic),
		volumeBytes("rootBytes", q.RootBytes),
		between("vramBytes", q.VRAMBytes, least, MaxVRAMBytes, bytesUnit),
		between("sharePercent", q.SharePercent, 0, 100, "%"),
		alone)
}
