package api

import "time"

// Lifetimes of a join token.
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
		return invalid("spec.hash", "must be empty: the server generates the secret").WithHint("omit it")
	case !s.ExpiresAt.After(now):
		return invalid("spec.expiresAt", "must be in the future")
	case s.ExpiresAt.After(now.Add(MaxTokenLife)):
		return invalid("spec.expiresAt", "must be at most a week from now")
	}
	return nil
}
