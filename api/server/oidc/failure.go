package oidc

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/oauth2"
)

// Failure is an error of a sign-in. Its text is for the log of the node: it may contain what
// was received from an address that the provider names, which may be inside of the operator's
// network, so the admins of an organization must not learn it.
type Failure struct {
	err error
	// Shown is the text for the admins of the provider.
	Shown string
}

// Error returns the text for the log.
func (f *Failure) Error() string { return f.err.Error() }

// Unwrap returns the exact error.
func (f *Failure) Unwrap() error { return f.err }

// finding is an error about a token or a provider's metadata that were received and read.
type finding struct{ error }

// tokenErrors are the errors of a token endpoint (RFC 6749, section 5.2). Any other text may be
// of a server that is none.
var tokenErrors = []string{"invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type", "invalid_scope"}

// unfetched is the one text for all failures to fetch something.
const unfetched = "the provider's metadata, keys or tokens cannot be fetched, or are not valid; check the issuer, and whether its addresses are reachable from the cluster"

// failed returns the Failure of an error.
func failed(err error) error {
	if err == nil {
		return nil
	}
	f := &Failure{err: err, Shown: unfetched}
	var found finding
	var refused *oauth2.RetrieveError
	switch {
	case errors.As(err, &found):
		f.Shown = found.Error()
	case errors.As(err, &refused) && slices.Contains(tokenErrors, refused.ErrorCode):
		f.Shown = fmt.Sprintf("the provider's token endpoint has refused the code with the error %s; for invalid_client check the client ID and the secret", refused.ErrorCode)
	}
	return f
}

// tokenError returns the error of a verification, as a finding unless the provider's keys could
// be the reason: the library's text contains what it has received instead of keys.
func tokenError(err error) error {
	if strings.Contains(err.Error(), "verify signature") || strings.Contains(err.Error(), "keys") {
		return err
	}
	return finding{err}
}
