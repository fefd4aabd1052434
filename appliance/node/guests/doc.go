// Package guests shuts down a node's guests before the node itself goes down. A
// process of its own does it (basaltd guests stop), which systemd runs while basaltd,
// libvirtd and the network still work, and which needs nothing of basaltd: it finishes
// whether basaltd works, is killed on the way, or hangs.
//
//	mark ─► press every power button ─► wait, press again ─► pull the plug of who is left ─► off
//
// The mark is a file in the folder of the node's sockets. While it is there, basaltd
// starts no guest and says that the node is shutting down. The folder is empty after a
// boot, so that guests start again then without anybody's doing.
package guests
