// Package pki determines who may talk in a cluster. It contains the cluster's
// certificate authority, the tokens that admit new nodes, and a node's identity on
// its disk.
//
//	NewCA ─► Sign(CSR, NodeIdentity) ─► Create ─► CertificateStore ─► tls.Config
//	                    ▲                            │
//	                    └──────── Renew ◄────────────┘ when a third of its lifetime is left
//
// A node is named by one URI in its certificate, basalt://CLUSTER/node/NODE-ID. The
// names and addresses in it are for the API's users; they do not matter between
// nodes. Of a CSR only the key is used.
//
// # Rotation
//
// Every tls.Config asks its CertificateStore at each handshake, so a new certificate or
// bundle requires no restart, and existing connections continue. A CA is replaced
// in three steps, each completed on every node before the next begins (package
// membership, replacement.go):
//
//	bundle {old}      ─► bundle {old, new}   every node trusts both
//	certificate (old) ─► certificate (new)   Renew with the new CA
//	bundle {old, new} ─► bundle {new}        the old one is no longer trusted
//
// # Clocks
//
// A certificate is backdated by an hour, and the beginning and end of its validity
// are checked with a tolerance of another hour (Skew). A node whose clock is wrong
// by up to an hour can therefore still join and talk, even when the signer's clock
// is wrong by an hour in the other direction. This is necessary: otherwise such a
// node could neither be reached for repair nor be told to stop its instances.
// Validity does not protect against a removed node; membership does (package peer).
// The tolerance is therefore harmless. It is also why the chain is verified here,
// in VerifyConnection, and not by crypto/tls, which has one time and one pool of
// roots per tls.Config.
//
// # On the disk
//
//	DIR/ca.pem        the bundle: every CA that is currently trusted
//	DIR/node.crt      this node's certificate
//	DIR/node.key      its key, 0600; never leaves the node
//	DIR/node.key.new  the key of an interrupted renewal
//
// A renewal writes node.key.new, then node.crt, and then renames the new key to
// node.key. Open completes a renewal that was interrupted.
package pki
