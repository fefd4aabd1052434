// Package sshgateway gives users access to their instances by SSH, through one port
// on each node of the cluster, whether or not an instance has an external address:
//
//	ssh [user%]project/instance@gateway
//
//	client ─SSH─► Gateway: key ─► Directory: user, instance, permission
//	                 │
//	                 └─ Dialer ─► node that runs the instance ─► its network ─► guest's sshd
//	                    SSH again, with a certificate for this instance alone
//
// A client signs in with one of the user's SSH keys (api.SSHKey). The gateway then
// signs in to the guest with a key generated for this connection and a certificate
// of the cluster's user CA that is valid for minutes and for one instance: its
// principal is the instance's ID, and the line by which a guest trusts the CA names
// that principal. Sessions and forwards are channels of the first connection, each
// forwarded over a channel of the second.
//
//	handshake ─► admitted ─► serving ─► ended: by the client, by time, or because the
//	     │           │                    right ended (key, user, instance)
//	     └ refused   └ reason written to the first session's standard error
//
// A Shell is the second half only, for clients that connect by the API's WebSocket:
// the caller of OpenShell has checked the permission, and records the use.
//
// Both sides are hostile. A client has limits by address and user, and a timeout of
// its handshake; a guest can only make the connection fail that was opened to it:
// its output is sent to its own user and nowhere else.
//
// Files: target.go parses the user name; gateway.go accepts connections; buffered.go
// has their buffers, limits.go their limits; guest.go signs in to guests; shell.go
// opens shells; channel.go forwards sessions, forward.go TCP connections;
// authority.go stores the host key and the CA.
package sshgateway
