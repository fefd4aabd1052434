// Package certificates requests certificates for the host names of portals from a
// certificate authority by ACME (RFC 8555). The leader does this for the address of the
// cluster's portal, and for the approved host names of resellers:
//
//	settings, portal domains ─► due (pure) ─► request ─► CA ─► status of the object
//	                                             │              (certificate, sealed key)
//	                                             └─► challenge in the status
//
// A name is proved by the challenge tls-alpn-01 (RFC 8737): the authority connects to port
// 443 of the name, and whichever node answers reads the challenge from the store
// (ChallengeConfig). A certificate that somebody has stored is preferred to a requested one
// as long as it is valid.
//
// There is one request at a time and at most one a minute. After a failure a name waits
// for growing delays, and after a refusal for too many requests all names wait for as long as
// the authority wants.
package certificates
