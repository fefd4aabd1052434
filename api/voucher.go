package api

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
)

// PaymentVoucher is the type of a payment by voucher: credit without a transfer of
// money.
const PaymentVoucher PaymentType = "voucher"

const (
	// voucherAlphabet has no letters that are easily mistaken for another or for a
	// digit.
	voucherAlphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	// newVoucherCode is the number of characters of a generated code, with five bits
	// each: 100 bits, which cannot be guessed.
	newVoucherCode = 20

	leastVoucherCode = 12
	mostVoucherCode  = 64
	leastVoucherMix  = 6 // distinct characters in a user-chosen code

	maxRedemptions = 1_000_000
)

// VoucherState reports whether a voucher can be redeemed.
type VoucherState string

// States of vouchers.
const (
	VoucherOpen    VoucherState = "open"
	VoucherUsed    VoucherState = "used"
	VoucherExpired VoucherState = "expired"
)

// State returns the state of a voucher at a time.
func (v Voucher) State(now time.Time) VoucherState {
	switch {
	case v.Status.Redeemed >= v.Spec.Redemptions:
		return VoucherUsed
	case v.Spec.ExpiresAt != nil && !now.Before(*v.Spec.ExpiresAt):
		return VoucherExpired
	}
	return VoucherOpen
}

// DefaultVoucher fills in what was left out.
func DefaultVoucher(s VoucherSpec) VoucherSpec {
	if s.Redemptions == 0 {
		s.Redemptions = 1
	}
	return s
}

// ValidateVoucher checks a spec with its defaults filled in.
func ValidateVoucher(s VoucherSpec, now time.Time) error {
	var bad faults
	bad.note(currency(s.Currency), between("spec.amountMicros", s.AmountMicros, 1, maxPriceMicros, " millionths"),
		between("spec.redemptions", s.Redemptions, 1, maxRedemptions, ""), text("spec.note", s.Note))
	if s.ExpiresAt != nil && !s.ExpiresAt.After(now) {
		bad.note(invalid("spec.expiresAt", "%s is in the past", s.ExpiresAt.UTC().Format(time.RFC3339)))
	}
	if s.Hash != "" {
		bad.note(invalid("spec.hash", "must be empty: the server makes it of the code").WithHint("omit it"))
	}
	return bad.err()
}

// NewVoucherCode returns a random code, in groups of four.
func NewVoucherCode() string {
	var random [newVoucherCode]byte
	_, _ = rand.Read(random[:]) // never returns an error: it aborts the process instead
	var b strings.Builder
	for i, x := range random {
		if i > 0 && i%4 == 0 {
			b.WriteByte('-')
		}
		b.WriteByte(voucherAlphabet[x%32])
	}
	return b.String()
}

// VoucherCode returns the form in which codes are compared: upper case, without spaces
// and hyphens, and with O, I and L replaced by the digits that they resemble. It
// returns false if s is not a valid code.
func VoucherCode(s string) (string, bool) {
	if len(s) > 2*mostVoucherCode {
		return "", false
	}
	var b strings.Builder
	for _, c := range strings.ToUpper(s) {
		switch {
		case c == ' ' || c == '-':
		case c == 'O':
			b.WriteByte('0')
		case c == 'I' || c == 'L':
			b.WriteByte('1')
		case c >= '0' && c <= '9' || c >= 'A' && c <= 'Z':
			b.WriteRune(c)
		default:
			return "", false
		}
	}
	return b.String(), b.Len() >= leastVoucherCode && b.Len() <= mostVoucherCode
}

// ValidateVoucherCode checks a user-chosen code.
func ValidateVoucherCode(s string) error {
	code, ok := VoucherCode(s)
	if !ok {
		return invalid("code", "must have %d to %d letters and digits", leastVoucherCode, mostVoucherCode).WithHint("omit it to have one generated")
	}
	different := map[rune]bool{}
	for _, c := range code {
		different[c] = true
	}
	if len(different) < leastVoucherMix {
		return invalid("code", "must have at least %d different letters and digits", leastVoucherMix).WithHint("omit it to have one generated")
	}
	return nil
}

// VoucherHash returns the hash of a code in the form of VoucherCode. Only the hash is
// stored, since codes are worth money until they are redeemed. It is keyed with a
// sealed key of the cluster: the audit trail shows hashes, and a user-chosen code could
// be guessed from one without a key.
func VoucherHash(key []byte, code string) string {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(code))
	return hex.EncodeToString(h.Sum(nil))
}

// VoucherKeyID is the ID of the object that stores the key.
const VoucherKeyID = "vcode-key"

// VoucherCodeID returns the ID of the object that maps a code's hash to its voucher.
func VoucherCodeID(hash string) string { return KindVoucherCode.Info().IDPrefix + "-" + hash }

// VoucherReference returns the reference of payments by a voucher.
func VoucherReference(id VoucherID) string { return "voucher " + string(id) }

// VoucherPaymentID returns the ID of the payment that a voucher gives an organization,
// so that there is at most one.
func VoucherPaymentID(id VoucherID, org OrganizationID) PaymentID {
	sum := sha256.Sum256([]byte(string(id) + "/" + string(org)))
	return PaymentID(NewID(KindPayment, sum[:]))
}
