// Package auth authenticates callers of the API and decides what they may see and do.
// It is independent of the kinds' handlers and of billing.
//
//	request ─► Authenticator.Identify ─► Identity ─► Rights: may the role do this?
//	                                             ├─► May: do the key's scopes allow it?
//	                                             └─► Sees, Owns: this object?
//
// An Authenticator checks keys and sessions, and begins sessions: with a password and
// one-time codes, with an identity provider (package oidc), or with a link. It keeps
// them in a Store and rate-limits guessing (throttle.go). The server puts the result
// into the context: IdentityOf, Caller and Request.
package auth
