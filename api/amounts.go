package api

import "strings"

// Amounts by the name of a quota. What is not there is 0 of a use, and as limit
// none, or DefaultQuota.
type Amounts map[string]int64

// Limits of Command.Uses and Command.Limits.
const (
	MaxAmounts     = 64
	MaxAmountBytes = 64      // of a name
	MaxAmount      = 1 << 60 // some of them together still are a number
)

// CheckAmounts says what is wrong with a command's uses and limits, or nothing.
func CheckAmounts(c Command) error {
	if (c.Uses != nil || c.Limits != nil) && c.Op != OpPutSpec {
		return invalid("uses", "this command takes neither uses nor limits")
	}
	for field, amounts := range map[string]Amounts{"uses": c.Uses, "limits": c.Limits} {
		if len(amounts) > MaxAmounts {
			return Errorf(CodeTooLarge, "%s %s: %d %s, at most %d", c.Kind, c.ID, len(amounts), field, MaxAmounts)
		}
		for name, n := range amounts {
			if name == "" || len(name) > MaxAmountBytes || hasControl(name) {
				return invalid(field, "%q is no name of a quota", clip(name)).WithHint("1 to %d bytes", MaxAmountBytes)
			}
			if n < 0 || n > MaxAmount {
				return invalid(field, "%s: %d is not 0 to %d", name, n, int64(MaxAmount))
			}
		}
	}
	return nil
}

// QuotaExceeded is the error of an object that would take more of a quota of
// its project or organization than is left.
func QuotaExceeded(kind Kind, id, quota string, limit, used, more int64) *Error {
	if quota == QuotaSpend {
		return Errorf(CodeQuota, "nothing new may be made or started in %s %s", strings.ToLower(string(kind)), id).
			WithHint("its balance or budget is used up, an invoice is overdue, or it was suspended: `basalt wallet` and `basalt budget list` say which")
	}
	return Errorf(CodeQuota, "the quota of %s of %s %s is %d: %d in use, %d more wanted", quota, strings.ToLower(string(kind)), id, limit, used, more).
		At("quota." + quota).WithHint("delete something, or ask for a larger quota")
}
