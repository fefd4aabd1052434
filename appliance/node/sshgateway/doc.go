// Package sshgateway lets users into their instances by SSH, through one port on each
// node of the cluster, whether an instance has an address outside or not:
//
//	ssh [user%]project/instance@gateway
//
//	client ─SSH─► Gateway: key ─► Directory: who, which instance, may he
//	                 │
//	                 └─ Dialer ─► node that runs the instance ─► its network ─► guest's sshd
//	                    SSH again, with a certificate for this instance alone
//
// A client signs in with one of his SSH keys (api.SSHKey). The gateway then signs in to
// the guest with a key made for this connection and a certificate of the cluster's user
// CA that is good for minutes and for one instance: its principal is the instance's ID,
// and the line with which a guest trusts the CA names that principal. Sessions and
// forwards are channels of the first connection, carried one to one over the second.
//
//	handshake ─► admitted ─► serving ─► ended: by the client, by time, or because the
//	     │           │                    right ended (key, user, instance)
//	     └ refused   └ told why on the first session's standard error
//
// A Shell is the second half alone, for clients that come by the API's websocket: the
// caller of OpenShell has decided who may, and records it.
//
// Both sides are hostile. A client has limits by address and user, and a time for its
// handshake; a guest can only fail the connection that asked for it: what it says goes
// to its own user and nowhere else.
//
// Files: target.go reads the user name; gateway.go accepts connections; limits.go counts
// them; guest.go signs in to guests; shell.go opens shells; channel.go carries sessions, forward.go forwards;
// authority.go keeps the host key and the CA.
package sshgateway
