package api

import (
	"cmp"
	"strings"
)

// Amounts maps the name of a quota to an amount. A missing name means 0 in a use; in a
// limit it means unlimited, or DefaultQuota.
type Amounts map[string]int64

// Limits of Command.Uses and Command.Limits.
const (
	MaxAmounts     = 64
	MaxAmountBytes = 64      // of a name
	MaxAmount      = 1 << 60 // so that the sum of several does not overflow
)

// CheckAmounts returns an error if a command's uses or limits are invalid.
func CheckAmounts(c Command) error {
	if (c.Uses != nil || c.Limits != nil) && c.Op != OpPutSpec {
		return invalid("uses", "only a command that writes a spec may have uses and limits")
	}
	for field, amounts := range map[string]Amounts{"uses": c.Uses, "limits": c.Limits} {
		if len(amounts) > MaxAmounts {
			return Errorf(CodeTooLarge, "%s %s has %d %s, want at most %d", c.Kind, c.ID, len(amounts), field, MaxAmounts)
		}
		for name, n := range amounts {
			if name == "" || len(name) > MaxAmountBytes || hasControl(name) {
				return invalid(field, "%q is not a valid quota name", clip(name)).WithHint("must have 1 to %d bytes", MaxAmountBytes)
			}
			if n < 0 || n > MaxAmount {
				return invalid(field, "%s: %d is not between 0 and %d", name, n, int64(MaxAmount))
			}
		}
	}
	return nil
}

// QuotaExceeded returns the error for an object that would use more of a quota of the
// holder (its project or organization) than is left.
func QuotaExceeded(holder Object, quota string, limit, used, more int64) *Error {
	whose := strings.ToLower(string(holder.Kind)) + " " + cmp.Or(holder.Meta.Name, holder.Meta.ID)
	if quota == QuotaSpend {
		return Errorf(CodeQuota, "nothing new can be created or started in %s", whose).
			WithHint("its balance or budget is used up, an invoice is overdue, or it was suspended: `basalt wallet` and `basalt budget list` say which")
	}
	return Errorf(CodeQuota, "%s quota of %s exceeded: %s of %s used, %s requested",
		QuotaNoun(quota), whose, QuotaText(quota, used), QuotaText(quota, limit), QuotaText(quota, more)).
		At("quota." + quota).WithHint("delete something, or ask for a larger quota")
}
