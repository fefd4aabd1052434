package api

import (
	"crypto/sha256"
	"strings"
	"time"
)

const (
	// maxTemporary is the number of messages returned for a temporary reason that suppress
	// an address.
	maxTemporary = 3
	// temporaryWithin is the longest time between two of them that are counted together.
	temporaryWithin = 30 * 24 * time.Hour
	// MaxSuppressedMail limits the security mail that a suppressed address gets in a day.
	MaxSuppressedMail = 3
)

// MailSuppressionIDOf returns the ID of what is known of an address.
func MailSuppressionIDOf(address string) string {
	sum := sha256.Sum256([]byte(strings.ToLower(address)))
	return NewID(KindMailSuppression, sum[:])
}

// Essential reports whether a message of the type is sent to a suppressed address, too:
// a user asked for it to get into the account, or to prove the address, which ends the
// suppression.
func (t MailType) Essential() bool {
	switch t {
	case MailTypeTest, MailTypePasswordReset, MailTypeInvitation, MailTypeSignUp, MailTypeSignUpKnown:
		return true
	}
	return false
}

// Returned returns the status of an address after a message was returned from it.
func (s MailSuppressionStatus) Returned(message, why string, permanent bool, now time.Time) MailSuppressionStatus {
	if s.ReturnedAt == nil || now.Sub(*s.ReturnedAt) > temporaryWithin {
		s.Temporary = 0
	}
	if !permanent {
		s.Temporary++
	}
	if s.SuppressedAt == nil && (permanent || s.Temporary >= maxTemporary) {
		s.SuppressedAt = &now
	}
	s.ReturnedAt, s.LastError, s.Message = &now, why, message
	return s
}
