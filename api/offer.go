package api

// KindOffer is what offers say they are: nobody makes one, and none is stored.
const KindOffer Kind = "Offer"

// OfferQuery selects offers. Empty fields select all.
type OfferQuery struct {
	Organization OrganizationID // whose prices; empty: those of the price book named default
	Model, Pool  string
	Tier         GPUTier
	Flavor       FlavorID // of whole instances; empty: of the slice alone
	RootBytes    int64    // of those instances; 0: the flavor's
	// VRAMBytes and SharePercent of the only slice that is wanted; VRAMBytes is 0:
	// the usual ones.
	VRAMBytes, SharePercent int64
	Limit                   int
	Continue                string
}

// offerShares are the usual slices of a GPU, in hundredths.
var offerShares = [...]int64{100, 50, 25, 10}

// GPUTiers are all tiers, from the first to be served.
func GPUTiers() []GPUTier { return []GPUTier{TierPremium, TierStandard, TierBasic} }

// Slice of a GPU.
type Slice struct{ VRAMBytes, SharePercent int64 }

// SlicesOf returns the usual slices of a GPU with so many bytes of VRAM, from the
// largest. Their VRAM is in the proportion of their share, in whole 256 MiB where that
// leaves any, so that as many as the share says fit on the GPU.
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

// ValidateOfferQuery checks what is asked for.
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
		between("sharePercent", q.SharePercent, 0, 100, " per cent"),
		alone)
}
