// Package transport is the wire between the nodes of a cluster. It carries calls and
// streams and does not know what they mean.
//
// A node listens on one TCP port for each of its network paths. All is TLS 1.3;
// ALPN picks the protocol:
//
//	basalt-raft/1   bytes of hashicorp/raft             a member's certificate
//	basalt-peer/1   HTTP/1.1: calls, streams, the API    a member's certificate
//	basalt-join/1   HTTP/1.1: only POST /join            none; a token is in the body
//
// An incoming connection:
//
//	accepted ─► pending ──handshake──► raft ─► RaftLayer.Accept
//	               │ limits, 10 s        ├──► peer ─► member? ─► Handle, HandleStream
//	               └──► closed           └──► join ─► rate, size, time ─► HandleJoin
//
// # Whom a node talks to
//
// Everybody is named by node id, never by address: raft's ServerAddress is the
// node's id too. The Book says on which paths a node is reached; it can change
// at any time. A dial tries the paths in the book's order, those that failed a
// moment ago last, each a little after the one before (Happy Eyeballs, RFC
// 8305), and takes the first that shows the right certificate. The Prober holds
// one connection on every path and pings it each second: that is what a
// witness knows, and it also lets calls leave a path that has died: what stands
// on it is closed as soon as another path of the same node answers.
//
// # Who may talk to this node
//
// A certificate of the cluster gets a connection through the handshake;
// membership is asked for every connection and every request, so a node that
// was removed is refused although its certificate is still valid. Its requests
// are answered "forbidden", so that it learns why; raft connections are just
// closed. Kick closes what stands. After a rotation, handshakes follow the new
// bundle at once; connections that stand are used for at most one more call
// each and then left, and what remains is closed within a minute (Recheck).
//
// # Addresses of HTTP on basalt-peer/1
//
//	/stream/NAME          Upgrade to bytes (Client.Stream, Server.HandleStream)
//	/relay/NODE/PATH      forwarded to another member (Client.CallVia, Server.AllowRelay)
//	/api/...              this node's API, for a request forwarded here (Client.ProxyTo, Server.HandleAPI)
//	anything else         Server.Handle
//
// Locks: Book.mu, conns.mu and Prober.mu are leaves: nothing is called while
// they are held.
package transport
