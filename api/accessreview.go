package api

// AccessFinding is a reason to check an entry of an access review.
type AccessFinding string

// The findings. None of them is an error: a review decides whether access is still right.
const (
	NoSecondFactor AccessFinding = "no-second-factor" // a user who signs in with a password alone
	NeverUsed      AccessFinding = "never-used"       // created before the period of the review, and not used since
	Unused         AccessFinding = "unused"           // last used before the period of the review
	NoExpiry       AccessFinding = "no-expiry"        // a key that does not expire
	Unrestricted   AccessFinding = "unrestricted"     // a key with all permissions of its role, from any address
	Expired        AccessFinding = "expired"          // a key that is of no use any more

	AnyFinding AccessFinding = "any" // in a query: at least one of the above
)
