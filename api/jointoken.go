package api

import "time"

// How long a join token may be used.
const (
	DefaultTokenLife = time.Hour
	MaxTokenLife     = 7 * 24 * time.Hour
)

// DefaultJoinToken fills in what was left out.
func DefaultJoinToken(s JoinTokenSpec, now time.Time) JoinTokenSpec {
	if s.ExpiresAt == nil {
		at := now.UTC().Add(DefaultTokenLife).Truncate(time.Second)
		s.ExpiresAt = &at
	}
	return s
}

// ValidateJoinToken checks a spec with its defaults filled in.
func ValidateJoinToken(s JoinTokenSpec, now time.Time) error {
	switch {
	case s.Hash != "":
		return invalid("spec.hash", "the server makes the secret").WithHint("leave it out")
	case !s.ExpiresAt.After(now):
		return invalid("spec.expiresAt", "it is over already")
	case s.ExpiresAt.After(now.Add(MaxTokenLife)):
		return invalid("spec.expiresAt", "a join token lasts a week at most")
	}
	return nil
}
