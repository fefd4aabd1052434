// Package pki is who may speak in a cluster: its own certificate authority,
// the tokens that let a new node in, and a node's identity on its disk.
//
//	NewCA ─► Sign(CSR, NodeIdentity) ─► Create ─► Keeper ─► tls.Config
//	                    ▲                            │
//	                    └──────── Renew ◄────────────┘ a third of its life is left
//
// A node is named by one URI in its certificate, basalt://CLUSTER/node/NODE-ID.
// Names and addresses in it serve the API's users; between nodes they mean
// nothing. What a CSR asks for is never looked at, only its key.
//
// # Rotation
//
// Every tls.Config asks its Keeper at each handshake, so a new certificate or
// a new bundle needs no restart, and connections that stand go on. A new CA
// comes in three steps, each finished on every node before the next begins:
//
//	bundle {old}      ─► bundle {old, new}   everybody trusts both
//	certificate (old) ─► certificate (new)   Renew with the new CA
//	bundle {old, new} ─► bundle {new}        the old one is trusted no more
//
// # Clocks
//
// A certificate is backdated by an hour, and both its ends are read with
// another hour's tolerance (Skew): a node whose clock is an hour off, before
// or behind, still joins and speaks, even when the signer's is an hour off the
// other way. It must: such a node can otherwise neither be reached to be
// repaired nor be told to stop its instances. Validity is no defence against a
// node that was removed, membership is (package peer); so an hour costs
// nothing. That is why the chain is verified here, in VerifyConnection, and not
// by crypto/tls, which knows one time and one pool of roots per tls.Config.
//
// # On the disk
//
//	DIR/ca.pem        the bundle: every CA that is trusted now
//	DIR/node.crt      this node's certificate
//	DIR/node.key      its key, 0600; never leaves the node
//	DIR/node.key.new  the key of a renewal that was interrupted
//
// A renewal writes node.key.new, then node.crt, then renames the key over
// node.key; Open finishes what a power cut left half done.
package pki
