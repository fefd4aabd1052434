// Package transport connects the nodes of a cluster. It carries calls and streams
// and does not interpret them.
//
// A node listens on one TCP port per network path. All connections use TLS 1.3;
// ALPN selects the protocol:
//
//	basalt-raft/1   bytes of hashicorp/raft             certificate of a member
//	basalt-peer/1   HTTP/1.1: calls, streams, the API    certificate of a member
//	basalt-join/1   HTTP/1.1: only POST /join            none; a token is in the body
//
// An incoming connection:
//
//	accepted ─► pending ──handshake──► raft ─► RaftLayer.Accept
//	               │ limits, 10 s        ├──► peer ─► member? ─► Handle, HandleStream
//	               └──► closed           └──► join ─► rate, size, time ─► HandleJoin
//
// # Outgoing connections
//
// Nodes are identified by node ID, never by address; Raft's ServerAddress is the
// node ID too. The AddressBook contains the paths on which a node can be reached, and may
// change at any time. A dial tries the paths in the book's order, with those that
// failed recently last, each a little after the one before (Happy Eyeballs, RFC
// 8305), and uses the first that presents the right certificate. The Prober keeps
// one connection on every path and pings it each second. This is a witness's source
// of information, and it also lets calls avoid a path that has failed: the
// connections on that path are closed as soon as another path of the same node
// answers.
//
// # Incoming connections
//
// A certificate of the cluster passes the handshake. Membership is checked for
// every connection and every request, so a removed node is refused although its
// certificate is still valid. Its requests are answered "forbidden", so that it
// learns the reason; its Raft connections are closed. Disconnect closes existing
// connections. After a rotation, handshakes use the new bundle at once; existing
// connections are used for at most one more call each and then closed, and the rest
// are closed within a minute (Recheck).
//
// # Addresses of HTTP on basalt-peer/1
//
//	/stream/NAME          Upgrade to bytes (Client.Stream, Server.HandleStream)
//	/relay/NODE/PATH      forwarded to another member (Client.CallVia, Server.AllowRelay)
//	/api/...              this node's API, for a request forwarded here (Client.ProxyTo, Server.HandleAPI)
//	anything else         Server.Handle
//
// AddressBook.mu, conns.mu and Prober.mu are leaf locks: no function that locks is called
// while they are held.
package transport
