// Package auth knows who asks the API, and what exists for them. It knows nothing of
// the kinds' handlers and of money.
//
//	request ─► Authenticator.Identify ─► Identity ─► Rights: may the role do this?
//	                                             ├─► May: do the key's scopes allow it?
//	                                             └─► Sees, Owns: this object?
//
// An Authenticator checks keys and sessions, and begins sessions: with a password and
// one-time codes, with an identity provider (package oidc), or with a link. It keeps
// them in a Store of three methods, and slows down who guesses (throttle.go). The
// server puts what it found into the context: IdentityOf, Caller and Request.
package auth
